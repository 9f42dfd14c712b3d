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

from ..records.errors import UserError

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
        with gzip.open(archive) as packed:
            with tarfile.open(fileobj=packed, mode="r:") as tar:
                for member in tar:
                    tops.add(_checked(member, archive))
                    tar.extract(member, into, filter="data")
            while packed.read(_PIECE):  # to the end, where the checksum is: a tar reader stops before it
                pass
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


def _checked(member: tarfile.TarInfo, archive: Path) -> str:
    parts = PurePosixPath(member.name).parts
    if not member.isfile() or member.name.startswith("/") or ".." in parts or len(parts) < 2:
        raise UserError(
            f"The archive has a member that no bundle has: {member.name!r}.",
            place=str(archive),
            fix="Do not unpack it; ask where it comes from.",
            code="unsafe",
        )
    return parts[0]
