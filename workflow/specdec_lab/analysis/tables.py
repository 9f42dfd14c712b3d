"""M28: the table for people (`summary.txt`), for pandas (`summary.csv`), and all behind it (`comparison.json`)."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from ..records.base import write_text_atomic
from ..records.comparison import CellResult, Comparison, Floor, Gain
from .doubts import MARK, acceptance_mark, text_mark

MISSING = "n/a"
TOLD_BEFORE = frozenset({"failed_mode", "missing_cell"})
"""Codes that the table and the list of failed modes show already."""
HEADERS = [
    "kind",
    "load",
    "mode",
    "tok/s",
    "speedup",
    "P50 decode",
    "speedup",
    "interval",
    "noise floor",
    "P50 TTFT",
    "P95 TTFT",
    "accept",
    "length",
    "identical",
    "verdict",
]


def write(comparison: Comparison, results_dir: Path) -> None:
    """Write the three files atomically."""
    comparison.write(results_dir / "comparison.json")
    write_text_atomic(results_dir / "summary.csv", summary_csv(comparison))
    write_text_atomic(results_dir / "summary.txt", summary_text(comparison))


def summary_text(comparison: Comparison) -> str:
    """The table with its legend, the noise, what failed, and what to know."""
    from tabulate import tabulate

    own = {(floor.baseline, floor.kind, floor.load): floor for floor in comparison.floors}
    rows = [_row(row, own.get((row.mode, row.kind, row.load))) for row in comparison.cells]
    numbers = ("right",) * 11
    table = tabulate(
        rows,
        headers=HEADERS,
        tablefmt="simple",
        disable_numparse=True,
        colalign=("left", "left", "left", *numbers, "left"),
    )
    lines = [f"{comparison.name}: one row per workload kind, load and mode", "", table, ""]
    lines += [
        "tok/s: completion tokens of the cell / its wall time. P50 decode: median over requests of tokens after the",
        "first arrival / time from first to last arrival. Both are geometric means over server starts; a speedup is",
        "the ratio to the baseline's. interval: of the P50 decode speedup, over server starts. noise floor: how far",
        "two starts of the baseline typically differ in P50 decode. accept: accepted / drafted tokens.",
        "length: 1 + accepted / drafts. identical: texts equal to the baseline's (in its own row: to its first",
        "start's). p95 is interpolated. spread between starts: fastest / slowest start - 1.",
        f"{MISSING}: not measured, which is never 0. {MARK}: read the notes before you rely on this number.",
        "",
    ]
    lines += _noise(comparison) + _failed(comparison) + _notes(comparison)
    return "\n".join(lines)


def _row(row: CellResult, own: Floor | None) -> list[str]:
    if row.status in ("failed", "missing"):
        return [row.kind, row.load, row.mode, *[MISSING] * 11, row.status]
    base = row.against is None
    acceptance = row.acceptance
    verdict = "baseline" if base else (row.verdict.word if row.verdict else MISSING)
    if row.status == "partial":
        verdict += " (partial)"
    return [
        row.kind,
        row.load,
        row.mode,
        _number(row.agg_tok_s, "{:.1f}"),
        "1.00x" if base else _times(row.aggregate),
        _number(row.p50_decode_tok_s, "{:.1f}"),
        "1.00x" if base else _times(row.decode),
        "" if base else _interval(row.decode),
        "" if base else _number(row.decode.floor if row.decode else None, "{:.1%}"),
        _number(row.p50_ttft_s, "{:.3f} s"),
        _number(row.p95_ttft_s, "{:.3f} s"),
        "-" if base else _number(acceptance.acceptance_rate if acceptance else None, f"{{:.0%}}{acceptance_mark(row)}"),
        "-"
        if base
        else _number(acceptance.acceptance_length if acceptance else None, f"{{:.2f}}{acceptance_mark(row)}"),
        _identical(row, own),
        verdict,
    ]


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else form.format(value)


def _times(gain: Gain | None) -> str:
    return MISSING if gain is None else _number(gain.ratio, "{:.2f}x")


def _interval(gain: Gain | None) -> str:
    if gain is None or gain.low is None or gain.high is None:
        return MISSING
    return f"{gain.low:.2f}-{gain.high:.2f}"


def _identical(row: CellResult, own: Floor | None) -> str:
    """Texts equal to the baseline's; in the baseline's own row those of its other start that differs most."""
    if own is not None:
        return "-" if own.identical is None else f"{own.identical}/{own.identical_n}"
    if row.identity is None or not row.identity.n:
        return MISSING
    return f"{row.identity.identical}/{row.identity.n}{text_mark(row)}"


def _noise(comparison: Comparison) -> list[str]:
    lines = ["The baseline against itself (fresh servers):"]
    for floor in comparison.floors:
        if floor.starts < 2:
            lines.append(f"  {floor.kind} {floor.load}: {floor.baseline} ran {floor.starts} time; no noise floor")
            continue
        spread = f"P50 decode {_number(floor.decode, '{:.1%}')}, tok/s {_number(floor.aggregate, '{:.1%}')}"
        told = [f"spread between starts: {spread}"]
        if floor.identical is not None:
            told.append(f"texts {floor.identical}/{floor.identical_n} equal")
        lines.append(f"  {floor.kind} {floor.load}, {floor.starts} starts: {'; '.join(told)}")
    return [*lines, ""] if comparison.floors else ["The baseline was not measured.", ""]


def _failed(comparison: Comparison) -> list[str]:
    lines = []
    for one in comparison.failed:
        starts = ", ".join(f"r{start}" for start in one.replicates)
        if one.failure is None:
            lines.append(f"missing: {one.mode} {starts}: not measured")
        else:
            lines.append(f"failed: {one.mode} {starts}: {one.failure.cause} Fix: {one.failure.fix}")
    return [*lines, ""] if lines else []


def _notes(comparison: Comparison) -> list[str]:
    """Findings, each told once with the rows it concerns."""
    where: dict[str, list[str]] = {}
    for found in comparison.findings:
        where.setdefault(f"{found.message} {found.hint}".rstrip(), [])
    for row in comparison.cells:
        for found in [*row.findings, *(row.theory.diagnosis if row.theory else [])]:
            known = found.code in TOLD_BEFORE or found.message.startswith("Baseline: ")
            if found.severity != "info" and not known:
                where.setdefault(found.message, []).append(f"{row.kind} {row.load} {row.mode}")
    for one in comparison.confounders:
        how = "by its flags" if one.declared else "by itself"
        text = f"{one.mode} differs from its baseline {how}: {one.fact} {one.value} instead of {one.baseline}"
        where.setdefault(f"{text} ({one.meaning})" if one.meaning else text, [])
    for told in [*(one.message for one in comparison.surprises), *(one.remark for one in comparison.claims)]:
        where.setdefault(told, [])
    lines = []
    for message, rows in where.items():
        places = f" [{'; '.join(rows[:3])}{', ...' if len(rows) > 3 else ''}]" if rows else ""
        lines.append(f"note: {message}{places}")
    return [*lines, ""] if lines else []


CSV_COLUMNS = [
    "kind",
    "load",
    "concurrency",
    "rate",
    "mode",
    "against",
    "status",
    "verdict",
    "starts",
    "requests",
    "failed",
    "agg_tok_s",
    "agg_speedup",
    "agg_low",
    "agg_high",
    "p50_decode_tok_s",
    "decode_speedup",
    "decode_low",
    "decode_high",
    "decode_floor",
    "paired_speedup",
    "paired_slower",
    "paired_prompts",
    "total_time_speedup",
    "p50_ttft_s",
    "p95_ttft_s",
    "ttft_ratio",
    "acceptance_rate",
    "acceptance_length",
    "acceptance_doubts",
    "expected_length",
    "tokens_per_step",
    "step_cost_ratio",
    "coverage",
    "identical",
    "identical_n",
    "control_identical",
    "control_n",
    "identity",
    "decode_share",
    "mean_completion_tokens",
    "energy_j_per_token",
    "cost_per_million",
    "findings",
]


def summary_csv(comparison: Comparison) -> str:
    """One line per row of the table, with numbers in full; a missing number is an empty field."""
    out = io.StringIO()
    writer = csv.DictWriter(out, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in comparison.cells:
        writer.writerow({name: "" if value is None else value for name, value in flat(row).items()})
    return out.getvalue()


def flat(row: CellResult) -> dict[str, object]:
    """The row as one flat mapping, in the order of `CSV_COLUMNS`."""
    decode, aggregate, ttft = row.decode or Gain(), row.aggregate or Gain(), row.ttft or Gain()
    paired, acceptance, theory, text = row.paired, row.acceptance, row.theory, row.identity
    values: dict[str, object] = {
        "verdict": row.verdict.word if row.verdict else "baseline",
        "agg_speedup": aggregate.ratio,
        "agg_low": aggregate.low,
        "agg_high": aggregate.high,
        "decode_speedup": decode.ratio,
        "decode_low": decode.low,
        "decode_high": decode.high,
        "decode_floor": decode.floor,
        "paired_speedup": paired.geometric if paired else None,
        "paired_slower": paired.slower if paired else None,
        "paired_prompts": paired.prompts if paired else None,
        "total_time_speedup": paired.total_time if paired else None,
        "ttft_ratio": ttft.ratio,
        "acceptance_rate": acceptance.acceptance_rate if acceptance else None,
        "acceptance_length": acceptance.acceptance_length if acceptance else None,
        "acceptance_doubts": " ".join(row.acceptance_doubts),
        "expected_length": theory.expected_length if theory else None,
        "tokens_per_step": theory.tokens_per_step if theory else None,
        "step_cost_ratio": theory.step_cost_ratio if theory else None,
        "coverage": theory.coverage if theory else None,
        "identical": text.identical if text else None,
        "identical_n": text.n if text else None,
        "control_identical": text.control_identical if text else None,
        "control_n": text.control_n if text else None,
        "identity": text.word if text else None,
        "findings": " ".join(dict.fromkeys(found.code for found in row.findings)),
    }
    return {name: values[name] if name in values else getattr(row, name) for name in CSV_COLUMNS}
