"""The decision in words: one sentence per workload, the numbers behind it, what would settle it (M32, M35)."""

from __future__ import annotations

from collections.abc import Sequence

from ..records.comparison import CellResult, Comparison
from ..records.decision import Candidate, Decision, DecisionRules, WorkloadDecision
from .ceiling import NEXT, ceiling_sentence, prices

MISSING = "Run the workflow again; it measures what is missing."
"""What to do about a cell that is not there."""
OPEN = frozenset({"undecided", "unreliable", "not comparable"})
"""Words that leave a question open."""


def at_load(row_or_label: CellResult | str) -> str:
    """`concurrency 4` or `2.5 requests/s`, from a row or a load's label."""
    label = row_or_label if isinstance(row_or_label, str) else row_or_label.load
    return f"concurrency {label[1:]}" if label.startswith("c") else f"{label[1:]} requests/s"


def sentence(
    answer: WorkloadDecision,
    labels: Sequence[str],
    decisive: str,
    rules: DecisionRules,
    unknown: Sequence[int] = (),
) -> str:
    """What to do with this workload, in one sentence.

    `labels` are the measured loads, one of them `decisive`; of the concurrencies in `unknown` a cell is missing, and
    the mode's range ends there for that reason alone.
    """
    kind = answer.kind
    if answer.ceiling:
        return ceiling_sentence(kind)
    if answer.mode is None:
        return f"No answer for {kind}: its baseline {answer.baseline} was not measured."
    if answer.speculative:
        if answer.up_to is None:
            return f"Deploy {answer.mode} for {kind} at {at_load(decisive)}."
        begin = answer.from_concurrency or 1
        plain = ["below"] if begin > 1 and begin - 1 not in unknown else []
        plain += [f"from {answer.crossover} on"] if answer.crossover is not None else []
        highest = labels[-1] == f"c{answer.up_to}" and len(labels) > 1
        rest = ", the highest that was measured" if highest else ""
        if plain:
            rest = f", keep it plain {' and '.join(plain)}"
        if unknown:
            rest += f"; {_listed([str(load) for load in unknown])} cannot be told"
        return f"Deploy {answer.mode} for {kind} {_span(answer)}{rest}."
    return f"Keep {kind} plain{_because(answer, rules)}."


def _span(answer: WorkloadDecision) -> str:
    begin, end = answer.from_concurrency or 1, answer.up_to
    if begin == end:
        return f"at concurrency {end}"
    return f"up to concurrency {end}" if begin == 1 else f"from concurrency {begin} to {end}"


def _because(answer: WorkloadDecision, rules: DecisionRules) -> str:
    word = answer.verdict.word
    leading = _leading(answer.candidates, {word})
    name = leading.mode if leading else "no mode"
    speed = f"{leading.decode_speedup:.2f}x" if leading and leading.decode_speedup else "a gain"
    if word == "undecided":
        few = leading is not None and leading.word == "faster"
        unknown = leading is not None and any(one.code == "throughput_unknown" for one in leading.reasons[:1])
        open_one = "throughput is not known" if unknown else "text is not settled"
        return (
            f" for now: {name} is {speed} but its {open_one}"
            if few
            else (f" for now: {name} looks like {speed}, which this run cannot show")
        )
    if word == "unreliable":
        return " for now: the measurement is not to be trusted (see the reasons)"
    if word == "text differs":
        return f": {name} does not give the baseline's text"
    if word == "not exercised":
        return ": speculation found nothing to draft here"
    if word == "not comparable":
        return ": no other mode could be compared with it"
    if word == "slower":
        return ": every other mode is slower"
    best = _leading(answer.candidates, {"faster"})
    if best is not None and best.decode_speedup is not None and best.decode_speedup >= 1 + rules.margin:
        first = best.reasons[0].code if best.reasons else ""
        if first == "throughput_falls":
            return f": {best.mode} speeds up single users, but the server completes less"
        if first == "placebo":
            return ": only the placebo gained, so nothing did"
        if first == "lossy":
            return f": {best.mode} may change the text"
    return f": nothing gains {rules.margin:.0%} or more beyond the noise"


