"""Measured rows beside what others say: published results, claims, expectations (M39, M40). Never a verdict."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from ..records.base import strict_loads
from ..records.comparison import CellResult, ClaimMatch, Comparison, Reference, ReferenceMatch, Surprise
from ..records.decision import Claim, Expectation, PlannedMode
from ..records.spec import looks_up

TOLERANCE = 0.2
"""A measured speedup within this share of a published range looks like it."""
SAME_METHOD = {
    "ngram": {
        "ngram",
        "ngram_gpu",
        "ngram-simple",
        "ngram-map-k",
        "ngram-map-k4v",
        "ngram-mod",
        "ngram-cache",
        "NGRAM",
    },
    "draft_model": {"draft_model", "draft-simple", "STANDALONE"},
    "eagle3": {"eagle3", "EAGLE3", "draft-eagle3"},
    "eagle": {"eagle", "EAGLE"},
    "mtp": {"mtp", "draft-mtp", "NEXTN"},
    "suffix": {"suffix"},
    "dflash": {"dflash", "DFLASH", "draft-dflash"},
}
"""One method under the names that engines give it."""


@cache
def published() -> tuple[Reference, ...]:
    """Published speedups with their sources. Left out: results without a like-for-like baseline."""
    return tuple(Reference.model_validate(one) for one in _data("published.json"))


@cache
def expectations() -> tuple[Expectation, ...]:
    """Hypotheses that come with the lab, for the workload kinds it knows."""
    return tuple(Expectation.model_validate(one) for one in _data("expectations.json"))


def _data(name: str) -> list[object]:
    content = strict_loads((files(__package__) / name).read_bytes())
    if not isinstance(content, list):
        raise ValueError(f"{name} is not a list")
    return content


def family(method: str | None) -> str | None:
    """The method's common name."""
    return next((name for name, words in SAME_METHOD.items() if method in words), method)


def with_outlook(comparison: Comparison) -> Comparison:
    """The comparison with references, claims and surprises filled in."""
    return comparison.model_copy(
        update={
            "references": references(comparison),
            "claims": [claimed(claim, comparison) for claim in comparison.plan.claims],
            "surprises": surprises(comparison),
        }
    )


def references(comparison: Comparison) -> list[ReferenceMatch]:
    """Each measured row beside the published results for its method and workload, the nearest setting first.

    A result of the same model on the same engine comes first; others are shown when there is none, and say so.
    """
    modes = {mode.name: mode for mode in comparison.plan.modes}
    found = []
    for row in comparison.cells:
        if row.decode is None or row.decode.ratio is None or modes[row.mode].placebo:
            continue
        method = family(modes[row.mode].method)
        near = [one for one in published() if family(one.method) == method and _workload(one, row) and _load(one, row)]
        near.sort(key=lambda one: -_closeness(one, row, comparison))
        found += [_match(row, one, comparison) for one in near[:2]]
    return found


def _workload(one: Reference, row: CellResult) -> bool:
    return one.workload in ("any", row.kind.partition("@")[0])


def _load(one: Reference, row: CellResult) -> bool:
    if one.concurrency is None or row.concurrency is None:
        return True
    return max(one.concurrency, row.concurrency) <= 4 * min(one.concurrency, row.concurrency)


def _model(row: CellResult, comparison: Comparison) -> str:
    spec = comparison.specs.get(row.mode)
    target = spec.checkpoints.get("target") if spec else None
    return ((target.hub or target.path or target.bundled) if target else None) or ""


def _closeness(one: Reference, row: CellResult, comparison: Comparison) -> int:
    spec = comparison.specs.get(row.mode)
    same_model = one.model.lower() in _model(row, comparison).lower()
    same_engine = spec is not None and one.engine == spec.server.engine
    return 4 * same_model + 2 * same_engine + (one.concurrency == row.concurrency) + (one.workload != "any")


