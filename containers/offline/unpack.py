#!/usr/bin/env python3
"""Unpack what pack.py made, on the machine that has the GPU: environments for the lab and for each vLLM, no network.

    python3 unpack.py PARTS ROOT

PARTS holds part files and the zstandard wheel, flat. Every complete series becomes one environment:

    ROOT/lab             the lab's tree; run `snakemake` there
    ROOT/env/lab         Python environment of the lab (`bin/snakemake`, `bin/specdec`)
    ROOT/env/vllm-0.33.0 Python environment of that vLLM (`bin/vllm`), on top of this interpreter's own torch
    ROOT/cache/models    models that came along (SPECDEC_CACHE_DIR=ROOT/cache)

It is run with the Python that has torch. Run it again when more parts have come; what is there stays.
"""

from __future__ import annotations

import io
import shutil
import site
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterable
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir"]
SCRIPT = """#!{python}
import sys
from {module} import {name}
if __name__ == "__main__":
    sys.exit({name}())
"""


class Joined(io.RawIOBase):
    """Files read one after the other."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._files = [path.open("rb") for path in paths]

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        """Bytes of the first file that has some."""
        while self._files:
            if read := self._files[0].readinto(buffer):
                return read
            self._files.pop(0).close()
        return 0


def main(parts: Path, root: Path) -> None:
    """Every series whose environment is not there yet."""
    tools = Path(tempfile.mkdtemp())
    subprocess.run([*PIP, "--target", str(tools), *map(str, parts.glob("zstandard*.whl"))], check=True)
    sys.path.insert(0, str(tools))
    for series in sorted({path.name.rpartition(".part")[0] for path in parts.glob("*.part*")}):
        if (root / "env" / series).exists():
            continue
        opened = Path(tempfile.mkdtemp(dir=root.parent))
        extract(sorted(parts.glob(f"{series}.part*")), opened)
        packages = environment(root / "env" / series)
        if series == "lab":
            shutil.move(opened / "lab", root / "lab")
            (packages / "lab.pth").write_text(f"{root / 'lab' / 'workflow'}\n")
        else:
            subprocess.run(["cp", "-r", f"{opened}/site/.", str(packages)], check=True)
        wheels = [str(wheel) for wheel in (opened / "whl").glob("*.whl")]
        subprocess.run([*PIP, "--target", str(packages), *wheels], check=True, stderr=subprocess.DEVNULL)
        programs(root / "env" / series, packages, series)
        # The first server would compile thousands of files while its start is being timed. Some packages hold files
        # that no Python can compile; that is no failure.
        subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", str(packages)], stdout=subprocess.DEVNULL)
        if (opened / "add").exists():
            models = root / "cache" / "models"
            models.mkdir(parents=True, exist_ok=True)
            for file in (opened / "add").iterdir():
                shutil.move(file, models / file.name)
        shutil.rmtree(opened)
        sys.stdout.write(f"{root / 'env' / series}\n")


def extract(paths: list[Path], into: Path) -> None:
    """The archive that these pieces make."""
    import tarfile

    import zstandard

    stream = zstandard.ZstdDecompressor().stream_reader(io.BufferedReader(Joined(paths), 1 << 20))
    with tarfile.open(fileobj=stream, mode="r|") as archive:
        archive.extractall(into, filter="tar")


def environment(folder: Path) -> Path:
    """An empty environment without pip; its folder of packages."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    packages.mkdir(parents=True, exist_ok=True)
    return packages


def programs(folder: Path, packages: Path, series: str) -> None:
    """What pip would have put into bin/ had it installed there; and for vLLM the way to this interpreter's torch."""
    made = {"snakemake": ("snakemake.cli", "main"), "specdec": ("specdec_lab.cli", "main")}
    if series != "lab":
        made = {"vllm": ("vllm.entrypoints.cli.main", "main")}
        stub = packages / "libncclstub.so"
        lines = [f"import ctypes; ctypes.CDLL({str(stub)!r}, mode=ctypes.RTLD_GLOBAL)"] if stub.exists() else []
        lines += [sysconfig.get_path("purelib"), *site.getsitepackages()]
        (packages / "zz_this_machine.pth").write_text("\n".join(dict.fromkeys(lines)) + "\n")
        for tool in ("torch/bin/torch_shm_manager", "triton/backends/nvidia/bin"):
            for file in [packages / tool, *(packages / tool).glob("*")]:
                if file.is_file():
                    file.chmod(0o755)
    for program, (module, name) in made.items():
        path = folder / "bin" / program
        path.write_text(SCRIPT.format(python=folder / "bin" / "python3", module=module, name=name))
        path.chmod(0o755)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
