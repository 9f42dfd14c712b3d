"""A ceiling study in words: acceptance was set, not earned, so what it measures is the price of a step (M18, M29).

Nothing in it can be deployed. What it is good for: the acceptance length from which on a method pays on this machine,
to be held against the length that real traffic reaches.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records.comparison import CellResult

NEXT = "Measure the acceptance length that your traffic reaches (any lossless run shows it) and hold it against these."


def is_ceiling(row: CellResult) -> bool:
    """Whether this row's drafts were accepted by decree."""
    return row.theory is not None and any(one.code == "ceiling_run" for one in row.theory.diagnosis)


def only_ceilings(rows: Sequence[CellResult], base: str) -> bool:
    """Whether every measured mode that is compared with this baseline is a ceiling run."""
    compared = [row for row in rows if row.against == base and row.starts]
    return bool(compared) and all(is_ceiling(row) for row in compared)


def ceiling_sentence(kind: str) -> str:
    """What is said in place of an answer."""
    return f"A ceiling study on {kind}: acceptance was set, not earned, so nothing here is to be deployed."


def prices(rows: Sequence[CellResult], base: str, load: str, words: str) -> str:
    """From which acceptance length on each mode pays at this load, cheapest first; `words` name the load."""
    known = []
    for row in rows:
        if row.against != base or row.load != load or row.theory is None or row.decode is None:
            continue
        price, length, ratio = row.theory.break_even_length, row.theory.measured_length, row.decode.ratio
        if price is not None and ratio is not None:
            gain = f" ({ratio:.2f}x with {length:.2f})" if length is not None else ""
            known.append((price, f"{row.mode} {price:.2f}{gain}"))
    if not known:
        return f"No step's price is known at {words}."
    cheapest_first = [told for _, told in sorted(known, key=lambda one: one[0])]
    return f"At {words} these acceptance lengths break even: {', '.join(cheapest_first)}."