def _match(row: CellResult, one: Reference, comparison: Comparison) -> ReferenceMatch:
    measured = row.decode.ratio if row.decode and row.decode.ratio else 1.0
    low, high = one.speedup_low * (1 - TOLERANCE), one.speedup_high * (1 + TOLERANCE)
    alike = low <= measured <= high
    place = "like it" if alike else "above it" if measured > high else "below it"
    reasons = [
        what
        for what, differs in (
            ("another model", one.model.lower() not in _model(row, comparison).lower()),
            ("another engine", one.engine != _engine(row, comparison)),
            ("other prompts", True),
        )
        if differs
    ]
    shown = (
        f"{one.speedup_low:.2f}x"
        if one.speedup_low == one.speedup_high
        else f"{one.speedup_low:.2f} to {one.speedup_high:.2f}x"
    )
    remark = (
        f"{measured:.2f}x here, {shown} published for {one.model} on {one.hardware}: {place} ({', '.join(reasons)})."
    )
    return ReferenceMatch(
        mode=row.mode, kind=row.kind, load=row.load, measured=measured, reference=one, looks_alike=alike, remark=remark
    )


def _engine(row: CellResult, comparison: Comparison) -> str | None:
    spec = comparison.specs.get(row.mode)
    return spec.server.engine if spec else None


def claimed(claim: Claim, comparison: Comparison) -> ClaimMatch:
    """A claim beside the best that was measured for its mode where the claim speaks."""
    rows = [
        row
        for row in comparison.cells
        if row.mode == claim.mode
        and (claim.kind is None or row.kind == claim.kind)
        and (claim.concurrency is None or row.concurrency == claim.concurrency)
        and row.decode is not None
        and row.decode.ratio is not None
        and row.verdict is not None
        and row.verdict.word not in ("unreliable", "not comparable", "not exercised")
    ]
    if not rows:
        return ClaimMatch(claim=claim, remark=f"Claimed: {claim.text}. Nothing reliable was measured for it here.")
    best = max(rows, key=lambda row: row.decode.ratio or 0.0 if row.decode else 0.0)
    ratio = best.decode.ratio if best.decode and best.decode.ratio else 1.0
    told = f"Claimed: {claim.text} ({claim.source}). Best measured here: {ratio:.2f}x ({best.kind} {best.load})."
    if claim.speedup is not None:
        told += " The claim holds here." if ratio >= claim.speedup else " Less than claimed."
    return ClaimMatch(claim=claim, measured_best=ratio, kind=best.kind, load=best.load, remark=told)


def surprises(comparison: Comparison) -> list[Surprise]:
    """Clear wins that nobody expected, and expected winners that did not win, at the lowest load of each kind."""
    modes = {mode.name: mode for mode in comparison.plan.modes}
    own = {one.kind: one for one in comparison.plan.expectations}
    known = {one.kind: one for one in expectations()} | own
    found = []
    for kind in dict.fromkeys(row.kind for row in comparison.cells):
        expected = known.get(kind.partition("@")[0])
        rows = [row for row in comparison.cells if row.kind == kind and row.verdict and not modes[row.mode].placebo]
        if expected is None or not rows:
            continue
        lowest = min(rows, key=lambda row: (row.concurrency or 0, row.rate or 0.0)).load
        found += _of_kind(expected, [row for row in rows if row.load == lowest], modes)
    return found


def _of_kind(expected: Expectation, rows: list[CellResult], modes: dict[str, PlannedMode]) -> list[Surprise]:
    won = {row.mode: row for row in rows if row.verdict and row.verdict.word == "faster"}
    families = {family(modes[row.mode].method) for row in rows}
    found = []
    for row in won.values():
        method = family(modes[row.mode].method)
        lookup = looks_up(method)
        if method in expected.surprise_if and row.decode and row.decode.ratio:
            text = f"{row.mode} is clearly faster on {row.kind} ({row.decode.ratio:.2f}x), which was not expected."
            hint = expected.surprise_hint or ("Are the prompts repetitive?" if lookup else "")
            found.append(Surprise(kind=row.kind, mode=row.mode, expected=expected.first, message=text, hint=hint))
    tried = [method for method in expected.first if method in families]
    winners = {family(modes[name].method) for name in won}
    if tried and won and not winners & set(tried):
        names = ", ".join(won)
        text = f"{tried[0]} was expected to win on {rows[0].kind} ({expected.because}); {names} did."
        found.append(Surprise(kind=rows[0].kind, mode=next(iter(won)), expected=expected.first, message=text))
    return found
