"""The decisions of two bundles beside each other, and those that only one of them has (M37)."""

from __future__ import annotations

from ..records.decision import Decision, WorkloadDecision
from .difference import DecisionChange


def compared(a: Decision | None, b: Decision | None) -> tuple[list[DecisionChange], list[str]]:
    """What was decided in both, and a sentence for each decision that cannot be compared."""
    gone = [
        f"{name} has no decision.json (`specdec compare` writes it)"
        for name, side in (("A", a), ("B", b))
        if side is None
    ]
    if a is None or b is None:
        return [], gone
    before = {(one.kind, one.baseline): one for one in a.workloads}
    now = {(one.kind, one.baseline): one for one in b.workloads}
    gone = [f"B has no decision for {kind} against {base}" for kind, base in before if (kind, base) not in now]
    both = [_change(before[key], now[key]) for key in now if key in before]
    if not both and not gone:
        gone = ["A has no decision for any workload"]
    return both, gone


def _change(a: WorkloadDecision, b: WorkloadDecision) -> DecisionChange:
    return DecisionChange(
        kind=b.kind,
        baseline=b.baseline,
        a=a.mode,
        b=b.mode,
        range_a=_range(a),
        range_b=_range(b),
        changed=(a.mode, _span(a)) != (b.mode, _span(b)),
        sentence_a=a.sentence,
        sentence_b=b.sentence,
    )


def _span(one: WorkloadDecision) -> tuple[int, int] | None:
    """From and to; files from before the range had a lower end start at 1."""
    return None if one.up_to is None else (one.from_concurrency or 1, one.up_to)


def _range(one: WorkloadDecision) -> str | None:
    span = _span(one)
    return None if span is None else f"{span[0]} to {span[1]}"