def _leading(candidates: Sequence[Candidate], words: set[str]) -> Candidate | None:
    having = [one for one in candidates if one.word in words]
    if not having and "undecided" in words:
        having = [one for one in candidates if one.word == "faster"]
    return max(having, key=lambda one: one.decode_speedup or 0.0, default=None)


def why(answer: WorkloadDecision, rows: Sequence[CellResult], decisive: str, rules: DecisionRules) -> str:
    """The numbers behind the answer, at the load where it was decided; and whether decoding matters here (M35)."""
    if answer.ceiling:
        highest = max(rows, key=lambda row: (row.concurrency or 0, row.rate or 0.0)).load
        loads = dict.fromkeys((decisive, highest))
        return " ".join(prices(rows, answer.baseline, load, at_load(load)) for load in loads)
    plain = next((row for row in rows if row.mode == answer.baseline and row.load == decisive), None)
    share = plain.decode_share if plain is not None else None
    little = ""
    if share is not None and share < rules.decode_share:
        little = f" Decoding is only {share:.0%} of a request's time here, so there is little to save."
    if answer.speculative:
        row = next(row for row in rows if row.mode == answer.mode and row.load == decisive)
        return f"At {at_load(row)}: {numbers(row)}.{little}"
    told = []
    for one in sorted(answer.candidates, key=lambda one: -(one.decode_speedup or 0.0)):
        speed = f" {one.decode_speedup:.2f}x," if one.decode_speedup else ""
        told.append(f"{one.mode}{speed} {one.word}")
    return (f"At {at_load(decisive)}: {'; '.join(told)}." if told else "No other mode was measured.") + little


def numbers(row: CellResult) -> str:
    """The row in words: gain, interval, floor, throughput, text, acceptance."""
    parts = []
    if row.decode is not None and row.decode.ratio is not None:
        one = row.decode
        interval = f" ({one.low:.2f} to {one.high:.2f})" if one.low and one.high else ""
        parts.append(f"P50 decode {one.ratio:.2f}x{interval}")
        if one.floor is not None:
            parts.append(f"noise floor {one.floor:.1%}")
        parts.append(f"{one.starts} + {one.baseline_starts} starts")
    if row.aggregate is not None and row.aggregate.ratio is not None:
        parts.append(f"throughput {row.aggregate.ratio:.2f}x")
    if row.identity is not None and row.identity.n:
        parts.append(f"{row.identity.identical}/{row.identity.n} texts equal ({row.identity.word})")
    if row.acceptance is not None and row.acceptance.acceptance_length is not None:
        parts.append(f"acceptance length {row.acceptance.acceptance_length:.2f}")
    return ", ".join(parts)


def next_step(answer: WorkloadDecision, rows: Sequence[CellResult], decisive: str, comparison: Comparison) -> str:
    """What would settle an open answer; empty when nothing is open."""
    if answer.ceiling:
        return NEXT
    if answer.speculative and answer.verdict.word == "faster":
        return ""
    codes = {reason.code for reason in answer.verdict.reasons}
    if codes & {"not_sure_enough", "one_start", "no_floor"}:
        needed = [
            reason.message.rsplit("About ", 1)[1].split(" ", 1)[0]
            for reason in answer.verdict.reasons
            if reason.code == "not_sure_enough" and "About " in reason.message
        ]
        least = max((int(one) for one in needed), default=2)
        now = max((row.starts for row in rows), default=1)
        return f"Set replicates to {max(least, now + 1)}; only the added starts are measured."
    if codes & {"text_undecided", "identical_too_few", "no_control", "excess_overall"}:
        return "Run the probe: it asks the baseline whether the first differences are near-ties."
    ends = [one.hint for one in answer.verdict.reasons if one.code in ("finish_differs", "no_text")]
    if ends:
        return ends[0]
    if codes & {"failed_mode", "missing_cell", "partial"}:
        return MISSING
    hints = [reason.hint for reason in answer.verdict.reasons if reason.severity == "error" and reason.hint]
    return hints[0] if hints else ""


