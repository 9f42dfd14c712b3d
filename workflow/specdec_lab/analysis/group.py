"""One workload kind under one load: all modes and starts beside their baselines (M28, M31). Pure, over loaded cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean

from ..quantities import median
from ..records.base import Finding
from ..records.comparison import CellResult, Floor, Gain, Identity
from ..records.decision import DecisionRules, Plan, PlannedMode
from ..records.spec import CellSpec
from . import cost, drift, plausibility, windows
from .cells import Measured
from .comparable import BLOCKING, obstacles
from .doubts import TEXT
from .findings import finding
from .identity import judge, no_reference
from .near_tie import TIE_GAP
from .pairing import FEWEST, paired, per_prompt, spread_of_starts
from .statistics import Spread, gain, geometric_mean, logs, noise_floor, pooled, shown, start_spread, starts_needed
from .theory import added, theory
from .verdicts import verdict

Rate = Callable[[Measured], float | None]

Ties = Mapping[tuple[str, str], Mapping[str, float]]
"""(mode, cell name) -> prompt id -> gap of log probabilities at the first difference, from a probe."""


@dataclass
class Group:
    """What came of one kind and load."""

    results: list[CellResult] = field(default_factory=list)
    floors: list[Floor] = field(default_factory=list)


@dataclass(frozen=True)
class Family:
    """A baseline's starts and, per mode that is compared with it, that mode's starts; all of one kind and load."""

    cell: CellSpec
    base: str
    baseline: list[Measured]
    modes: dict[str, list[Measured]]
    placebos: frozenset[str]

    def spread(self, rate: Rate) -> Spread:
        """Between-start spread of a quantity, pooled over the baseline and all its modes."""
        return pooled([logs(rate(cell) for cell in cells) for cells in [self.baseline, *self.modes.values()]])

    @cached_property
    def prompt_spread(self) -> Spread:
        """The same of the per-prompt means."""
        return spread_of_starts([self.baseline, *self.modes.values()])

    def floor(self, rate: Rate) -> float | None:
        """The noise floor: how far two starts of the baseline typically differ, or of a placebo, which is the same."""
        same = [self.baseline, *(self.modes[name] for name in self.placebos if name in self.modes)]
        known = [one for cells in same if (one := noise_floor([rate(cell) for cell in cells])) is not None]
        return max(known, default=None)


def judge_group(cells: Sequence[Measured], cell: CellSpec, plan: Plan, ties: Ties) -> Group:
    """Every planned mode in this cell: measured and judged, or shown as failed or missing by the caller."""
    group = Group()
    by_mode = {mode.name: drift.in_time([one for one in cells if one.mode == mode.name]) for mode in plan.modes}
    copies = plausibility.identical_numbers([one for starts in by_mode.values() for one in starts])
    for base in plan.modes:
        if base.against is not None:
            continue
        members = [mode for mode in plan.modes if mode.against == base.name]
        family = Family(
            cell=cell,
            base=base.name,
            baseline=by_mode[base.name],
            modes={mode.name: by_mode[mode.name] for mode in members if by_mode[mode.name]},
            placebos=frozenset(mode.name for mode in members if mode.placebo),
        )
        floor = _floor(family, plan.rules)
        rows = [_row(family, mode, floor, plan.rules, ties, copies) for mode in members if by_mode[mode.name]]
        if family.baseline:
            deployable = {mode.name for mode in members if not (mode.placebo or mode.lossy)}
            rivals = [row for row in rows if row.mode in deployable]
            floor = floor.model_copy(update={"findings": drift.harmless(floor.findings, rivals, floor.drift)})
            group.floors.append(floor)
            group.results.append(_baseline_row(family, base, floor, plan.rules))
        group.results += rows
    return group


def _floor(family: Family, rules: DecisionRules) -> Floor:
    """M25: the baseline against itself."""
    decode = start_spread([cell.p50_decode for cell in family.baseline])
    found: list[Finding] = []
    if family.baseline:
        found = [*drift.machine(family.baseline, limit=rules.noise_limit), *drift.throttling(family.baseline)]
    if decode is not None and decode >= rules.noise_limit:
        text = f"The spread between starts of {family.base} is {decode:.1%}: {drift.suspects(family.baseline)}."
        found.append(finding("noise_high", text, severity="warn"))
    if len(family.baseline) == 1:
        found.append(finding("no_floor", f"{family.base} ran once here."))
    texts = [cell.texts for cell in family.baseline]
    if all(cell.session.sampling.temperature == 0 for cell in family.baseline) and (unsound := no_reference(texts)):
        found.append(unsound)
    control = (
        judge(texts[1:], texts[:1], identical_share=1.0, temperature=0.0, lossy=False, batched=False)
        if texts[1:]
        else None
    )
    return Floor(
        baseline=family.base,
        kind=family.cell.kind,
        load=family.cell.load.label,
        starts=len(family.baseline),
        decode=decode,
        aggregate=start_spread([cell.agg_tok_s for cell in family.baseline]),
        identical=control.identical if control and control.n else None,
        identical_n=control.n if control and control.n else None,
        drift=drift.opening_to_closing(family.baseline),
        findings=found,
    )


def _baseline_row(family: Family, mode: PlannedMode, floor: Floor, rules: DecisionRules) -> CellResult:
    cells = family.baseline
    found = [problem for cell in cells for problem in cell.problems]
    found += plausibility.gates(cells, cells, acceptance=None, speculative=False)
    found += floor.findings
    return _numbers(family, mode, cells, rules).model_copy(update={"findings": found})


def _row(
    family: Family,
    mode: PlannedMode,
    floor: Floor,
    rules: DecisionRules,
    ties: Ties,
    copies: Mapping[tuple[str, int], Finding],
) -> CellResult:
    cells, base = family.modes[mode.name], family.baseline
    row = _numbers(family, mode, cells, rules)
    found = _obstacles(family, cells)
    found += [problem for problem in floor.findings if problem.severity == "error"]
    speculative = any(cell.session.server.speculative for cell in cells)
    found += plausibility.gates(cells, base, acceptance=row.acceptance, speculative=speculative)
    if row.acceptance is not None and row.acceptance.status == "measured":
        row = row.model_copy(update={"acceptance_doubts": windows.doubts(cells, found)})
    found += _inherited(base)
    found += [copies[key] for cell in cells if (key := (cell.mode, cell.replicate)) in copies]
    found += drift.throttling(cells)
    if row.status == "partial" and all(cell.read for cell in cells):
        found.append(finding("partial", f"{row.starts} of {mode.replicates} starts, or a cell was cut short."))
    blocked = any(one.code in BLOCKING and one.severity == "error" for one in found)
    if blocked:
        if any(one.code in ("no_stack", "unreadable") for one in found if one.severity == "error"):
            row = _without_numbers(row)
        word = verdict(
            decode=None,
            per_prompt=None,
            is_shown=False,
            judged=None,
            starts_needed=None,
            identity=None,
            findings=found,
            noise=(None, None),
            rules=rules,
        )
        return row.model_copy(update={"findings": _once(found), "verdict": word})
    spread = family.spread(lambda cell: cell.p50_decode)
    found += drift.explains(cells, base, spread=spread, margin=rules.margin)
    found += drift.clocks(cells, base)
    decode = _gain(family, mode.name, lambda cell: cell.p50_decode, rules)
    found = drift.outgrown(found, decode.ratio, floor.drift)
    identity = _identity(family, mode, cells, ties, rules)
    found += [one for one in identity.reasons if one.code in TEXT]
    explained = theory(
        row.acceptance,
        k=mode.k if mode.k is not None else cells[0].session.server.draft_length,
        method=mode.method if mode.method is not None else cells[0].session.server.method,
        completion_tokens=_tokens(cells),
        speedup=decode.ratio,
        made_up=_made_up(cells[0]),
    )
    pairs = paired(cells, base)
    found += plausibility.above_acceptance(
        decode.ratio,
        pairs.total_time,
        explained,
        row.acceptance,
        floor=decode.floor,
        closed_loop=family.cell.load.rate is None,
        most=plausibility.most_drafted(cells[0]),
    )
    if row.decode_share is not None and row.decode_share < rules.decode_share:
        found.append(finding("short_answers", f"Decoding is {row.decode_share:.0%} of a request's time."))
    if mode.lossy or any(cell.session.lossy for cell in cells):
        found.append(finding("lossy", f"{mode.name} may change the text."))
    per = per_prompt(cells, base, family.prompt_spread, rules)
    ours, theirs = [cell.p50_decode for cell in cells], [cell.p50_decode for cell in base]
    is_shown = shown(decode, ours, theirs, spread)
    judged = decode
    if per is not None and per.prompts >= FEWEST:
        spread, judged = per.spread, per.gain
        is_shown = shown(per.gain, per.ours, per.theirs, spread) and (decode.low or 0.0) > 1
    found = _once(found)
    return row.model_copy(
        update={
            "decode": decode,
            "aggregate": _gain(family, mode.name, lambda cell: cell.agg_tok_s, rules),
            "ttft": _gain(family, mode.name, lambda cell: cell.p50_ttft, rules),
            "per_prompt": per.gain if per is not None else None,
            "paired": pairs,
            "identity": identity,
            "theory": explained,
            "findings": found,
            "verdict": verdict(
                decode=decode,
                per_prompt=per.gain if per is not None else None,
                is_shown=is_shown,
                judged=judged,
                starts_needed=starts_needed(decode.ratio or 1.0, spread, 1 + len(family.modes)),
                identity=identity,
                findings=found,
                noise=(noise_floor(theirs), noise_floor(ours)),
                rules=rules,
            ),
        }
    )


def _obstacles(family: Family, cells: Sequence[Measured]) -> list[Finding]:
    if not family.baseline:
        found = [finding("no_baseline", f"{family.base} has no cell {family.cell.name}.")]
        return found + [problem for cell in cells for problem in cell.problems]
    first = family.baseline[0]
    found = [one for cell in cells for one in obstacles(cell, first)]
    return found + [one for cell in family.baseline[1:] for one in obstacles(cell, first)]


def _inherited(baseline: Sequence[Measured]) -> list[Finding]:
    """What is wrong with the baseline is wrong with every ratio to it."""
    if not baseline:
        return []
    found = plausibility.gates(baseline, baseline, acceptance=None, speculative=False)
    own = [one.model_copy(update={"message": f"Baseline: {one.message}"}) for one in found if one.severity == "error"]
    cut = [cell for cell in baseline if cell.read and not cell.summary.completed]
    return own + [finding("partial", f"Baseline: r{cell.replicate} was cut short.") for cell in cut]


def _numbers(family: Family, mode: PlannedMode, cells: list[Measured], rules: DecisionRules) -> CellResult:
    """The row's own numbers: geometric means over starts, counts added."""
    load = family.cell.load
    agg = geometric_mean([cell.agg_tok_s for cell in cells])
    energies = [cell.energy_j / cell.tokens for cell in cells if cell.energy_j is not None and cell.tokens]
    whole = len(cells) >= mode.replicates and all(cell.summary.completed for cell in cells)
    counts = [cell.tokens / len(cell.ok) for cell in cells if cell.tokens is not None and cell.ok]
    return CellResult(
        kind=family.cell.kind,
        load=load.label,
        concurrency=load.concurrency,
        rate=load.rate,
        mode=mode.name,
        against=mode.against,
        status="measured" if whole else "partial",
        starts=len(cells),
        requests=sum(len(cell.requests) or cell.summary.requests for cell in cells),
        failed=sum(cell.summary.failed for cell in cells),
        agg_tok_s=agg,
        p50_decode_tok_s=geometric_mean([cell.p50_decode for cell in cells]),
        p50_ttft_s=median(value for cell in cells if (value := cell.p50_ttft) is not None),
        p95_ttft_s=median(value for cell in cells if (value := cell.p95_ttft) is not None),
        p50_e2e_s=median(one.e2e_s for cell in cells for one in cell.ok if one.e2e_s is not None),
        mean_completion_tokens=fmean(counts) if counts else None,
        decode_share=median(share for cell in cells if (share := cell.decode_share) is not None),
        decode_n=sum(cell.decode_n for cell in cells),
        energy_j_per_token=fmean(energies) if energies else None,
        cost_per_million=cost.per_million(rules, agg, cells[0].session.server.gpus),
        acceptance=added([cell.counters.acceptance for cell in cells if cell.read]),
    )


