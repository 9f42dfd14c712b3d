"""The same prompts in both modes, request against request (D9). Pairing removes what differs between prompts.

Per start one number: the geometric mean over the prompts that all compared starts have. Its gain therefore keeps the
server start as the unit, and is steadier than a ratio of medians, which leans on the two requests in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..records.comparison import Gain, Paired
from ..records.decision import DecisionRules
from .cells import Measured
from .statistics import Spread, gain, geometric_mean, logs, noise_floor, pooled

FEWEST = 5
"""Prompts in common below which the per-prompt gain is not used for a verdict."""


@dataclass(frozen=True)
class PerPrompt:
    """The per-prompt gain with what it was made of."""

    gain: Gain
    ours: list[float]
    theirs: list[float]
    spread: Spread
    prompts: int


def common(cells: Iterable[Measured]) -> set[str]:
    """Prompts with a decode rate in every one of these cells."""
    return set.intersection(*(set(cell.rates) for cell in cells))


def start_means(cells: Sequence[Measured], prompts: set[str]) -> list[float]:
    """Per start: exp(mean over the prompts of log decode rate). The sum is exact, so that a set's order, which differs
    from process to process, cannot change the last digit: a bundle's tables must follow from its rows to the byte."""
    means = []
    for cell in cells:
        known = cell.rates
        means.append(math.exp(fmean(math.log(known[p]) for p in prompts)))
    return means


def spread_of_starts(family: Iterable[Sequence[Measured]]) -> Spread:
    """Between-start spread of the per-prompt means, pooled over modes, each on the prompts of its own starts."""
    return pooled([logs(start_means(mode, own)) for mode in family if mode and (own := common(mode))])


def per_prompt(
    cells: Sequence[Measured], baseline: Sequence[Measured], spread: Spread, rules: DecisionRules
) -> PerPrompt | None:
    """The gain per prompt, with the spread of `spread_of_starts` over the whole family. None: no pairs."""
    prompts = common([*cells, *baseline])
    if not prompts:
        return None
    ours, theirs = start_means(cells, prompts), start_means(baseline, prompts)
    measured = gain(
        ours, theirs, spread=spread, floor=noise_floor(theirs), margin=rules.margin, confidence=rules.confidence
    )
    return PerPrompt(measured, ours, theirs, spread, len(prompts))


def paired(cells: Sequence[Measured], baseline: Sequence[Measured]) -> Paired:
    """Each rule is antisymmetric: swapping mode and baseline gives the reciprocal (D9)."""
    ours, theirs = [cell.rates for cell in cells], [cell.rates for cell in baseline]
    prompts = sorted(common([*cells, *baseline]))
    pairs = {p: (geometric_mean([one[p] for one in ours]), geometric_mean([one[p] for one in theirs])) for p in prompts}
    known = {p: (mine, base) for p, (mine, base) in pairs.items() if mine and base}
    mine_tokens = {one.id: one.tokens for one in cells[0].ok if one.tokens is not None}
    base_tokens = {one.id: one.tokens for one in baseline[0].ok if one.tokens is not None}
    ratios = [math.log(mine / base) for mine, base in known.values()]
    return Paired(
        prompts=len(known),
        geometric=math.exp(fmean(ratios)) if ratios else None,
        total_time=_total_time(known, mine_tokens, base_tokens),
        slower=sum(ratio < -1e-9 for ratio in ratios),
        length_differs=sum(mine_tokens[p] != base_tokens[p] for p in mine_tokens.keys() & base_tokens.keys()),
    )


def _total_time(known: dict[str, tuple[float, float]], ours: dict[str, int], theirs: dict[str, int]) -> float | None:
    """Seconds per decoded token over all prompts, baseline / mode; decoded tokens = completion tokens - 1."""
    counted = [p for p in known if ours.get(p, 0) > 1 and theirs.get(p, 0) > 1]
    mine = math.fsum((ours[p] - 1) / known[p][0] for p in counted), sum(ours[p] - 1 for p in counted)
    base = math.fsum((theirs[p] - 1) / known[p][1] for p in counted), sum(theirs[p] - 1 for p in counted)
    return (base[0] / base[1]) / (mine[0] / mine[1]) if counted else None
