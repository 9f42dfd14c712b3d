"""The archive: the same bytes for the same content, whoever packs it and when; unpacked without trust."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
import zlib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from unicodedata import category

from ..records.errors import UserError
from .beside import shown

_MODE = 0o644
_LEVEL = 6
_PIECE = 2**20


def write(path: Path, folder: str, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a .tar.gz with these files below `folder`, in the order given, atomically.

    Owner, times and modes are the same for everything, and the gzip header has neither name nor time, so that equal
    content makes equal bytes. UserError when the folder of the archive cannot be written.
    """
    handle, name = _temporary(path)
    try:
        with (
            os.fdopen(handle, "wb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_LEVEL, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for member, content in files:
                info = tarfile.TarInfo(f"{folder}/{member}")
                info.size = len(content)
                info.mode = _MODE
                tar.addfile(info, io.BytesIO(content))
        Path(name).chmod(_MODE)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def require_writable(folder: Path) -> None:
    """UserError when nothing can be written there; asked before anything is read (case E9)."""
    handle, name = _temporary(folder / "any")
    os.close(handle)
    Path(name).unlink()


def _temporary(path: Path) -> tuple[int, str]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    except OSError as error:
        raise UserError(
            f"The bundle cannot be written: {error.strerror}.",
            place=str(path.parent),
            fix="Make that folder writable, or give another one with --out.",
            code="unwritable",
        ) from error


def unpack(archive: Path, into: Path) -> Path:
    """Unpack below `into` and give the bundle's folder. UserError for anything but plain files inside one folder."""
    try:
        tops = set()
        seen: set[str] = set()
        with gzip.open(archive) as packed:
            with tarfile.open(fileobj=packed, mode="r:") as tar:
                for member in tar:
                    tops.add(_checked(member, archive, seen))
                    tar.extract(member, into, filter="data")
            while piece := packed.read(_PIECE):  # to the end, where the checksum is: a tar reader stops before it
                if piece.strip(b"\0"):
                    raise ValueError("something stands behind its end")
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError) as error:
        raise UserError(
            f"This is no bundle that can be read: {error}",
            place=str(archive),
            fix="Get the archive again; it is cut or is something else.",
            code="unreadable",
        ) from error
    if len(tops) != 1:
        raise UserError(
            f"A bundle holds one folder, this archive has {len(tops)}.",
            place=str(archive),
            fix="Give an archive made by `specdec pack`.",
            code="unreadable",
        )
    return into / tops.pop()


def _checked(member: tarfile.TarInfo, archive: Path, seen: set[str]) -> str:
    """The folder that the member is in, or UserError; `seen` are the members before it."""
    name = member.name
    parts = PurePosixPath(name).parts
    wrong = None
    if any(category(letter) in ("Cc", "Cs") for letter in name):
        wrong = f"The archive has a member with a control character in its name: {shown(name)}"
    elif not member.isfile() or member.issparse() or _is_odd(name) or len(parts) < 2:
        wrong = f"The archive has a member that no bundle has: {shown(name)!r}."
    elif name in seen:
        wrong = f"The archive holds {shown(name)!r} twice; the second one is not in the manifest."
    if wrong is not None:
        raise UserError(wrong, place=str(archive), fix="Do not unpack it; ask where it comes from.", code="unsafe")
    seen.add(name)
    return parts[0]


def _is_odd(name: str) -> bool:
    """Whether a name leads outside, or is another spelling of a plain path."""
    return name.startswith("/") or ".." in name.split("/") or name != PurePosixPath(name).as_posix()
