"""What to deploy, per workload and concurrency (M7, M31, M32, M35, B7). `off` is an answer.

A mode pays at a load when all of this holds: P50 decode gains at least the margin; the gain is shown (see
`statistics`); it is beyond the noise floor; aggregate throughput does not fall there; the texts are the baseline's up
to its own variation, or nearly all are equal (one late difference is allowed: 2 % of 40 prompts would be none; an
equal text that ends for another reason counts like a different one); at least two starts of each, nothing missing,
speculation exercised; and it is neither a placebo nor lossy. Among those that pay, the fastest wins; within the noise
of the fastest, the simpler mode (the one that stands earlier in the plan) and the smaller K win. The tie rule follows
the tuner proposed in vLLM PR 49163.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from ..records.base import Finding, write_text_atomic
from ..records.comparison import CellResult, Comparison, Identity
from ..records.decision import Candidate, Decision, DecisionRules, WorkloadDecision
from ..records.verdict import Verdict, Word
from .ceiling import only_ceilings
from .findings import finding
from .identity import early
from .ranges import Judged, elsewhere, range_of
from .routing import batch_routes, dynamic_k, routes
from .sentences import MISSING, decision_page, next_step, sentence, why

UNSETTLED = frozenset(
    {"identical_too_few", "finish_differs", "no_baseline", "no_reference", "no_text", "throughput_unknown"}
)
"""What keeps a faster mode from being adopted until somebody has looked at it."""
TIE = 0.01
"""Two modes closer than this, or than the noise floor, are equally fast."""


def write(results_dir: Path) -> Decision:
    """Decide from `comparison.json` and write `decision.json`, `decision.md` and `deploy/`."""
    from .deploy import write_deploy

    comparison = Comparison.read(results_dir / "comparison.json")
    decision = decide(comparison)
    decision = write_deploy(decision, comparison, results_dir / "deploy")
    decision.write(results_dir / "decision.json")
    write_text_atomic(results_dir / "decision.md", decision_page(decision, comparison))
    return decision


def decide(comparison: Comparison) -> Decision:
    """One answer per workload kind and baseline, with routes and dynamic K where they fit."""
    plan = comparison.plan
    workloads: list[WorkloadDecision] = []
    for base in (mode.name for mode in plan.modes if mode.against is None):
        for kind in dict.fromkeys(row.kind for row in comparison.cells):
            rows = [row for row in comparison.cells if row.kind == kind and base in (row.mode, row.against)]
            if any(row.against == base for row in rows):
                workloads.append(_workload(kind, base, rows, comparison))
    first = [one for one in workloads if one.baseline == workloads[0].baseline]
    return Decision(
        name=comparison.name,
        rules=plan.rules,
        workloads=workloads,
        routes=[
            *(route for one in first for route in routes(one)),
            *(route for one in first for route in batch_routes(one)),
        ],
        dynamic_k=dynamic_k(workloads, comparison, lambda row: judged(row, plan.rules, comparison).pays),
        findings=comparison.findings,
    )


def judged(row: CellResult, rules: DecisionRules, comparison: Comparison) -> Judged:
    """Whether one row pays, and everything that speaks against it."""
    mode = next(one for one in comparison.plan.modes if one.name == row.mode)
    found: list[Finding] = []
    word = row.verdict.word if row.verdict else "not comparable"
    if word != "faster" and row.verdict is not None:
        found += row.verdict.reasons[:2] or [finding("interval_spans_one", f"Verdict: {word}.")]
    if row.status != "measured" and not any(one.code in ("partial", "failed_mode", "missing_cell") for one in found):
        found.append(finding("partial", f"{row.mode} is {row.status} here."))
    if mode.placebo:
        found.append(finding("placebo", f"{row.mode} is a placebo."))
    if mode.lossy:
        found.append(finding("lossy", f"{row.mode} may change the text."))
    found += _size(row, rules)
    found += _text(row, rules)
    return Judged(row, found)


def _size(row: CellResult, rules: DecisionRules) -> list[Finding]:
    decode, aggregate = row.decode, row.aggregate
    found = []
    if row.verdict is not None and row.verdict.word == "faster" and decode is not None and decode.ratio is not None:
        if min(decode.starts, decode.baseline_starts) < 2:
            found.append(finding("one_start", "Two starts of each are the least to adopt on."))
        if decode.ratio < 1 + rules.margin:
            text = f"{decode.ratio:.2f}x is below the margin of {rules.margin:.0%}."
            found.append(finding("below_margin", text))
        if row.rate is None and (row.aggregate is None or row.aggregate.ratio is None):
            found.append(finding("throughput_unknown", "Aggregate throughput is not known here."))
    if throughput_falls(row, rules):
        ratio = aggregate.ratio if aggregate and aggregate.ratio else 1.0
        found.append(finding("throughput_falls", f"Aggregate throughput is {ratio:.2f}x the baseline's."))
    return found


def throughput_falls(row: CellResult, rules: DecisionRules) -> bool:
    """Whether aggregate throughput falls by more than is allowed and more than the baseline's own starts differ."""
    aggregate = row.aggregate
    if row.rate is not None or aggregate is None or aggregate.ratio is None:
        return False
    return aggregate.ratio < 1 - max(rules.throughput_loss, min(aggregate.floor or 0.0, rules.noise_limit))


