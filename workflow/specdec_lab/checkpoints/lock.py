"""`config/checkpoints.lock.json`: the commit of each hub repository that the config leaves open, as first fetched.

Serves M11.

A file to be kept with the config: with it another machine, or this one next year, fetches the same bytes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pydantic import Field, ValidationError

from ..records.base import Record
from ..records.errors import UserError

LOCK = Path("config/checkpoints.lock.json")
"""From the folder that the workflow runs in; not written where there is no such folder or it is read-only."""


class CheckpointLock(Record):
    """Repository -> commit."""

    schema_version: int = 1
    revisions: dict[str, str] = Field(default={}, description="`owner/name` -> 40-digit commit.")


def _load() -> CheckpointLock:
    if not LOCK.exists():
        return CheckpointLock()
    try:
        return CheckpointLock.read(LOCK)
    except (ValidationError, ValueError) as error:
        raise UserError(
            "the checkpoint lock cannot be read",
            place=str(LOCK),
            fix="restore it, or remove it to lock anew at the next fetch",
            code="lock",
        ) from error


def locked_revision(repository: str) -> str | None:
    """The commit that this repository was locked at; None when it is not."""
    return _load().revisions.get(repository)


def lock_revision(repository: str, commit: str) -> None:
    """Keep a commit, unless one is kept already."""
    known = _load()
    if repository in known.revisions or not LOCK.parent.is_dir():
        return
    with contextlib.suppress(OSError):
        CheckpointLock(revisions=dict(sorted({**known.revisions, repository: commit}.items()))).write(LOCK)