def headline(decision: Decision) -> str:
    """All workloads in one sentence: deploy X for chat up to concurrency 4, keep json plain."""
    parts = []
    deployed: dict[tuple[str, str], list[str]] = {}
    for one in decision.workloads:
        if one.speculative and one.mode is not None:
            where = f" {_span(one)}" if one.up_to is not None else ""
            deployed.setdefault((one.mode, where), []).append(one.kind)
    for (mode, where), kinds in deployed.items():
        parts.append(f"deploy {mode} for {_listed(kinds)}{where}")
    studied = [one.kind for one in decision.workloads if one.ceiling]
    if studied:
        parts.append(f"nothing to deploy from the ceiling study on {_listed(studied)}")
    plain = [one for one in decision.workloads if not one.speculative and one.mode is not None and not one.ceiling]
    settled = [one.kind for one in plain if one.verdict.word not in OPEN]
    unsettled = [one.kind for one in plain if one.verdict.word in OPEN]
    if settled:
        parts.append(f"keep {_listed(settled)} plain")
    if unsettled:
        parts.append(f"keep {_listed(unsettled)} plain for now (not settled yet)")
    unknown = [one.kind for one in decision.workloads if one.mode is None and not one.ceiling]
    if unknown:
        parts.append(f"no answer for {_listed(unknown)}")
    text = ", ".join(parts) or "nothing was measured that could be decided"
    return text[0].upper() + text[1:] + "."


def _listed(words: Sequence[str]) -> str:
    once = list(dict.fromkeys(words))
    return once[0] if len(once) == 1 else f"{', '.join(once[:-1])} and {once[-1]}"


def decision_page(decision: Decision, comparison: Comparison) -> str:
    """`decision.md`."""
    several = len({one.baseline for one in decision.workloads}) > 1
    lines = [f"# {decision.name}: what to deploy", "", f"**{headline(decision)}**", ""]
    for one in decision.workloads:
        title = f"## {one.kind}" + (f" (against {one.baseline})" if several else "")
        lines += [title, "", one.sentence, "", one.why, ""]
        if one.batch_mode is not None and one.batch_mode != one.mode:
            batch = "plain" if one.batch_mode == one.baseline else f"with {one.batch_mode}"
            lines += [f"If only total throughput counts (batches at the highest load): run it {batch}.", ""]
        for candidate in one.candidates:
            reason = "; ".join(dict.fromkeys(found.message.rstrip(".") for found in candidate.reasons[:3]))
            lines.append(f"- {candidate.mode}: {candidate.word}. {reason}.")
        if one.candidates:
            lines.append("")
        if one.next_step:
            lines += [f"Next: {one.next_step}", ""]
    if decision.routes:
        lines += ["## Routes", "", "| workload | concurrency | mode |", "| --- | --- | --- |"]
        for route in (one for one in decision.routes if one.interactive):
            lines.append(f"| {route.kind} | {route.span} | {route.mode} |")
        lines += ["", "Files to run it with are in `deploy/`.", ""]
    for failed in comparison.failed:
        cause = failed.failure.cause if failed.failure else "it did not run"
        lines += [f"Not measured: {failed.mode} ({cause}).", ""]
    for surprise in comparison.surprises:
        lines += [f"Surprise: {surprise.message} {surprise.hint}".rstrip(), ""]
    for match in comparison.claims:
        lines += [match.remark, ""]
    for found in decision.findings:
        lines += [f"Note: {found.message} {found.hint}".rstrip(), ""]
    rules = decision.rules
    share = f"{rules.identical_share:.0%}"
    where = f" at concurrency {rules.at}" if rules.at is not None else ""
    lines += [
        "## The rule",
        "",
        f"Fixed beforehand: P50 decode gains {rules.margin:.0%} or more{where}, shown over fresh starts "
        "and beyond the baseline's own noise; throughput does not fall by more than "
        f"{rules.throughput_loss:.0%}; {share} of the texts are the baseline's (one late difference "
        "is allowed), or they differ no more often than the baseline from itself. Ties go to the simpler mode. One "
        "start, missing cells, or speculation that was not exercised never suffice.",
        "",
    ]
    return "\n".join(lines)
