"""Answers that went wrong in a way one can see without understanding them: loops and emptiness (M33).

A finding only when the baseline's answer to the same prompt is not degenerate in the same way: small models loop too.
"""

from __future__ import annotations

import math
from typing import Literal

Fault = Literal["loop", "empty"]

TAIL = 600
"""Characters at the end of a text that are searched for a loop."""
LOOP_SHARE = 0.6
"""A loop fills at least this share of the tail..."""
LOOP_CHARS = 60
"""...and at least so many characters..."""
LOOP_TURNS = 4
"""...with at least so many turns."""


def fault(text: str | None) -> Fault | None:
    """`empty`: nothing but white space. `loop`: the end of the text is one piece over and over. Else None."""
    if text is None:
        return None
    if not text.strip():
        return "empty"
    return "loop" if looping(text) else None


def looping(text: str) -> bool:
    """Whether the text ends in at least `LOOP_TURNS` turns of one piece that fill most of its tail.

    The tail is compared with itself, shifted by each possible period: a loop of period p agrees with its shift by p.
    Rules of one repeated character (`-----`, a row of spaces) end many sound texts, so they need a whole tail.
    """
    tail = text.rstrip()[-TAIL:]
    size = len(tail)
    fill = max(LOOP_CHARS, math.ceil(LOOP_SHARE * size))
    for period in range(1, size // LOOP_TURNS + 1):
        needed = max(fill, LOOP_TURNS * period)
        if needed > size or tail[size - needed + period :] != tail[size - needed : size - period]:
            continue
        plain = len(set(tail[size - period :])) == 1
        if not plain or (size == TAIL and len(set(tail)) == 1):
            return True
    return False
