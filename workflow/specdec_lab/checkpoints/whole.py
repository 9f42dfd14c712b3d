"""Whether the files of a checkpoint are what a server needs: all there, whole, and weights instead of a stand-in (C6).

Looked up before anything starts, from names, sizes and first bytes alone: weights are not read.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable
from pathlib import Path

WEIGHTS = ("*.safetensors", "*.gguf", "*.bin", "*.pt", "*.pth", "*.ckpt", "*.npz", "*.tensors", "*.engine")
"""Formats of weights, in the order in which servers choose among them."""
_READ = (".json", ".model", ".txt", ".jinja")
"""What a server reads beside them."""
_INDEXES = (".safetensors.index.json", ".bin.index.json")
_POINTER = b"version https://git-lfs.github.com/spec/"
_PAGE = re.compile(rb"\s*<(!doctype|html|\?xml|head|body)", re.IGNORECASE)
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<end>\.gguf)")
_LARGEST_HEADER = 100_000_000

Fault = tuple[str, str]
"""What is wrong, and the fix."""


def fault(path: Path) -> Fault | None:
    """What is wrong with a checkpoint's file or folder; None if nothing can be seen from outside."""
    try:
        return _fault(path)
    except OSError as error:
        told = f"{error.filename or path} cannot be read ({error.strerror})"
        return told, "give this user the right to read it, or check the disk"


def _fault(path: Path) -> Fault | None:
    if path.is_file():
        return _file_fault(path) or _missing_part(path)
    files = sorted(file for file in path.iterdir() if not file.name.startswith("."))
    for file in files:
        if not file.exists():
            told = f"{file.name} is a link to {file.readlink()}, which is not there"
            return told, "copy the files themselves (`cp -L`, `rsync -L`), or fetch them anew"
    named = _indexed(path)
    if isinstance(named, tuple):
        return named
    weights = _served(path, named)
    read = [file for file in files if file.suffix in _READ and file.is_file()]
    return (
        _first(_stand_in(file) for file in read)
        or (None if weights else _no_weights(files))
        or _first(_file_fault(file) for file in weights)
        or _first(_missing_part(file) for file in weights)
    )


def _first(faults: Iterable[Fault | None]) -> Fault | None:
    return next((one for one in faults if one is not None), None)


def _no_weights(files: list[Path]) -> Fault:
    there = f", only {', '.join(file.name for file in files[:5])}" if files else ", nor anything else"
    return f"there are no weights in it{there}", "fetch the files of weights too, such as *.safetensors or *.gguf"


def _served(path: Path, named: set[str]) -> list[Path]:
    """The files that a server would load: one format, at the top if any is there; others may be what they are."""
    for found in (path.glob, path.rglob):
        for pattern in WEIGHTS:
            files = sorted(file for file in found(pattern) if _counts(file, path))
            if files:
                return [file for file in files if file.name in named] or files
    return []


def _counts(file: Path, folder: Path) -> bool:
    return file.is_file() and not any(part.startswith(".") for part in file.relative_to(folder).parts)


def _indexed(path: Path) -> set[str] | Fault:
    """The files of weights that an index names; a Fault if one is missing. An index of a format that is not here, where
    another one is, counts for nothing."""
    all_named: set[str] = set()
    for end in _INDEXES:
        if end == ".bin.index.json" and any(path.glob("*.safetensors")):
            continue
        for index in sorted(path.glob(f"*{end}")):
            try:
                named = {str(name) for name in json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()}
            except (ValueError, KeyError, TypeError, AttributeError):
                return _stand_in(index) or (f"{index.name} cannot be read", "fetch it anew")
            missing = sorted(name for name in named if not (path / name).exists())
            if missing:
                more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                return f"{missing[0]}{more} of {len(named)} files of weights is missing", "fetch what is missing"
            all_named |= named
    return all_named


def _missing_part(file: Path) -> Fault | None:
    """Another part of a GGUF that was split."""
    part = _PART.fullmatch(file.name)
    if part is None:
        return None
    for number in range(1, int(part["count"]) + 1):
        other = file.with_name(f"{part['stem']}-{number:05d}-of-{part['count']}{part['end']}")
        if not other.exists():
            return f"{other.name} is missing beside {file.name}", "fetch all parts into one folder"
    return None


def _stand_in(file: Path) -> Fault | None:
    """A file that holds something else than its name says, whatever its kind."""
    size = file.stat().st_size
    with file.open("rb") as raw:
        start = raw.read(64)
    if start.startswith(_POINTER):
        return f"{file.name} is a pointer of Git LFS, {size} bytes, not the file itself", "run `git lfs pull` there"
    if _PAGE.match(start):
        return (
            f"{file.name} is a web page, not the file itself",
            "fetch it anew; sites answer so without a login",
        )
    return None


def _file_fault(file: Path) -> Fault | None:
    if file.stat().st_size == 0:
        return f"{file.name} is empty", "fetch it anew"
    other = _stand_in(file)
    if other is not None:
        return other
    if file.suffix == ".gguf":
        with file.open("rb") as raw:
            if raw.read(4) != b"GGUF":
                return f"{file.name} is no GGUF file", "fetch it anew, or name the right file"
    return _safetensors_fault(file) if file.suffix == ".safetensors" else None


def _safetensors_fault(file: Path) -> Fault | None:
    """The header says how many bytes follow: a copy that broke off has fewer."""
    size = file.stat().st_size
    try:
        with file.open("rb") as raw:
            (length,) = struct.unpack("<Q", raw.read(8))
            if length > min(size - 8, _LARGEST_HEADER):
                raise ValueError("the header does not fit")
            header = json.loads(raw.read(length))
        ends = [tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__"]
        expected = 8 + length + max(ends, default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error):
        return f"{file.name} is no safetensors file, or its beginning only", "fetch it anew"
    if size < expected:
        return f"{file.name} is cut short: {size} bytes of {expected}", "fetch it anew"
    return None
