"""Provider `path:` - a file or folder of the user's own."""

from __future__ import annotations

import os
from pathlib import Path

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from .checkpoint import Checkpoint, folder_digest, sha256
from .remembered import remembered_digest


def locate(spec: CheckpointSpec) -> Checkpoint:
    """The file or folder, with a digest over its bytes (remembered while size and change time stay the same)."""
    path = Path(os.path.expandvars(spec.path or "")).expanduser()
    if not path.exists():
        raise UserError(
            f"there is no such checkpoint: {spec.path}",
            place=str(Path.cwd()),
            fix="check the path; a hub repository is written as `hub: owner/name`",
            code="not_fetched",
        )
    if not os.access(path, os.R_OK):
        raise UserError(
            f"the checkpoint cannot be read: {path}", fix="give this user the right to read it", code="unreadable"
        )
    path = path.resolve()
    if path.is_file():
        value = remembered_digest(path, sha256)
        return Checkpoint(path=path, digest=value, size_bytes=path.stat().st_size, origin=str(spec.path))
    size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    return Checkpoint(
        path=path, digest=remembered_digest(path, lambda p: folder_digest(p)[0]), size_bytes=size, origin=str(spec.path)
    )
