#!/usr/bin/env python3
"""Pack the lab, or a vLLM, for a GPU machine without network and without Docker. Runs here, where there is a network.

    pack.py lab  DEST [--add FILE ...]      the lab as committed, and the wheels of requirements.lock
    pack.py vllm DEST --release 0.33.0      vLLM, and what the machine's own Python lacks for it

DEST gets `lab.part01`, ... or `vllm-0.33.0.part01`, ...: pieces of one compressed archive each, small enough for a slow
door (`--part-mb`), and the wheel of zstandard, which `unpack.py` needs to open them. Files given with `--add` (a GGUF,
say) land among the cached models. Nothing is built here except packages that are published as sources alone.

Made for Python 3.12 on x86-64 with CUDA 13 libraries, torch 2.11 and transformers 5 (see README.md). Needs pip, zstd,
and for vLLM 0.33 also strip and gcc.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.markers import Marker

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PYTHON = "3.12"
PLATFORMS = [f"manylinux_2_{n}_x86_64" for n in (17, 24, 26, 27, 28, 31, 34)] + [
    "manylinux2014_x86_64",
    "manylinux1_x86_64",
]
DOWNLOAD = [
    sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
    "--only-binary=:all:", f"--python-version={PYTHON}", "--implementation=cp",
    *(f"--platform={name}" for name in PLATFORMS),
]  # fmt: skip
WITHOUT = {
    "xllamacpp", "mypy", "mypy-extensions", "librt", "ruff", "hypothesis", "sortedcontainers", "black", "snakefmt",
    "shfmt-py", "pytokens", "pathspec", "ast-serialize", "pytest", "pytest-timeout", "iniconfig", "pluggy",
}  # fmt: skip
"""Of the lock file: the demo's engine and what only the tests and linters need."""
TREE = ("Snakefile", "config", "containers/offline", "profiles", "workflow", "pyproject.toml", "LICENSE")

RELEASES = {"0.33.0": ["vllm==0.33.0", "torch==2.14.0", "triton==3.8.0"], "0.24.0": ["vllm==0.24.0"]}
"""What is unpacked here and slimmed; the rest are the wheels of vllm-RELEASE.txt. 0.24 runs on the machine's torch."""
LEFT_OUT = (
    # FlashAttention 2 (Hopper has 3), other Pythons, headers, profilers, tools for other chips.
    "_vllm_fa2_C.abi3.so", "/vllm-rs", "cpython-310", "cpython-311", "cpython-313", "cpython-314", "torch/include/",
    "torch/share/", "torch/bin/protoc", "libtorch_cuda_linalg.so", "nvidia/lib/cupti", "ptxas-blackwell", "nvdisasm",
    "triton/instrumentation/", "libproton.so",
)  # fmt: skip
NCCL_MISSING = (
    "ncclCommGetUniqueId ncclCommGrow ncclCommMemStats ncclCommResume ncclCommSuspend ncclGetLsaMultimemDevicePointer "
    "ncclGetPeerDevicePointer ncclPutSignal ncclSignal ncclWaitSignal ncclWinGetUserPtr"
)
"""torch 2.14 links NCCL 2.30; a machine with 2.28 lacks these names. One GPU never calls them; a call fails."""


