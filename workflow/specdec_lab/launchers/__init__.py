"""How a server is started and surely stopped: docker, process, attach."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from ..records.errors import UserError
from .base import Launcher

NAMES = ("docker", "process", "attach")


def get(name: str) -> Launcher:
    """The launcher of that name; UserError for an unknown one."""
    if name not in NAMES:
        raise UserError(f"unknown launcher {name!r}", fix=f"one of: {', '.join(NAMES)}", code="unknown_launcher")
    return cast(Launcher, import_module(f".{name}", __name__).LAUNCHER)
