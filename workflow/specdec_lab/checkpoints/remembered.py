"""Digests of large files, remembered while the files stay the same: hashing 16 GB per session would be waste."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

from ..records.base import digest, strict_loads, write_text_atomic
from .checkpoint import cache_dir


def _stamp(path: Path) -> list[list[str | int]]:
    files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.is_file())
    stamps: list[list[str | int]] = []
    for file in files:
        stat = file.stat()
        stamps.append([str(file.relative_to(path)), stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    return stamps


def remembered_digest(path: Path, compute: Callable[[Path], str]) -> str:
    """`compute(path)`, or what it gave the last time if no file under `path` has changed since (size, times, inode)."""
    stamp = digest([str(path), _stamp(path)])
    store = cache_dir() / "digests" / f"{stamp}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(strict_loads(store.read_bytes())["digest"])
    value = compute(path)
    with contextlib.suppress(OSError):  # a read-only cache only costs time
        write_text_atomic(store, json.dumps({"digest": value}))
    return value
