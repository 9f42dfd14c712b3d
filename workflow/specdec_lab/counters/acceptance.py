"""M4: acceptance from the deltas of one window. The one place of its formulas.

- acceptance rate = accepted / drafted tokens
- acceptance length = 1 + accepted / drafts: tokens per target pass, the bonus token included
- per position = accepted at that draft position / drafts
- self-check: acceptance length = 1 + the sum of the positions' rates, and no position is accepted more often than one
  before it, since a draft is accepted from its start; positions that fail it are not given

Where an engine counts verification passes only (SGLang), acceptance length = generated tokens / verification passes,
a close upper estimate: each request's first token comes from its prefill, not from a pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

from ..records.base import Finding
from ..records.cell import Acceptance

FORMULAS = {
    "acceptance_rate": "accepted tokens / draft tokens",
    "acceptance_length": "1 + accepted tokens / drafts (the bonus token counts)",
    "per_position": "accepted tokens at that draft position / drafts",
}
PASS_FORMULAS = {"acceptance_length": "generated tokens / verification passes (the bonus token counts)"}

_SELFCHECK_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Speculation:
    """Deltas of the speculation counters over one window; None where the server has no such counter."""

    drafts: float | None
    draft_tokens: float | None
    accepted_tokens: float | None
    verify_calls: float | None = None
    generation_tokens: float | None = None
    positions: list[float] = field(default_factory=list)
    """Accepted tokens at each draft position, in order; empty when they are not known."""
    gaps: frozenset[int] = frozenset()
    """Positions below the last one that the server shows nothing of; they stand in `positions` as 0 (case B9)."""


def judge(spec: Speculation) -> Acceptance:
    """The acceptance that these deltas show; `invalid` when they contradict each other (case B7).

    Nothing drafted is `not_exercised` with null rates, never 0 % and never a division by zero (case B6).
    """
    if spec.drafts is None and spec.draft_tokens is None and spec.verify_calls is not None:
        return _from_passes(spec.verify_calls, spec.generation_tokens)
    counts = {
        "drafts": _whole(spec.drafts),
        "draft_tokens": _whole(spec.draft_tokens),
        "accepted_tokens": _whole(spec.accepted_tokens),
    }
    wrong = _contradictions(spec)
    if wrong:
        finding = Finding(
            code="acceptance_inconsistent",
            severity="error",
            message=f"The speculation counters contradict each other: {'; '.join(wrong)}. No acceptance is given.",
            hint="Check what this engine version counts as drafted; keep the scrapes with the result.",
        )
        return Acceptance(status="invalid", **counts, findings=[finding])
    if 0 in (spec.drafts, spec.draft_tokens):
        return Acceptance(status="not_exercised", **counts, findings=[_nothing_drafted()])
    rate = None
    if spec.draft_tokens and spec.accepted_tokens is not None:
        rate = spec.accepted_tokens / spec.draft_tokens
    length = None
    per_position: list[float] = []
    if spec.drafts:
        per_position = [value / spec.drafts for value in spec.positions]
        if spec.accepted_tokens is not None:
            length = 1 + spec.accepted_tokens / spec.drafts
    doubts = _selfcheck(length, per_position, spec.gaps)
    return Acceptance(
        status="measured",
        **counts,
        acceptance_rate=rate,
        acceptance_length=length,
        per_position=[] if doubts else per_position,
        findings=doubts,
    )


def _contradictions(spec: Speculation) -> list[str]:
    wrong = []
    drafts, drafted, accepted = spec.drafts, spec.draft_tokens, spec.accepted_tokens
    if accepted is not None and drafted is not None and accepted > drafted:
        wrong.append(f"{accepted:g} tokens accepted of {drafted:g} drafted")
    if accepted and drafts == 0:
        wrong.append(f"{accepted:g} tokens accepted without a draft")
    if drafts is not None and drafted is not None and drafted < drafts:
        wrong.append(f"{drafts:g} drafts hold only {drafted:g} tokens")
    if drafts is not None and any(value > drafts for value in spec.positions):
        wrong.append(f"a position was accepted more often than the {drafts:g} drafts made")
    return wrong


def _selfcheck(length: float | None, per_position: list[float], gaps: frozenset[int]) -> list[Finding]:
    """What speaks against the positions. Each is one that must not be shown as a number."""
    if not per_position:
        return []
    wrong = []
    if 0 in gaps:
        first = next(place for place in range(len(per_position)) if place not in gaps)
        wrong.append(f"the positions begin at {first}, so which is the first drafted token is not known")
    shown = [(place, rate) for place, rate in enumerate(per_position) if place not in gaps]
    for (earlier, before), (later, rate) in pairwise(shown):
        if rate > before:
            wrong.append(
                f"position {later} was accepted more often ({rate:.3f}) than position {earlier} ({before:.3f})"
            )
    expected = 1 + math.fsum(per_position)
    if length is not None and abs(expected - length) > _SELFCHECK_TOLERANCE * max(1.0, length):
        wrong.append(f"acceptance length {length:.3f} differs from 1 + the sum of the positions, {expected:.3f}")
    if not wrong:
        return []
    return [
        Finding(
            code="acceptance_selfcheck",
            severity="warn",
            message=f"The acceptance per position is not given: {'; '.join(wrong)}.",
            hint="A position may be missing from the scrape, or the counters were read while they moved.",
        )
    ]


def _from_passes(passes: float, generated: float | None) -> Acceptance:
    if not passes:
        return Acceptance(status="not_exercised", drafts=0, findings=[_nothing_drafted()])
    if generated is None:
        missing = Finding(
            code="metric_missing",
            severity="warn",
            message="Verification passes were counted but generated tokens were not, so the length is unknown.",
        )
        return Acceptance(status="measured", drafts=round(passes), findings=[missing])
    if generated < passes:
        wrong = Finding(
            code="acceptance_inconsistent",
            severity="error",
            message=f"{passes:g} verification passes gave only {generated:g} tokens; each pass gives at least one.",
            hint="Was other traffic on the server, or were passes counted for requests that were given up?",
        )
        return Acceptance(status="invalid", drafts=round(passes), findings=[wrong])
    estimated = Finding(
        code="acceptance_estimated",
        severity="info",
        message="This engine counts verification passes only: acceptance length = generated tokens / passes. "
        "Drafted and accepted tokens are unknown.",
    )
    return Acceptance(
        status="measured", drafts=round(passes), acceptance_length=generated / passes, findings=[estimated]
    )


def _nothing_drafted() -> Finding:
    return Finding(
        code="speculation_not_exercised",
        severity="warn",
        message="Speculation not exercised: the server drafted nothing within the window.",
        hint="See the server log for a draft model that failed to load, or a method that finds nothing to copy here.",
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
