"""What each server software is: one small file per engine behind one Protocol (M20)."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from ..records.errors import UserError
from .base import Engine

NAMES = ("vllm", "llama_cpp", "sglang", "nim", "openai")


def get(name: str) -> Engine:
    """The engine of that name; UserError for an unknown one."""
    if name not in NAMES:
        raise UserError(f"unknown engine {name!r}", fix=f"one of: {', '.join(NAMES)}", code="unknown_engine")
    return cast(Engine, import_module(f".{name}", __name__).ENGINE)
