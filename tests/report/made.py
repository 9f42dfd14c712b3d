"""A results folder with everything a report can show, judged by the real analysis from made-up cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from specdec_lab import prompts
from specdec_lab.analysis import compare, decision, tables
from specdec_lab.analysis.synthetic import Made, cell, flipped, plain_text
from specdec_lab.records.base import strict_dumps
from specdec_lab.records.cell import Acceptance
from specdec_lab.records.comparison import Comparison, Curve, CurvePoint, FailedMode
from specdec_lab.records.decision import Claim, Decision, DecisionRules, Plan, PlannedMode, Sweep
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.session import Failure
from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, ServerSpec, SessionSpec

KINDS = ("code", "chat")
LOADS = (1, 4, 16)
PROMPTS = 12
SPEEDUPS = {
    "baseline": {"code": (1.0, 1.0, 1.0), "chat": (1.0, 1.0, 1.0)},
    "ngram": {"code": (1.9, 1.6, 0.93), "chat": (1.01, 0.99, 0.9)},
    "draft_k2": {"code": (1.4, 1.3, 1.0), "chat": (1.3, 1.2, 0.95)},
    "draft_k4": {"code": (1.6, 1.4, 0.9), "chat": (1.25, 1.1, 0.85)},
}
NOISE = (0.994, 1.003, 1.006)
CALL = 'open {"path": "a<b>.py"}'
"""What every mode calls for one prompt, beside its answer."""


def _cells() -> list[dict[str, Any]]:
    made = []
    slot = 0
    for replicate in (1, 2, 3):
        for mode, speedups in SPEEDUPS.items():
            slot += 1
            for order, (kind, place) in enumerate((kind, place) for kind in KINDS for place in range(len(LOADS))):
                rate = 50.0 / (1 + place) * speedups[kind][place] * NOISE[(replicate + len(mode)) % 3]
                one = Made(
                    mode,
                    replicate,
                    [rate * (1 + 0.01 * (number % 5)) for number in range(PROMPTS)],
                    kind=kind,
                    concurrency=LOADS[place],
                    against=None if mode == "baseline" else "baseline",
                    texts=_texts(mode, kind, replicate),
                    tool_calls=[CALL if (kind, number) == ("code", 2) else None for number in range(PROMPTS)],
                    started_at=f"2026-01-01T01:{4 * slot:02d}:{5 * order:02d}Z",
                    speculative=None if mode == "baseline" else {"method": mode.split("_")[0]},
                    drafts=None if mode == "baseline" else 400,
                    draft_tokens=None if mode == "baseline" else 1600,
                    accepted=None if mode == "baseline" else (1000 if kind == "code" else 420),
                    clocks=(1900 - slot, 1905 - slot),
                    order=order,
                )
                made.append(_with_target(_with_positions(cell(one))))
    return made


def _texts(mode: str, kind: str, replicate: int) -> list[str]:
    texts = [f"{kind} {number} <b>&amp; 日本 🙂 {plain_text(number, 500)}" for number in range(PROMPTS)]
    if mode == "draft_k4" and kind == "chat":
        texts[3] = flipped(texts[3], 400)
    if replicate == 2 and mode == "baseline" and kind == "chat":
        texts[5] = flipped(texts[5], 350)
    return texts


def _with_target(made: dict[str, Any]) -> dict[str, Any]:
    made["session"]["checkpoints"] = {"target": CheckpointSpec(hub="owner/target").model_dump()}
    return made


def _with_positions(made: dict[str, Any]) -> dict[str, Any]:
    acceptance = made["counters"]["acceptance"]
    if acceptance["drafts"]:
        length = acceptance["acceptance_length"] - 1
        weights = [8, 4, 2, 1]
        acceptance["per_position"] = [min(1.0, length * weight / sum(weights)) for weight in weights]
    return made


def _session(mode: str, replicate: int, cells: list[dict[str, Any]]) -> dict[str, Any]:
    first = cells[0]
    start = first["started_at"]
    stop = start[:-3] + "59Z"
    stack = {
        **first["stack"],
        "gpus": [{"index": 0, "name": "Made-up GPU", "memory_total_bytes": 2**36}],
        "driver": "580.1",
        "engine": {"software": "vllm", "version": "0.33.0", "packages": {"torch": "2.9", "vllm": "0.33.0"}},
    }
    return {
        "mode": mode,
        "replicate": replicate,
        "spec": first["session"],
        "cells": {f"{c['cell']['kind']}_c{c['cell']['load']['concurrency']}": c["key"] for c in cells},
        "lifetimes": [
            {
                "id": first["server"],
                "started_at": start,
                "stopped_at": stop,
                "facts": {"async_scheduling": mode == "baseline", "max_num_batched_tokens": 8192},
                "stack": stack,
            }
        ],
        "measured": len(cells),
    }


def make(results: Path) -> Path:
    """Write the folder: cells, sessions, plan, prompts; then compare and decide with the real code."""
    cells = _cells()
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for one in cells:
        groups.setdefault((one["mode"], one["replicate"]), []).append(one)
    for (mode, replicate), own in groups.items():
        place = results / "sessions" / mode / f"r{replicate}"
        place.mkdir(parents=True, exist_ok=True)
        session = _session(mode, replicate, own)
        for one in own:
            one["stack"] = session["lifetimes"][0]["stack"]
            name = f"{one['cell']['kind']}_c{one['cell']['load']['concurrency']}.json"
            (place / name).write_text(strict_dumps(one), encoding="utf-8")
        (place / "session.json").write_text(strict_dumps(session), encoding="utf-8")
    plan = Plan(
        name="made",
        rules=DecisionRules(at=4),
        modes=[
            PlannedMode(
                name=mode,
                against=None if mode == "baseline" else "baseline",
                replicates=3,
                method=None if mode == "baseline" else mode.split("_")[0],
                k={"draft_k2": 2, "draft_k4": 4, "ngram": 4}.get(mode),
            )
            for mode in SPEEDUPS
        ],
        cells=[
            CellSpec(kind=kind, load=Load(concurrency=load), warmup=load, requests=PROMPTS)
            for kind in KINDS
            for load in LOADS
        ],
        claims=[Claim(mode="ngram", text="up to 3x", speedup=3.0, kind="code", source="a vendor's page")],
        sweeps=[Sweep(axis="k", method="draft", points={"draft_k2": 2, "draft_k4": 4})],
    )
    (results / "config.resolved.json").write_text(strict_dumps({"plan": plan.model_dump(mode="json")}))
    rows = [
        Prompt(id=f"p{n}", kind="any", messages=[Message(role="user", content=f"Prompt {n} </script>")], max_tokens=99)
        for n in range(PROMPTS)
    ]
    prompts.write(results / "prompts.jsonl", rows)
    comparison = compare.compare(results)
    tables.write(comparison.model_copy(update={"curves": comparison.curves or [_sweep()]}), results)
    decision.write(results)
    return results


def _sweep() -> Curve:
    points = [
        CurvePoint(x=k, mode=f"draft_k{k}", kind="code", load="c1", p50_decode_tok_s=speed, decode_speedup=speed / 50)
        for k, speed in ((2, 70.0), (3, 78.0), (4, 80.0), (6, 75.0))
    ]
    return Curve(axis="k", method="draft", kind="code", load="c1", points=points, best_x=3)


def make_poor(rich: Path, poor: Path) -> Path:
    """The same run as it would look after much went wrong: one start, no intervals, no counters, a mode that failed."""
    comparison = Comparison.read(rich / "comparison.json")
    cells = [
        row.model_copy(
            update={
                "decode": row.decode and row.decode.model_copy(update=_NO_INTERVAL),
                "aggregate": row.aggregate and row.aggregate.model_copy(update=_NO_INTERVAL),
                "p95_ttft_s": None,
                "acceptance": Acceptance(status="absent") if row.against else row.acceptance,
                "starts": 1,
            }
        )
        for row in comparison.cells
        if row.mode != "draft_k4"
    ]
    failure = Failure(
        mode="draft_k4",
        replicate=1,
        spec=SessionSpec(server=ServerSpec(engine="vllm", launcher="process"), checkpoints={}, against="baseline"),
        at="2026-01-01T00:00:00Z",
        code="out_of_memory",
        cause="The GPU has too little memory <for this>.",
        place="server.log",
        fix="Lower gpu-memory-utilization.",
        log="server.log",
        excerpt=["torch.OutOfMemoryError: CUDA out of memory"],
    )
    failed = [FailedMode(mode="draft_k4", replicates=[1, 2, 3], failure=failure)]
    changed = comparison.model_copy(
        update={"cells": cells, "failed": failed, "floors": [], "curves": [], "stack": None}
    )
    poor.mkdir(parents=True)
    changed.write(poor / "comparison.json")
    Decision.read(rich / "decision.json").model_copy(update={"routes": [], "serve": {}}).write(poor / "decision.json")
    (poor / "sessions" / "ngram" / "r1").mkdir(parents=True)
    (poor / "sessions" / "ngram" / "r1" / "code_c1.json").write_text('{"half": ')
    return poor


_NO_INTERVAL = {"low": None, "high": None, "floor": None, "refused": "one start cannot show its own spread"}
