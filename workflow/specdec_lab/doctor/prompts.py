"""The user's own prompts are looked at before they are read: reading a pipe or a device may never end."""

from __future__ import annotations

from pathlib import Path

from ..config.load import LoadedConfig
from ..config.problems import Problem


def require_readable(loaded: LoadedConfig) -> None:
    """ConfigError when the config names something else than a regular file; what is not there is told by its reader."""
    named = loaded.config.workload.prompts
    if named is None:
        return
    path = Path(named)
    if path.exists() and not path.is_file():
        what = "a folder, no file" if path.is_dir() else "no regular file"
        loaded.refuse([Problem(("workload", "prompts"), f"{named} is {what}", "Name a file of prompts, one a line.")])
