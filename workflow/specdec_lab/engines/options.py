"""Checks of single options that several engines share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from ..records.base import Finding
from .flags import word


def bad_speculation(message: str, hint: str) -> Finding:
    """A fault of a mode's `speculative` block."""
    return Finding(code="bad_speculation", severity="error", message=message, hint=hint)


def bad_args(message: str, hint: str) -> Finding:
    """A fault of a server's `args`."""
    return Finding(code="bad_args", severity="error", message=message, hint=hint)


def plain_whole(value: JsonValue) -> str:
    """The hint for an option that takes whole numbers: the plain one where 4096.0, "0x10" or "1_000" was given."""
    if isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    try:
        return f"write {int(value, 0)}" if isinstance(value, str) else "write a whole number"
    except ValueError:
        return "write a whole number"


@dataclass(frozen=True)
class Option:
    """What one option may be."""

    kind: Literal["whole", "number", "switch", "text", "any"] = "any"
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    def problems(self, name: str, value: JsonValue) -> Iterator[Finding]:
        """Nothing if the value will do; null always does, it leaves the option out."""
        if value is None:
            return
        if self.kind == "switch" and not isinstance(value, bool):
            yield bad_speculation(f"`{name}` must be true or false, not {word(value)}", "write true or false")
        elif self.kind in ("whole", "number"):
            yield from self._number(name, value)
        elif self.kind == "text" and not isinstance(value, str):
            yield bad_speculation(f"`{name}` must be text, not {word(value)}", "write a text, in quotes")
        elif self.choices and value not in self.choices:
            yield bad_speculation(f"`{name}` cannot be {word(value)}", f"one of: {', '.join(self.choices)}")

    def _number(self, name: str, value: JsonValue) -> Iterator[Finding]:
        wanted = int if self.kind == "whole" else (int, float)
        if isinstance(value, bool) or not isinstance(value, wanted):
            kind = "whole number" if self.kind == "whole" else "number"
            hint = plain_whole(value) if self.kind == "whole" else "write a number"
            yield bad_speculation(f"`{name}` must be a {kind}, not {word(value)}", hint)
            return
        assert isinstance(value, int | float)
        if self.least is not None and value < self.least:
            hint = f"write {self.least:g} or more"
            yield bad_speculation(f"`{name}` must be at least {self.least:g}, not {word(value)}", hint)
        elif self.most is not None and value > self.most:
            hint = f"write {self.most:g} or less"
            yield bad_speculation(f"`{name}` must be at most {self.most:g}, not {word(value)}", hint)