def _text(row: CellResult, rules: DecisionRules) -> list[Finding]:
    text = row.identity
    if text is None or text.word in ("same", "within own variation"):
        return []
    if text.word == "not judged":
        return [one for one in text.reasons if one.code not in ("lossy", "sampling", "batched")]
    late = not (text.truncated or text.degenerate) and all(not early(one) for one in text.differences)
    allowed = max((1 - rules.identical_share) * text.n, 1.0 if late else 0.0)
    differing = text.n * (text.differing_share if text.differing_share is not None else 1.0)
    same_words = differing <= allowed and not _in_excess(text)
    ended = text.finish_only_differs if any(one.code == "finish_differs" for one in text.reasons) else 0
    if text.word == "undecided" and same_words:
        if differing + ended <= allowed:
            return []
        told = f"{ended}/{text.n} texts are the baseline's but end for another reason; {allowed:.0f} may at most."
        return [finding("finish_differs", told)]
    told = f"{text.identical}/{text.n} texts are the baseline's{_beside(text)}; all but {allowed:.0f} are asked for."
    return [finding("identical_too_few", told)]


def _beside(text: Identity) -> str:
    """What keeps a text that differs no more often than the baseline's own from counting as its own variation."""
    if text.control_n is None or text.control_identical is None:
        return ""
    seen = [f"baseline against itself {text.control_identical}/{text.control_n}"]
    spoilt = {"cut short": text.truncated, "looping or empty": text.degenerate}
    seen += [f"{count} {what}" for what, count in spoilt.items() if count]
    return f" ({', '.join(seen)})"


def _in_excess(text: Identity) -> bool:
    return any(one.code == "excess_overall" for one in text.reasons)


def better(rows: Sequence[CellResult], comparison: Comparison) -> CellResult | None:
    """The row to deploy among those that pay at one load: the simplest within the noise of the fastest."""
    rated = [(row.decode.ratio, row) for row in rows if row.decode is not None and row.decode.ratio]
    if not rated:
        return None
    best = max(ratio for ratio, _ in rated)
    floor = max((row.decode.floor or 0.0 for _, row in rated if row.decode), default=0.0)
    width = math.log1p(max(TIE, floor))
    order = {mode.name: place for place, mode in enumerate(comparison.plan.modes)}
    method_place: dict[str | None, int] = {}
    for place, mode in enumerate(comparison.plan.modes):
        method_place.setdefault(mode.method, place)
    modes = {mode.name: mode for mode in comparison.plan.modes}

    def simplicity(row: CellResult) -> tuple[int, int, int]:
        mode = modes[row.mode]
        return method_place[mode.method], mode.k or 0, order[row.mode]

    tied = [row for ratio, row in rated if math.log(best / ratio) <= width]
    return min(tied, key=simplicity)


def _workload(kind: str, base: str, rows: list[CellResult], comparison: Comparison) -> WorkloadDecision:
    """The answer for one kind.

    Where both kinds of load were measured, concurrency decides: it is what a route can see.
    """
    rules = comparison.plan.rules
    everywhere = [judged(row, rules, comparison) for row in rows if row.against == base]
    rows = [row for row in rows if row.concurrency is not None] or rows
    loads = sorted({(row.concurrency or 0, row.rate or 0.0, row.load) for row in rows})
    labels = [label for _, _, label in loads]
    every = {(one.row.mode, one.row.load): one for one in everywhere if one.row.load in labels}
    winners = {}
    for label in labels:
        paying = [one.row for (_, load), one in every.items() if load == label and one.pays]
        best = better(paying, comparison)
        if best is not None:
            winners[label] = best
    decisive, off_target = _decisive(kind, rows, labels, winners, rules)
    winner = winners.get(decisive)
    modes = list(dict.fromkeys(mode for mode, _ in every))
    candidates = [_candidate(every[mode, decisive], winner) for mode in modes if (mode, decisive) in every]
    span = range_of(winner, list(every.values()), rows)
    peak = [one.row for (_, load), one in every.items() if load == labels[-1]]
    verdict = _overall(candidates, winner, off_target)
    measured = any(row.mode == base and row.starts for row in rows)
    answer = WorkloadDecision(
        kind=kind,
        baseline=base,
        mode=winner.mode if winner else (base if measured else None),
        speculative=winner is not None,
        from_concurrency=span.begin,
        up_to=span.up_to,
        crossover=span.crossover,
        batch_mode=_for_batches(peak, base, rules, comparison),
        ceiling=only_ceilings(rows, base),
        sentence="",
        why="",
        verdict=verdict,
        candidates=candidates,
    )
    answer = answer.model_copy(update={"sentence": sentence(answer, labels, decisive, rules, span.unknown)})
    more = "".join(f" {one.message}" for one in off_target) + elsewhere(winner, everywhere, span.up_to)
    answer = answer.model_copy(update={"why": why(answer, rows, decisive, rules) + more})
    step = MISSING if span.unknown else next_step(answer, rows, decisive, comparison)
    return answer.model_copy(update={"next_step": step})


