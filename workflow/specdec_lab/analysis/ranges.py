"""For which loads a mode is deployed, and how it stands at the others (M31, M32, B7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..records.base import Finding
from ..records.comparison import CellResult


@dataclass(frozen=True)
class Judged:
    """One mode at one load of a workload, with what keeps it from being deployed there."""

    row: CellResult
    against_it: list[Finding]

    @property
    def pays(self) -> bool:
        """Whether it may be deployed at this load."""
        return not self.against_it


class Range(NamedTuple):
    """The concurrencies that a mode is for."""

    begin: int | None = None
    up_to: int | None = None
    crossover: int | None = None
    """The first measured concurrency above at which it pays no more."""
    unknown: tuple[int, ...] = ()
    """Where the range ends only because nothing can be said of the next load: a cell is missing."""


def range_of(winner: CellResult | None, every: Sequence[Judged], rows: Sequence[CellResult]) -> Range:
    """The range that the winner is for.

    A load answers for the concurrencies from just above the next lower load up to itself. Only loads next to each other
    count: one at which the winner pays again, beyond one at which it does not, is left out. A router can follow one
    range, and the sentence says that one.
    """
    if winner is None or winner.concurrency is None:
        return Range()
    own = [one for one in every if one.row.mode == winner.mode]
    pays = {one.row.concurrency for one in own if one.pays}
    known = {one.row.concurrency for one in own if one.row.decode is not None and one.row.decode.ratio is not None}
    loads = sorted({row.concurrency for row in rows if row.concurrency is not None})
    at = loads.index(winner.concurrency)
    below = next((load for load in reversed(loads[:at]) if load not in pays), 0)
    above = next((load for load in loads[at:] if load not in pays), None)
    return Range(
        begin=below + 1,
        up_to=max(load for load in loads if above is None or load < above),
        crossover=above if above in known else None,
        unknown=tuple(load for load in (below, above) if load and load not in known),
    )


def elsewhere(winner: CellResult | None, everywhere: Sequence[Judged], up_to: int | None) -> str:
    """How the winner stands at the loads above those it is deployed for, and at request rates.

    `plain from 4 on` may be a loss, a gain that was not shown, or one whose texts are not settled; a reader must know.
    """
    if winner is None:
        return ""
    own = sorted(
        (one for one in everywhere if one.row.mode == winner.mode and one.row.load != winner.load),
        key=lambda one: (one.row.concurrency or 0, one.row.rate or 0.0),
    )
    above = [_told(one) for one in own if one.row.concurrency is not None and one.row.concurrency > (up_to or 0)]
    rates = [_told(one) for one in own if one.row.rate is not None]
    return "".join(
        f" {title}: {'; '.join(told)}." for title, told in (("Above", above), ("At request rates", rates)) if told
    )


def _told(one: Judged) -> str:
    row = one.row
    speed = f" {row.decode.ratio:.2f}x" if row.decode is not None and row.decode.ratio is not None else ""
    word = row.verdict.word if row.verdict is not None else row.status
    but = f", but {one.against_it[0].message.rstrip('.')}" if word == "faster" and one.against_it else ""
    return f"{row.load}{speed}, {word}{but}"
