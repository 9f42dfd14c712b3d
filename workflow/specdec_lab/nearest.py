"""A misspelt word's nearest neighbour, for messages."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that this one was probably meant to be, upper and lower case alike; None when none is near.

    `cutoff` is the least likeness, from 0 to 1.
    """
    names = {name.lower(): name for name in sorted(known, reverse=True)}
    found = difflib.get_close_matches(word.lower(), list(names), n=1, cutoff=cutoff)
    return names[found[0]] if found else None


def nearest(word: str, known: Iterable[str]) -> str:
    """`did you mean X?`, or the list of what there is."""
    names = sorted(known)
    close = closest(word, names)
    return f"did you mean `{close}`?" if close else f"known are: {', '.join(names)}"
