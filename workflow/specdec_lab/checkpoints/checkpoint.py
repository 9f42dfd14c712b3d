"""A checkpoint as it lies on this machine, and where such files are kept."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ..records.base import Record, digest
from ..records.errors import UserError

_BLOCK = 1 << 22


class Checkpoint(Record):
    """One checkpoint on this machine."""

    path: Path
    digest: str
    """What its bytes are, without its place: a pinned revision, a file's sha256, or a digest over a folder's files."""
    revision: str | None = None
    size_bytes: int
    origin: str
    """Where it came from, as people write it: `owner/name@revision`, a package, a path."""


def sha256(path: Path) -> str:
    """sha256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folder_digest(folder: Path) -> tuple[str, int]:
    """Digest over names and contents of a folder's files, and their bytes in all. Hidden files do not count."""
    files = sorted(
        f for f in folder.rglob("*") if f.is_file() and not any(p.startswith(".") for p in f.relative_to(folder).parts)
    )
    names = {f.relative_to(folder).as_posix(): sha256(f) for f in files}
    return digest(names), sum(f.stat().st_size for f in files)


def cache_dir() -> Path:
    """`SPECDEC_CACHE_DIR`, else the XDG cache folder of this user. Not created here: it may be read-only."""
    given = os.environ.get("SPECDEC_CACHE_DIR")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else home / "specdec-lab"


def writable_cache(part: str) -> Path:
    """A folder of the cache, made if needed; UserError if it cannot be written (case C6 d)."""
    folder = cache_dir() / part
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder) from error
    if not os.access(folder, os.W_OK):
        raise _unwritable(folder)
    return folder


def _unwritable(folder: Path) -> UserError:
    return UserError(
        f"the cache folder cannot be written: {folder}",
        fix="give this user the right to write there, or set SPECDEC_CACHE_DIR to another folder",
        code="cache_not_writable",
    )