def main() -> None:
    """Parse, pack, say how many parts there are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["lab", "vllm"])
    parser.add_argument("dest", type=Path)
    parser.add_argument("--release", choices=RELEASES, default="0.33.0")
    parser.add_argument("--add", nargs="*", type=Path, default=[], help="files for the folder of cached models")
    parser.add_argument("--part-mb", type=int, default=56)
    asked = parser.parse_args()
    asked.dest.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        for folder in ("whl", "site", "lab", "add"):
            (work / folder).mkdir()
        if asked.what == "lab":
            lab(work)
        else:
            vllm(work, asked.release)
        for file in asked.add:
            shutil.copy(file, work / "add" / file.name)
        series = "lab" if asked.what == "lab" else f"vllm-{asked.release}"
        parts = cut(work, asked.dest, series, asked.part_mb * 1_000_000)
    subprocess.run([*DOWNLOAD, "-d", str(asked.dest), "zstandard"], check=True)
    sys.stdout.write(f"{parts} parts of {series} in {asked.dest}\n")


def lab(work: Path) -> None:
    """The committed tree, without tests and documents, and the wheels of the lock file for the other Python."""
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", "HEAD", *TREE], check=True, capture_output=True)
    subprocess.run(["tar", "-x", "-C", str(work / "lab")], input=archive.stdout, check=True)
    wanted = {line.split("==")[0]: line for line in locked((ROOT / "requirements.lock").read_text(encoding="utf-8"))}
    pins = work / "pins.txt"
    while True:
        pins.write_text("\n".join(wanted.values()) + "\n", encoding="utf-8")
        asked = [*DOWNLOAD, "-d", str(work / "whl"), "--require-hashes", "-r", str(pins)]
        done = subprocess.run(asked, check=False, capture_output=True, text=True)
        if not done.returncode:
            break
        name = without_wheel(done.stderr)
        if name not in wanted:
            raise SystemExit(done.stderr)
        pins.write_text(wanted.pop(name) + "\n", encoding="utf-8")
        source(pins, work / "whl")
    pins.unlink()


def without_wheel(said: str) -> str:
    """The package that pip found no wheel for; empty when it failed for another reason."""
    found = re.search(r"Could not find a version that satisfies the requirement ([A-Za-z0-9._-]+)==", said)
    return found[1] if found else ""


def source(pins: Path, into: Path) -> None:
    """A package that is published as sources alone, built; refused when the wheel would fit this machine only."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--require-hashes", "-r", str(pins)]
    with tempfile.TemporaryDirectory() as name:
        subprocess.run([*build, "-w", name], check=True)
        for wheel in Path(name).glob("*.whl"):
            if not wheel.name.endswith("-none-any.whl"):
                raise SystemExit(f"{wheel.name} is no wheel for every machine; give one for Python {PYTHON}")
            shutil.copy(wheel, into)


def locked(text: str) -> Iterator[str]:
    """`name==version --hash=...` of each package that the lab needs on the other machine."""
    there = {
        "python_version": PYTHON, "python_full_version": f"{PYTHON}.3", "sys_platform": "linux", "os_name": "posix",
        "platform_system": "Linux", "platform_machine": "x86_64", "platform_python_implementation": "CPython",
        "implementation_name": "cpython", "extra": "",
    }  # fmt: skip
    for block in re.split(r"\n(?=[A-Za-z0-9])", "\n" + text):
        found = re.match(r"\s*([A-Za-z0-9._-]+)==(\S+)\s*(?:;\s*(.*?))?\s*\\\n", block)
        if not found or found[1] in WITHOUT or (found[3] and not Marker(found[3]).evaluate(there)):
            continue
        yield " ".join([f"{found[1]}=={found[2]}", *re.findall(r"--hash=\S+", block)])


def vllm(work: Path, release: str) -> None:
    """vLLM unpacked and slimmed, and the wheels beside it."""
    pins = HERE / f"vllm-{release}.txt"
    subprocess.run([*DOWNLOAD, "-d", str(work / "whl"), "-r", str(pins)], check=True)
    for requirement in RELEASES[release]:
        with tempfile.TemporaryDirectory(dir=work) as name:
            subprocess.run([*DOWNLOAD, "-d", name, requirement], check=True)
            with zipfile.ZipFile(next(Path(name).glob("*.whl"))) as wheel:
                wheel.extractall(
                    work / "site", [m for m in wheel.namelist() if not any(word in f"/{m}" for word in LEFT_OUT)]
                )
    triton = work / "site/triton/_C/libtriton.so"
    if triton.exists():
        subprocess.run(["strip", "--strip-unneeded", str(triton)], check=True)
        stub = work / "stub.c"
        stub.write_text("\n".join(f"int {name}(void) {{ return 1; }}" for name in NCCL_MISSING.split()))
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(work / "site/libncclstub.so"), str(stub)], check=True)
        stub.unlink()


def cut(work: Path, dest: Path, series: str, size: int) -> int:
    """One compressed archive in pieces of `size` bytes; how many."""
    for old in dest.glob(f"{series}.part*"):
        old.unlink()
    folders = [name for name in ("whl", "site", "lab", "add") if any((work / name).iterdir())]
    stream = work / "all.tar.zst"
    with stream.open("wb") as out:
        tar = subprocess.Popen(["tar", "-C", str(work), "-c", *folders], stdout=subprocess.PIPE)
        subprocess.run(["zstd", "-q", "-T0", "-10"], stdin=tar.stdout, stdout=out, check=True)
        if tar.wait():
            raise SystemExit("tar failed")
    number = 0
    with stream.open("rb") as data:
        while piece := data.read(size):
            number += 1
            (dest / f"{series}.part{number:02d}").write_bytes(piece)
    return number


if __name__ == "__main__":
    main()
