"""The page's sections as plain values for the template: what to deploy, how sure, the table, what else changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..analysis.commands import shell
from ..analysis.doubts import acceptance_mark, text_mark
from ..analysis.sentences import at_load
from ..records.base import Finding
from ..records.comparison import CellResult, Floor
from ..records.decision import WorkloadDecision
from . import numbers
from .source import Results, load_words

TONES = {"faster": "good", "slower": "bad", "text differs": "bad", "unreliable": "warn", "not exercised": "warn"}
_ECHO = "Baseline: "
"""How the analysis begins a mode's finding that repeats one of its baseline."""
_DEFAULT_HINT = {
    "error": "Do not use the rows it names before this is mended; then measure them again.",
    "warn": "Read the rows it names with care.",
    "info": "Nothing needs to be done.",
}


def slug(*parts: str) -> str:
    """An id for a page anchor."""
    return "-".join(re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-").lower() or "x" for part in parts)


def anchor(kind: str, load: str, mode: str) -> str:
    """The id of one row of the table."""
    return slug("row", kind, load, mode)


def tone(word: str | None) -> str:
    """How a verdict is coloured; the word itself always stands beside the colour."""
    return TONES.get(word or "", "neutral")


@dataclass
class Remark:
    """Findings of one kind with one thing to do about them, and the rows of the table that each is about."""

    code: str
    severity: str
    hint: str
    said: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Message -> rows as (anchor, words)."""


def remarks(results: Results) -> list[Remark]:
    """Every finding once, errors first, each with what to do and the rows it is about."""
    found: dict[tuple[str, str], Remark] = {}
    order = {"error": 0, "warn": 1, "info": 2}

    def add(findings: Iterable[Finding], row: tuple[str, str] | None) -> None:
        for finding in findings:
            hint = finding.hint or _DEFAULT_HINT[finding.severity]
            remark = found.setdefault((finding.code, hint), Remark(finding.code, finding.severity, hint))
            remark.severity = min(remark.severity, finding.severity, key=lambda severity: order[severity])
            rows = remark.said.setdefault(finding.message, [])
            if row is not None and row not in rows:
                rows.append(row)

    add(results.comparison.findings, None)
    add(results.decision.findings, None)
    for floor in results.comparison.floors:
        where = f"{floor.baseline} on {floor.kind} at {at_load(floor.load)}"
        add(floor.findings, (anchor(floor.kind, floor.load, floor.baseline), where))
    for row in results.comparison.cells:
        here = (anchor(row.kind, row.load, row.mode), f"{row.mode} on {row.kind} at {at_load(row)}")
        add(row.findings, here)
        told = {one.code for one in row.findings}
        if row.acceptance is not None:
            add([one for one in row.acceptance.findings if one.code not in told], here)
    for remark in found.values():
        echoes = [said for said in remark.said if said.removeprefix(_ECHO) in remark.said and said.startswith(_ECHO)]
        for said in echoes:  # the baseline's own row says it already
            del remark.said[said]
    return sorted(found.values(), key=lambda remark: order[remark.severity])


def answers(results: Results) -> list[dict[str, Any]]:
    """One entry per workload: the sentence, why, how it was judged, and the rows behind it."""
    return [_answer(results, workload) for workload in results.decision.workloads]


def _answer(results: Results, workload: WorkloadDecision) -> dict[str, Any]:
    rows = results.rows(workload.kind)
    links: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        links.setdefault(f"at {at_load(row)}", []).append((anchor(row.kind, row.load, row.mode), row.mode))
    return {
        "kind": workload.kind,
        "id": slug("answer", workload.kind),
        "sentence": workload.sentence,
        "why": workload.why,
        "word": workload.verdict.word,
        "tone": tone(workload.verdict.word),
        "reasons": [(reason.message, reason.hint) for reason in workload.verdict.reasons],
        "next_step": workload.next_step,
        "batch_mode": workload.batch_mode,
        "mode": workload.mode,
        "serve": slug("serve", workload.mode) if workload.mode in results.decision.serve else "",
        "links": links,
        "candidates": [
            {
                "mode": candidate.mode,
                "word": candidate.word,
                "tone": tone(candidate.word),
                "decode": numbers.ratio(candidate.decode_speedup),
                "aggregate": numbers.ratio(candidate.aggregate_gain),
                "reasons": [reason.message for reason in candidate.reasons],
            }
            for candidate in workload.candidates
        ],
    }


def commands(results: Results) -> list[dict[str, str]]:
    """What serves each mode that the decision uses, each once."""
    return [
        {"mode": mode, "id": slug("serve", mode), "command": shell(results.comparison.specs[mode], argv)}
        for mode, argv in results.decision.serve.items()
    ]


def routes(results: Results) -> list[list[str]]:
    """The routing table in words."""
    out = []
    for route in results.decision.routes:
        out.append(
            [
                route.kind,
                route.span,
                route.mode if route.speculative else f"{route.mode} (speculation off)",
                "what one user feels" if route.interactive else "what the server completes",
            ]
        )
    return out


def floors(results: Results) -> list[list[str]]:
    """The baseline against itself."""
    return [
        [
            floor.kind,
            next((load_words(row) for row in results.rows(floor.kind) if row.load == floor.load), floor.load),
            floor.baseline,
            str(floor.starts),
            numbers.share(_noise_floor(results, floor), digits=1),
            numbers.share(floor.decode, digits=1),
            numbers.share(floor.aggregate, digits=1),
            numbers.count(floor.identical, floor.identical_n),
            numbers.share(floor.drift, digits=1),
        ]
        for floor in results.comparison.floors
    ]


def _noise_floor(results: Results, floor: Floor) -> float | None:
    """What the gains of this cell were held against; None when none was judged."""
    known = [row.decode.floor for row in results.rows(floor.kind) if _of(row, floor) and row.decode is not None]
    return max((one for one in known if one is not None), default=None)


def _of(row: CellResult, floor: Floor) -> bool:
    return (row.load, row.against) == (floor.load, floor.baseline)


def table(results: Results) -> list[dict[str, Any]]:
    """M28: one row per kind, load and mode."""
    return [_row(row) for kind in results.kinds for row in results.rows(kind)]


def _row(row: CellResult) -> dict[str, Any]:
    decode, aggregate, identity = row.decode, row.aggregate, row.identity
    word = "baseline" if row.against is None else (row.verdict.word if row.verdict else row.status)
    return {
        "id": anchor(row.kind, row.load, row.mode),
        "kind": row.kind,
        "load": load_words(row),
        "mode": row.mode,
        "baseline": row.against is None,
        "word": word,
        "tone": tone(word),
        "status": row.status,
        "reasons": [(reason.message, reason.hint) for reason in (row.verdict.reasons if row.verdict else [])],
        "agg": numbers.rate(row.agg_tok_s),
        "gain": numbers.ratio(aggregate.ratio) if aggregate else "",
        "decode": numbers.rate(row.p50_decode_tok_s),
        "speedup": numbers.ratio(decode.ratio) if decode else "",
        "interval": numbers.interval(decode.low, decode.high) if decode and decode.low is not None else "",
        "refused": decode.refused or "" if decode and decode.low is None else "",
        "ttft50": numbers.milliseconds(row.p50_ttft_s),
        "ttft95": numbers.milliseconds(row.p95_ttft_s),
        "acceptance": _acceptance_words(row),
        "identical": numbers.count(identity.identical, identity.n) + text_mark(row) if identity else "",
        "requests": f"{row.requests - row.failed}/{row.requests}",
        "starts": row.starts,
        "energy": numbers.plain(row.energy_j_per_token) if row.energy_j_per_token is not None else "",
        "cost": numbers.plain(row.cost_per_million) if row.cost_per_million is not None else "",
    }


def _acceptance_words(row: CellResult) -> str:
    acceptance = row.acceptance
    if acceptance is None or acceptance.status == "not_applicable":
        return ""
    if acceptance.status != "measured":
        return acceptance.status.replace("_", " ")
    length = acceptance.acceptance_length
    told = numbers.share(acceptance.acceptance_rate) + (f" ({length:.2f})" if length is not None else "")
    return told + acceptance_mark(row)


def theory(results: Results) -> list[list[str]]:
    """M29, M30: what acceptance promises, beside what was measured."""
    out = []
    for kind in results.kinds:
        for row in results.rows(kind):
            made = row.theory
            if made is None or row.against is None:
                continue
            out.append(
                [
                    kind,
                    load_words(row),
                    row.mode,
                    numbers.MISSING if made.k is None else str(made.k),
                    numbers.share(row.acceptance.acceptance_rate if row.acceptance else None) + acceptance_mark(row),
                    numbers.plain(made.expected_length),
                    numbers.plain(made.measured_length),
                    numbers.ratio(made.ceiling),
                    numbers.ratio(row.decode.ratio if row.decode else None),
                    numbers.plain(made.step_cost_ratio),
                    " ".join(finding.message for finding in made.diagnosis),
                ]
            )
    return out


def diagnoses(results: Results) -> dict[str, list[str]]:
    """M30: what to do, with every row that asks for it and why."""
    found: dict[str, list[str]] = {}
    for kind in results.kinds:
        for row in results.rows(kind):
            for finding in row.theory.diagnosis if row.theory else []:
                where = f"{row.mode} on {kind} at {at_load(row)}"
                found.setdefault(finding.hint or _DEFAULT_HINT[finding.severity], []).append(
                    f"{where}: {finding.message}"
                )
    return found


def expectations(results: Results) -> list[tuple[str, str]]:
    """M39, M40: surprises and claims beside what was measured; (what, remark)."""
    comparison = results.comparison
    out = [(f"Surprise: {s.mode} on {s.kind}", f"{s.message} {s.hint}".strip()) for s in comparison.surprises]
    out += [
        (f"Claim for {match.claim.mode}: “{match.claim.text}” ({match.claim.source})", match.remark)
        for match in comparison.claims
    ]
    return out


def identity(results: Results) -> list[dict[str, Any]]:
    """M5, M33: every row's judgement of its texts, with its differences."""
    out = []
    for kind in results.kinds:
        for row in results.rows(kind):
            judged = row.identity
            if judged is None or row.against is None:
                continue
            out.append(
                {
                    "row": anchor(row.kind, row.load, row.mode),
                    "kind": kind,
                    "load": load_words(row),
                    "mode": row.mode,
                    "word": judged.word,
                    "tone": {"same": "good", "differs": "bad"}.get(judged.word, "neutral"),
                    "identical": numbers.count(judged.identical, judged.n),
                    "control": numbers.count(judged.control_identical, judged.control_n),
                    "median": numbers.plain(judged.median_at_char, 0) if judged.differences else "",
                    "earliest": numbers.plain(judged.earliest_at_char, 0) if judged.differences else "",
                    "reasons": [reason.message for reason in judged.reasons],
                    "differences": judged.differences,
                }
            )
    return out


def stack(results: Results) -> list[tuple[str, str]]:
    """M10: what the numbers were measured on."""
    made = results.comparison.stack
    if made is None:
        return []
    host, engine = made.host, made.engine
    specs = results.comparison.specs.values()
    names = {role: one.hub or one.path or one.bundled for spec in specs for role, one in spec.checkpoints.items()}
    out = [
        ("Engine", " ".join(part for part in (engine.software, engine.version, engine.build) if part)),
        ("Image", engine.image or ""),
        ("Image digest", engine.image_digest or ""),
        *((f"GPU {gpu.index}", f"{gpu.name}, {numbers.gibibytes(gpu.memory_total_bytes)}") for gpu in made.gpus),
        ("Driver", made.driver or ""),
        ("CUDA", made.cuda or ""),
        ("Host", f"{host.cpu}, {host.cores} cores, {numbers.gibibytes(host.memory_bytes)}"),
        ("System", f"{host.system}, Python {host.python}" + (f", governor {host.governor}" if host.governor else "")),
        *(
            (f"Checkpoint: {role}", ", ".join(part for part in (names.get(role), digest) if part))
            for role, digest in sorted(made.checkpoints.items())
        ),
        ("specdec-lab", made.lab),
    ]
    return [(name, value) for name, value in out if value]


def failed(results: Results) -> list[dict[str, Any]]:
    """Modes that could not be measured: what failed, why, where the log is, what to do."""
    return [
        {
            "mode": one.mode,
            "replicates": ", ".join(map(str, one.replicates)),
            "cause": one.failure.cause if one.failure else "No cell of it is there, and no reason is on file.",
            "fix": one.failure.fix if one.failure else "Run the workflow again.",
            "log": f"sessions/{one.mode}/r{one.replicates[0]}/{one.failure.log}"
            if one.failure and one.failure.log
            else "",
            "excerpt": "\n".join(one.failure.excerpt) if one.failure else "",
        }
        for one in results.comparison.failed
    ]
