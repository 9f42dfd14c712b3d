"""Judgements that need more than one cell: a drafter that remembers, a placebo that gains, text over all cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..records.base import Finding
from ..records.comparison import CellResult, Comparison
from ..records.verdict import Verdict
from .findings import finding
from .statistics import fisher_more

REMEMBERING = frozenset({"suffix", "ngram-cache", "ngram-mod", "ngram-map-k", "ngram-map-k4v", "NGRAM"})
"""Methods that draft from what the server answered to earlier requests."""
RISE = 0.05
"""Acceptance that rises by more than this when a server sees the same prompts again was remembered, not drafted."""
EXCESS = 0.01
"""Fisher p, over all cells of a mode, below which it differs more often than the baseline from itself."""


@dataclass(frozen=True)
class Remembered:
    """What is kept of one start's cell to see whether its drafter knew the prompts."""

    mode: str
    kind: str
    load: str
    server: str
    order: int
    rate: float | None


def over_all_cells(comparison: Comparison, memory: Sequence[Remembered]) -> Comparison:
    """The comparison with those rows changed that another cell throws doubt on."""
    methods = {mode.name: mode.method for mode in comparison.plan.modes}
    doubts: dict[tuple[str, str, str], list[Finding]] = {}
    for key, found in remembered(memory, methods).items():
        doubts.setdefault(key, []).append(found)
    for row in comparison.cells:
        for key, found in _placebo(row, comparison):
            doubts.setdefault(key, []).append(found)
    spoilt = excess_overall(comparison.cells)
    rows = [
        _text_doubted(_doubted(row, doubts.get((row.mode, row.kind, row.load), [])), spoilt.get(row.mode))
        for row in comparison.cells
    ]
    return comparison.model_copy(update={"cells": rows})


def _doubted(row: CellResult, found: list[Finding]) -> CellResult:
    if not found or row.verdict is None:
        return row
    word = row.verdict.word
    if word in ("faster", "slower", "undecided", "no difference shown"):
        verdict = Verdict(word="unreliable", reasons=[*found, *row.verdict.reasons])
    else:
        verdict = row.verdict
    return row.model_copy(update={"findings": [*row.findings, *found], "verdict": verdict})


def _text_doubted(row: CellResult, found: Finding | None) -> CellResult:
    if found is None or row.identity is None or row.identity.word not in ("within own variation", "undecided"):
        return row
    if any(reason.code == "near_ties" for reason in row.identity.reasons):
        return row
    identity = row.identity.model_copy(update={"word": "undecided", "reasons": [*row.identity.reasons, found]})
    return row.model_copy(update={"identity": identity})


def remembered(memory: Sequence[Remembered], methods: dict[str, str | None]) -> dict[tuple[str, str, str], Finding]:
    """Cells whose drafter had seen the same prompts in the same server, and accepted more for it.

    Per server the first cell of a kind is fresh; a later one of that kind repeats its prompts.
    """
    found: dict[tuple[str, str, str], Finding] = {}
    servers: dict[tuple[str, str, str], list[Remembered]] = {}
    for one in memory:
        if methods.get(one.mode) in REMEMBERING and one.rate is not None:
            servers.setdefault((one.mode, one.server, one.kind), []).append(one)
    for (mode, _, kind), cells in servers.items():
        first, *later = sorted(cells, key=lambda one: one.order)
        for cell in later:
            if cell.rate is not None and first.rate is not None and cell.rate - first.rate > RISE:
                text = f"Acceptance rose from {first.rate:.0%} to {cell.rate:.0%} when the same prompts came again."
                found[(mode, kind, cell.load)] = finding("remembers_repeats", text)
    return found


def _placebo(row: CellResult, comparison: Comparison) -> list[tuple[tuple[str, str, str], Finding]]:
    """A placebo that is shown to gain or lose throws doubt on every mode of its cell."""
    placebos = {mode.name for mode in comparison.plan.modes if mode.placebo}
    if row.mode not in placebos or row.verdict is None or row.verdict.word not in ("faster", "slower"):
        return []
    ratio = row.decode.ratio if row.decode else None
    text = f"The placebo {row.mode} is {row.verdict.word} here ({ratio or 1:.2f}x), and it is the baseline itself."
    return [
        ((other.mode, row.kind, row.load), finding("placebo_gains", text))
        for other in comparison.cells
        if (other.kind, other.load, other.against) == (row.kind, row.load, row.against)
    ]


def excess_overall(rows: Sequence[CellResult]) -> dict[str, Finding]:
    """Modes whose texts, over all their cells, differ more often than the baseline's own.

    The shares over all pairs of starts are turned back into prompts, so that many pairs of one prompt are not taken for
    many prompts; the same prompts under several loads count once, at the load with most differences.
    """
    found = {}
    for mode in {row.mode for row in rows if row.against is not None}:
        per_kind: dict[str, tuple[float, float, int]] = {}
        for row in rows:
            text = row.identity
            if row.mode != mode or text is None or text.control_differing_share is None or text.differing_share is None:
                continue
            one = (text.differing_share, text.control_differing_share, text.n)
            kept = per_kind.get(row.kind)
            if kept is None or one[0] - one[1] > kept[0] - kept[1]:
                per_kind[row.kind] = one
        n = sum(count for _, _, count in per_kind.values())
        ours = round(math.fsum(share * count for share, _, count in per_kind.values()))
        theirs = round(math.fsum(share * count for _, share, count in per_kind.values()))
        if n and fisher_more(ours, n, theirs, n) < EXCESS:
            found[mode] = finding(
                "excess_overall",
                f"Over all workloads {ours}/{n} texts of {mode} differ, {theirs}/{n} of the baseline's own.",
            )
    return found
