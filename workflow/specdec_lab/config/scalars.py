"""Plain (unquoted) YAML scalars as numbers: what every reader agrees on is read, what readers disagree on is refused.

`1_000`, `0x10`, `0o17`, `010` and `1:30` are numbers for some YAML readers and text for others. Left as text, they
would reach a server's command line letter by letter (case E2).
"""

from __future__ import annotations

import math
import re

_WHOLE = re.compile(r"[-+]?[0-9]+\Z")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"[-+]?\.(nan|inf)\Z", re.IGNORECASE)
_OCTAL = re.compile(r"[-+]?0[0-9_]+\Z")
_BASED = re.compile(r"[-+]?0([bBoOxX])_*[0-9a-fA-F][0-9a-fA-F_]*\Z")
_GROUPED = re.compile(r"[-+]?[0-9]+([_,]+[0-9]+)+(\.[0-9_]*)?([eE][-+]?[0-9]+)?\Z")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?\Z")
_EXACT = 2**53
"""Above this a float no longer holds every whole number, so that writing it without an exponent would invent digits."""


def number(text: str) -> int | float | None:
    """The number that a plain scalar is; None if it is none. ValueError, with the reason, if no run can use it.

    A whole number with an exponent is a whole number (`1e3` is 1000), because a server's option that wants one takes no
    `1000.0`. `64.0` stays what it is written as.
    """
    if _NOT_FINITE.match(text):
        raise ValueError("is not a finite number")
    if _WHOLE.match(text) and not _OCTAL.match(text):
        return int(text)
    if not _NUMBER.match(text) or _OCTAL.match(text):
        return None
    value = float(text)
    if math.isinf(value):
        raise ValueError("is too large for a number")
    written_with_exponent = "e" in text.lower()
    return int(value) if written_with_exponent and value.is_integer() and abs(value) < _EXACT else value


def ambiguous(text: str) -> str | None:
    """How to write instead what readers disagree on, in the words of a fix; None where they agree."""
    if _OCTAL.match(text):
        return f'Write {int(text.replace("_", ""))} without the leading zero, or "{text}" if it is text.'
    plain: int | float | None = None
    if (based := _BASED.match(text)) is not None:
        try:
            plain = int(text.replace("_", ""), {"b": 2, "o": 8, "x": 16}[based[1].lower()])
        except ValueError:  # 0b12, 0o9: digits that this base does not have
            return None
    elif _GROUPED.match(text):
        plain = number(re.sub("[_,]", "", text))
    elif not _SEXAGESIMAL.match(text):
        return None
    return f'Write {plain}, or "{text}" if it is text.' if plain is not None else f'Quote it if it is text: "{text}".'
