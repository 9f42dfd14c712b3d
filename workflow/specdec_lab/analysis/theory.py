"""M4, M29, M30: what acceptance promises, beside what was measured. Acceptance is not speedup.

With an acceptance rate a per drafted token and k drafted tokens per step, one target pass yields on average
(1 - a^(k+1)) / (1 - a) tokens (Leviathan et al. 2023, arXiv 2211.17192, equation 1); a = 0.8, k = 4 gives 3.36. What a
step costs is measured, not assumed: step cost ratio = tokens per step / decode speedup. The same number is the tokens
per step that a step of this cost needs to break even.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..records.base import Finding
from ..records.cell import Acceptance, AcceptanceStatus
from ..records.comparison import Theory
from ..records.spec import looks_up
from .findings import finding

DRAFT_COST = 0.1
"""Assumed cost of one draft step as a share of a target step, for the ceiling; 0 for methods that look drafts up."""
LOW_RATE, HIGH_RATE = 0.5, 0.75
LITTLE_SPEEDUP = 1.2
WRONG_HEAD_RATE = 0.05
LOW_COVERAGE = 0.3


def expected_length(rate: float, k: int) -> float:
    """Tokens per target pass: (1 - a^(k+1)) / (1 - a); k + 1 when every draft is accepted."""
    return float(k + 1) if rate >= 1 else (1 - rate ** (k + 1)) / (1 - rate)


def ceiling(rate: float, k: int, draft_cost: float = DRAFT_COST) -> float:
    """Speedup that could be had if verifying cost nothing: expected_length / (1 + k * draft_cost). 0.8, 4, 0.1: 2.4."""
    return expected_length(rate, k) / (1 + k * draft_cost)


def added(windows: Sequence[Acceptance]) -> Acceptance | None:
    """The acceptance of several starts: counters added, rates from the sums. The gravest status wins."""
    if not windows:
        return None
    gravest: tuple[AcceptanceStatus, ...] = ("invalid", "absent")
    for status in gravest:
        if any(one.status == status for one in windows):
            return Acceptance(status=status, findings=[found for one in windows for found in one.findings])
    measured = [one for one in windows if one.status == "measured"]
    if not measured:
        return windows[0]
    drafts = _total([one.drafts for one in measured])
    drafted = _total([one.draft_tokens for one in measured])
    accepted = _total([one.accepted_tokens for one in measured])
    length = 1 + accepted / drafts if drafts and accepted is not None else _mean_length(measured)
    nothing = drafts == 0 or (drafts is None and not drafted and length is None)
    # A start whose positions are not known leaves them unknown for all.
    drew = [one for one in measured if one.drafts]
    places = max((len(one.per_position) for one in drew if all(each.per_position for each in drew)), default=0)
    return Acceptance(
        status="not_exercised" if nothing else "measured",
        drafts=drafts,
        draft_tokens=drafted,
        accepted_tokens=accepted,
        acceptance_rate=accepted / drafted if drafted and accepted is not None else None,
        acceptance_length=length,
        per_position=[
            math.fsum(
                (one.per_position[i] if i < len(one.per_position) else 0.0) * (one.drafts or 0) for one in measured
            )
            / drafts
            for i in range(places)
        ]
        if drafts
        else [],
        findings=[found for one in measured for found in one.findings],
    )


def _total(counts: Sequence[int | None]) -> int | None:
    """The sum; None as soon as one start's count is not known."""
    return None if None in counts else sum(count for count in counts if count is not None)


def _mean_length(measured: Sequence[Acceptance]) -> float | None:
    """For an engine that gives the length alone: the mean over starts, by drafted steps where they are known."""
    known = [(one.acceptance_length, one.drafts or 1) for one in measured if one.acceptance_length is not None]
    return math.fsum(length * weight for length, weight in known) / sum(w for _, w in known) if known else None


def theory(
    acceptance: Acceptance | None,
    *,
    k: int | None,
    method: str | None,
    completion_tokens: int | None,
    speedup: float | None,
    made_up: bool = False,
) -> Theory | None:
    """Expected and measured tokens per step, step cost ratio, coverage and the diagnosis; None without acceptance.

    tokens per step = T / (T - accepted), over all decode steps; coverage = drafts / (T - accepted): each drafted step
    yields its accepted tokens and one more, every other step one. Engines count acceptance before a stop cuts the last
    step short, so both are right to within one step per request.
    """
    if acceptance is None or acceptance.status != "measured" or acceptance.acceptance_rate is None:
        return None
    rate, length = acceptance.acceptance_rate, acceptance.acceptance_length
    cost = 0.0 if looks_up(method) else DRAFT_COST
    accepted, drafts = acceptance.accepted_tokens, acceptance.drafts
    per_step = coverage = None
    if completion_tokens and accepted is not None and drafts and accepted < completion_tokens:
        steps = completion_tokens - accepted
        per_step = completion_tokens / steps
        coverage = min(drafts / steps, 1.0)
    bound = per_step if per_step is not None else length
    step_cost = bound / speedup if bound is not None and speedup else None
    return Theory(
        k=k,
        expected_length=expected_length(rate, k) if k else None,
        measured_length=length,
        ceiling=ceiling(rate, k, cost) if k else None,
        draft_cost=cost,
        step_cost_ratio=step_cost,
        break_even_length=step_cost,
        coverage=coverage,
        tokens_per_step=per_step,
        diagnosis=[
            finding("ceiling_run", "Drafts are accepted by decree, so this is the engine's ceiling at that length.")
        ]
        if made_up
        else diagnosis(rate, speedup=speedup, coverage=coverage, method=method),
    )


def diagnosis(rate: float, *, speedup: float | None, coverage: float | None, method: str | None) -> list[Finding]:
    """M30: why it gains as much or as little as it does."""
    found = []
    if rate < WRONG_HEAD_RATE and method is not None and "eagle" in method.lower():
        found.append(finding("wrong_head", f"Only {rate:.0%} of an EAGLE head's drafts are accepted."))
    elif rate < LOW_RATE:
        found.append(
            finding("poor_fit", f"{rate:.0%} of the drafts are accepted: the proposer does not fit this workload.")
        )
    elif rate > HIGH_RATE and speedup is not None and speedup < LITTLE_SPEEDUP:
        found.append(
            finding("overhead", f"{rate:.0%} of the drafts are accepted, and yet it is {speedup:.2f}x: overhead.")
        )
    if coverage is not None and coverage < LOW_COVERAGE and rate >= LOW_RATE:
        found.append(finding("low_coverage", f"Only {coverage:.0%} of the decode steps carried a draft."))
    return found
