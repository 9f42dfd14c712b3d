"""Which numbers of a row are printed with a mark, because a remark beside them takes something away from them."""

from __future__ import annotations

from ..records.comparison import CellResult

MARK = "?"
"""Printed after a number that must not be read without its remark."""
TEXT = frozenset({"finish_differs", "no_reference", "no_text"})
"""Remarks on the identity of texts that an `n/N` alone would hide."""


def text_mark(row: CellResult) -> str:
    """The mark for the count of identical texts; empty when the count says all there is to say."""
    text = row.identity
    return MARK if text is not None and any(one.code in TEXT for one in text.reasons) else ""


def acceptance_mark(row: CellResult) -> str:
    """The mark for an acceptance that rests on a window of counters in doubt."""
    return MARK if row.acceptance_doubts else ""