def _decisive(
    kind: str, rows: list[CellResult], labels: list[str], winners: dict[str, CellResult], rules: DecisionRules
) -> tuple[str, list[Finding]]:
    """The load at which this kind is decided: the one the user runs; else the lowest at which a mode pays."""
    wanted = rules.concurrency_for(kind)
    if wanted is None:
        return next((label for label in labels if label in winners), labels[0]), []
    measured = {row.concurrency: row.load for row in rows if row.concurrency is not None}
    if wanted in measured:
        return measured[wanted], []
    if not measured:
        return labels[0], []
    nearest = min((c for c in measured if c >= wanted), default=max(measured))
    text = f"Concurrency {wanted} was not measured; decided at {nearest}."
    return measured[nearest], [finding("not_at", text)]


def _candidate(one: Judged, winner: CellResult | None) -> Candidate:
    row = one.row
    reasons = one.against_it
    if one.pays and winner is not None and winner.mode != row.mode:
        slower = (row.decode and winner.decode and (row.decode.ratio or 0) < (winner.decode.ratio or 0)) or False
        code, text = (
            ("inside_floor", f"{winner.mode} gains more.")
            if slower
            else ("simpler_tie", f"{winner.mode} gains as much within the noise and is simpler.")
        )
        reasons = [finding(code, text)]
    elif one.pays:
        reasons = [finding("adoptable", f"{row.mode} pays here.")]
    return Candidate(
        mode=row.mode,
        word=row.verdict.word if row.verdict else "not comparable",
        adoptable=one.pays,
        decode_speedup=row.decode.ratio if row.decode else None,
        aggregate_gain=row.aggregate.ratio if row.aggregate else None,
        reasons=reasons,
    )


def _overall(candidates: list[Candidate], winner: CellResult | None, extra: list[Finding]) -> Verdict:
    """The workload's word: that of the winner, else the one that leaves most open."""
    if winner is not None and winner.verdict is not None:
        return Verdict(word="faster", reasons=[*winner.verdict.reasons, *extra])
    open_first: tuple[Word, ...] = (
        "undecided",
        "unreliable",
        "faster",
        "text differs",
        "no difference shown",
        "slower",
        "not exercised",
        "not comparable",
    )
    for word in open_first:
        having = [one for one in candidates if one.word == word]
        if having:
            reasons = [reason for one in having for reason in one.reasons]
            shown_word: Word = "no difference shown" if word == "faster" else word
            if word == "faster" and any(reason.code in UNSETTLED for reason in reasons):
                shown_word = "undecided"
            return Verdict(word=shown_word, reasons=[*reasons, *extra])
    return Verdict(word="not comparable", reasons=extra or [finding("missing_cell", "No mode was measured.")])


def _for_batches(peak: list[CellResult], base: str, rules: DecisionRules, comparison: Comparison) -> str | None:
    """M31: the mode for a server that only has to complete as much as it can, at the highest load measured."""
    best: CellResult | None = None
    for row in peak:
        gain = row.aggregate
        mode = next(one for one in comparison.plan.modes if one.name == row.mode)
        if gain is None or gain.ratio is None or gain.smallest_adoptable is None or mode.placebo or mode.lossy:
            continue
        trusted = row.verdict is not None and row.verdict.word in (
            "faster",
            "no difference shown",
            "undecided",
            "slower",
        )
        if not trusted or row.status != "measured" or _text(row, rules) or gain.ratio < gain.smallest_adoptable:
            continue
        if best is None or best.aggregate is None or gain.ratio > (best.aggregate.ratio or 0.0):
            best = row
    known = any(row.aggregate is not None and row.aggregate.ratio is not None for row in peak)
    return best.mode if best is not None else base if known else None
