"""Provider `path:` - a file or folder of the user's own."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from . import whole
from .checkpoint import Checkpoint, folder_digest, sha256
from .remembered import remembered_digest


def find(spec: CheckpointSpec) -> Path:
    """The file or folder as an absolute path; UserError if it is not there, not readable, or seen not to be whole."""
    given = os.path.expandvars(spec.path or "")
    unset = re.search(r"\$\{?(\w+)", given)
    if unset is not None and not Path(given).exists():
        raise UserError(
            f"the checkpoint's path {spec.path} needs the variable {unset[1]}, which is not set",
            place=str(Path.cwd()),
            fix=f"export {unset[1]}=..., or write the path out",
            code="not_fetched",
        )
    path = Path(given).expanduser()
    if not path.exists():
        raise UserError(
            f"there is no such checkpoint: {spec.path}",
            place=str(Path.cwd()),
            fix="check the path (a relative one counts from the folder in which the run is started); "
            "a hub repository is written as `hub: owner/name`",
            code="not_fetched",
        )
    if not os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK):
        raise UserError(
            f"the checkpoint cannot be read: {path}", fix="give this user the right to read it", code="unreadable"
        )
    path = path.resolve()
    found = whole.fault(path)
    if found is not None:
        raise UserError(
            f"the checkpoint {spec.path} cannot be served: {found[0]}", place=str(path), fix=found[1], code="not_whole"
        )
    return path


def locate(spec: CheckpointSpec) -> Checkpoint:
    """The file or folder, with a digest over its bytes (remembered while size and change time stay the same)."""
    path = find(spec)
    if path.is_file():
        value = remembered_digest(path, sha256)
        return Checkpoint(path=path, digest=value, size_bytes=path.stat().st_size, origin=str(spec.path))
    size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    return Checkpoint(
        path=path, digest=remembered_digest(path, lambda p: folder_digest(p)[0]), size_bytes=size, origin=str(spec.path)
    )
