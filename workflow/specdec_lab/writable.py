"""Whether a folder that need not be there yet can be written to, known before anything runs."""

from __future__ import annotations

import os
from pathlib import Path

from .records.errors import UserError


def existing(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that is there. What may not be looked into counts as not there."""
    folder = folder.absolute()
    return next(path for path in (folder, *folder.parents) if os.path.exists(path) or path == path.parent)  # noqa: PTH110


def require_writable(folder: Path, whose: str, fix: str) -> None:
    """UserError unless files can be put into `folder`; `whose` names it in the message: `of the results`."""
    there = existing(folder)
    if not there.is_dir():
        raise UserError(
            f"A file stands where the folder {whose} belongs.",
            place=str(there),
            fix=f"Move it away, or {fix}.",
            code="not_writable",
        )
    if not os.access(there, os.W_OK | os.X_OK):
        raise UserError(
            f"The folder {whose} cannot be written to.",
            place=str(there),
            fix=f"Change its owner or rights, or {fix}.",
            code="not_writable",
        )
