"""What of a row cannot be compared, and why: a gate must never take it for no change (M37)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..records.comparison import CellResult, Gain

NOTHING_DRAFTED = frozenset({"not_applicable", "not_exercised"})
"""Without a draft there is no acceptance to know."""

_SPEED = frozenset({"survivors_only", "client_bound", "foreign_traffic", "identical_numbers", "warm_cache"})
_COUNTED = frozenset({"foreign_traffic", "counters_disagree", "counter_reset", "acceptance_inconsistent"})
"""Errors of a row that forbid the use of its own speeds and counts. Others forbid only the ratio to its baseline."""
_WHAT = {
    "decode": "P50 decode",
    "throughput": "tokens per second",
    "ttft": "P50 time to first token",
    "acceptance": "acceptance rate",
    "identity": "share of identical texts",
}


def of_prompts(a: Collection[str], b: Collection[str]) -> str:
    """Why two rows did not surely answer the same prompts; empty when they did."""
    for name, sent in (("A", a), ("B", b)):
        if not all(sent):
            return f"{name} does not say which prompts were sent"
        if len(sent) > 1:
            return f"the starts of {name} were sent different prompts"
    return "" if set(a) == set(b) else "other prompts were sent"


def of_row(a: CellResult, b: CellResult, gains: Mapping[str, Gain]) -> dict[str, str]:
    """Quantity -> which side lacks it."""
    found = {name: _lacking(gain.baseline_starts or None, gain.starts or None) for name, gain in gains.items()}
    sides = (a.acceptance, b.acceptance)
    if any(one is not None and one.status not in NOTHING_DRAFTED for one in sides):
        found["acceptance"] = _lacking(*(one.acceptance_rate if one is not None else None for one in sides))
    if a.against is not None or b.against is not None:
        found["identity"] = _lacking(share(a), share(b))
    told = {name: f"no {_WHAT[name]} in {lacking}" for name, lacking in found.items() if lacking}
    for name, codes in {**dict.fromkeys(gains, _SPEED), "acceptance": _COUNTED}.items():
        spoiled = _spoiled(a, b, codes)
        if spoiled and name in found:
            told.setdefault(name, spoiled)
    return told


def _spoiled(a: CellResult, b: CellResult, codes: Collection[str]) -> str:
    sides = []
    for name, row in (("A", a), ("B", b)):
        grave = sorted({one.code for one in row.findings if one.severity == "error" and one.code in codes})
        if grave:
            sides.append(f"the numbers of {name} must not be used ({', '.join(grave)})")
    return " and ".join(sides)


def share(row: CellResult) -> float | None:
    """Share of a row's texts that are the baseline's; None where texts were not judged."""
    return row.identity.identical / row.identity.n if row.identity is not None and row.identity.n else None


def _lacking(a: float | None, b: float | None) -> str:
    return " and ".join(name for name, value in (("A", a), ("B", b)) if value is None)
