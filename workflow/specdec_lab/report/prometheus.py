"""Results as Prometheus text, for node_exporter's textfile collector (M38).

`specdec.prom` holds one gauge per quantity and row of the table. What was not measured has no sample; it is never 0.
Dashboards then show what was measured here beside what the live server does now (containers/monitoring).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from ..records.base import write_text_atomic
from ..records.comparison import CellResult
from .source import Results, read

_ROW = ("run", "kind", "load", "mode")


@dataclass
class _Gauges:
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    made: dict[str, Gauge] = field(default_factory=dict)

    def put(self, name: str, text: str, labels: dict[str, str], value: float | None) -> None:
        """One sample; nothing at all for a missing value."""
        if name not in self.made:
            self.made[name] = Gauge(name, text, list(labels), registry=self.registry)
        if value is not None:
            self.made[name].labels(**labels).set(value)


def text(results: Results) -> str:
    """The results as Prometheus text (format 0.0.4)."""
    gauges = _Gauges()
    run = results.comparison.name
    for row in results.comparison.cells:
        _row(gauges, row, {"run": run, "kind": row.kind, "load": row.load, "mode": row.mode})
    for workload in results.decision.workloads:
        labels = {"run": run, "kind": workload.kind}
        if workload.mode is not None:
            gauges.put(
                "specdec_decided",
                "1 for the mode that was decided on for this workload.",
                {**labels, "mode": workload.mode, "speculative": str(workload.speculative).lower()},
                1,
            )
        gauges.put(
            "specdec_crossover_concurrency",
            "Lowest measured concurrency at which speculation no longer pays.",
            labels,
            workload.crossover,
        )
    stack = results.comparison.stack
    if stack is not None:
        gauges.put(
            "specdec_run_info",
            "What the run was measured on; always 1.",
            {
                "run": run,
                "engine": stack.engine.software,
                "engine_version": stack.engine.version or "",
                "gpu": stack.gpus[0].name if stack.gpus else "",
                "lab": stack.lab,
            },
            1,
        )
    return generate_latest(gauges.registry).decode()


def write(results_dir: Path, out: Path) -> None:
    """Write the text atomically, as the textfile collector needs it. UserError when there is no decision yet."""
    write_text_atomic(out, text(read(results_dir)))


def _row(gauges: _Gauges, row: CellResult, labels: dict[str, str]) -> None:
    acceptance, identity = row.acceptance, row.identity
    measured = acceptance is not None and acceptance.status == "measured"
    same = identity.identical / identity.n if identity is not None and identity.n else None
    decode, aggregate = row.decode, row.aggregate
    known = acceptance if measured else None
    for name, help_text, value in (
        ("specdec_tokens_per_second", "Completion tokens of the cell / its wall time (M1).", row.agg_tok_s),
        ("specdec_decode_tokens_per_second", "Median decode rate of one user (M2).", row.p50_decode_tok_s),
        ("specdec_requests", "Requests sent, over all server starts.", row.requests),
        ("specdec_requests_failed", "Requests that failed.", row.failed),
        ("specdec_decode_speedup_ratio", "P50 decode, mode / baseline.", decode.ratio if decode else None),
        ("specdec_decode_speedup_low_ratio", "Lower end of its interval.", decode.low if decode else None),
        ("specdec_decode_speedup_high_ratio", "Upper end of its interval.", decode.high if decode else None),
        (
            "specdec_noise_floor_ratio",
            "How far two starts of the baseline differ.",
            decode.floor if decode else None,
        ),
        (
            "specdec_throughput_gain_ratio",
            "Tokens per second, mode / baseline.",
            aggregate.ratio if aggregate else None,
        ),
        ("specdec_acceptance_ratio", "Accepted / drafted tokens (M4).", known.acceptance_rate if known else None),
        ("specdec_acceptance_length", "1 + accepted / drafts (M4).", known.acceptance_length if known else None),
        ("specdec_identical_ratio", "Texts equal to the baseline's / texts compared (M5).", same),
    ):
        gauges.put(name, help_text, labels, value)
    for percentile, value in (("50", row.p50_ttft_s), ("95", row.p95_ttft_s)):
        gauges.put("specdec_ttft_seconds", "Time to first token (M3).", {**labels, "percentile": percentile}, value)
    if row.verdict is not None:
        gauges.put("specdec_verdict", "1 for the verdict word of this row.", {**labels, "word": row.verdict.word}, 1)