def _without_numbers(row: CellResult) -> CellResult:
    return CellResult(
        kind=row.kind,
        load=row.load,
        concurrency=row.concurrency,
        rate=row.rate,
        mode=row.mode,
        against=row.against,
        status=row.status,
        starts=row.starts,
    )


def _gain(family: Family, mode: str, rate: Rate, rules: DecisionRules) -> Gain:
    return gain(
        [rate(cell) for cell in family.modes[mode]],
        [rate(cell) for cell in family.baseline],
        spread=family.spread(rate),
        floor=family.floor(rate),
        margin=rules.margin,
        confidence=rules.confidence,
    )


def _identity(
    family: Family, mode: PlannedMode, cells: Sequence[Measured], ties: Ties, rules: DecisionRules
) -> Identity:
    concurrency = family.cell.load.concurrency
    found = judge(
        [cell.texts for cell in cells],
        [cell.texts for cell in family.baseline],
        identical_share=rules.identical_share,
        temperature=cells[0].session.sampling.temperature,
        lossy=mode.lossy or any(cell.session.lossy for cell in cells),
        batched=concurrency is None or concurrency > 1,
        ties=ties.get((mode.name, family.cell.name)),
        tie_gap=TIE_GAP,
    )
    worst = cells[found.replicate].replicate if found.replicate is not None else None
    first = family.baseline[0].replicate if family.baseline else None
    return found.model_copy(update={"replicate": worst, "baseline_replicate": first})


def _tokens(cells: Sequence[Measured]) -> int | None:
    counts = [cell.tokens for cell in cells]
    return None if None in counts else sum(count for count in counts if count is not None)


def _made_up(cell: Measured) -> bool:
    """Whether drafts are accepted by decree (a ceiling run)."""
    options = cell.session.server.speculative or {}
    return options.get("rejection_sample_method") == "synthetic" or any(
        str(name).replace("_", "-").startswith("spec-synth") for name in options
    )


def _once(found: Sequence[Finding]) -> list[Finding]:
    return list({(one.code, one.message): one for one in found}.values())
