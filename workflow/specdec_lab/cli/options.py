"""What an option or a variable must hold, told before anything is sent."""

from __future__ import annotations

import math
import os
import re

from ..records.errors import UserError

_UNSENDABLE = re.compile(r"[^\x21-\x7e]")
"""What no header can carry, and no key holds: spaces, line ends, control characters, letters beyond ASCII."""


def require_positive(option: str, value: float | None, like: str) -> None:
    """UserError for an option's number that is none, or is not above 0. A number that was not given is fine."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise UserError(
            f"{value:g} cannot be meant: a number above 0 is.", place=option, fix=f"Write it like {option} {like}."
        )


def key_of(variable: str, option: str) -> str:
    """The key in an environment variable. UserError, which never shows it, for one that cannot be sent."""
    key = os.environ.get(variable)
    if not key:
        state = "is not set" if key is None else "is empty"
        raise UserError(
            f"The environment variable {variable} {state}.",
            place=option,
            fix=f"Set it (`export {variable}=...`), or leave {option} out for an endpoint without a key.",
        )
    wrong = _UNSENDABLE.search(key)
    if wrong is not None:
        raise UserError(
            f"The key in {variable} cannot be sent: its character {wrong.start() + 1} is {_named(wrong[0])}.",
            place=option,
            fix=f"Set {variable} to the key alone, without spaces, line ends or quotes around it.",
        )
    return key


def _named(character: str) -> str:
    if character in "\r\n":
        return "a line end"
    return "a space or control character" if character.isspace() or ord(character) < 128 else "not ASCII"
