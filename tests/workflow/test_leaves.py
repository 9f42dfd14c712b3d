"""Every leaf of the config reaches the jobs it should, and no other: what reruns, and what is measured again.

Snakemake reruns a job when its params or the set of its inputs change, or when a job before it ran; so the jobs that
rerun by themselves are read off `Lab`, which is all that the Snakefile asks. `test_reruns.py` holds Snakemake to it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest

from specdec_lab.config import models
from specdec_lab.dag import Lab
from specdec_lab.session.store import Ground, cell_key

BASE: dict[str, Any] = {
    "name": "leaves",
    "engine": {
        "software": "vllm",
        "version": "0.33.0",
        "image": "vllm/vllm-openai:v0.33.0",
        "args": {"max-model-len": 8192},
        "env": {"OMP_NUM_THREADS": "8"},
    },
    "checkpoints": {
        "target": {"hub": "meta-llama/Llama-3.1-8B-Instruct", "revision": "0" * 40},
        "draft": {"hub": "meta-llama/Llama-3.2-1B-Instruct", "revision": "1" * 40},
    },
    "modes": {
        "baseline": {},
        "other": {"differs": {"why": "to see", "args": {"max-num-seqs": 32}, "env": {"A": "1"}}},
        "ngram": {"speculative": {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}},
        "draft": {"speculative": {"method": "draft_model", "model": "draft", "num_speculative_tokens": 5}},
    },
    "workload": {"requests": 32, "kinds": ["code", "json"], "max_tokens": {"json": 60}},
    "load": {"concurrency": [1, 4], "rates": [2.5]},
    "decision": {"margin": 0.05},
    "cost": {"per_hour": 2.0},
    "claims": [{"mode": "ngram", "speedup": 3.0, "source": "a page", "kind": "code"}],
}
ALL = {"baseline", "other", "ngram", "draft"}
SESSIONS = frozenset(f"session:{mode}" for mode in ALL)
PROMPTS = frozenset({"prompts"})
NOTHING: frozenset[str] = frozenset()
MEASURED = frozenset(ALL)


def session(*modes: str) -> frozenset[str]:
    return frozenset(f"session:{mode}" for mode in modes)


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of one leaf."""

    def change(config: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        place = config
        for key in parents:
            place = place[int(key)] if isinstance(place, list) else place.setdefault(key, {})
        place[last] = value

    return change


CHECKPOINT = frozenset({"checkpoint:draft"})
# Leaf -> change, the jobs that rerun by themselves, the modes whose cells are measured again.
LEAVES: dict[str, tuple[Callable[[dict[str, Any]], None], frozenset[str], frozenset[str]]] = {
    "engine.version": (put("engine.version", "0.33.1"), SESSIONS, MEASURED),
    "engine.image": (put("engine.image", "vllm/vllm-openai:v0.33.1"), SESSIONS | {"image"}, MEASURED),
    "engine.served_model": (put("engine.served_model", "llama"), SESSIONS, MEASURED),
    "engine.args": (put("engine.args.max-model-len", 4096), SESSIONS, MEASURED),
    "engine.env": (put("engine.env.OMP_NUM_THREADS", "4"), SESSIONS, MEASURED),
    "engine.gpus": (put("engine.gpus", 2), SESSIONS, MEASURED),
    # How long to wait changes no number: the jobs run again and take every cell from the store.
    "engine.ready_timeout_s": (put("engine.ready_timeout_s", 60.0), SESSIONS, NOTHING),
    "engine.stop_timeout_s": (put("engine.stop_timeout_s", 60.0), SESSIONS, NOTHING),
    "checkpoints.<name>.hub": (
        put("checkpoints.draft.hub", "a/b"),
        CHECKPOINT | session("draft"),
        frozenset({"draft"}),
    ),
    "checkpoints.<name>.revision": (
        put("checkpoints.draft.revision", "2" * 40),
        CHECKPOINT | session("draft"),
        frozenset({"draft"}),
    ),
    "checkpoints.<name>.files": (
        put("checkpoints.draft.files", ["*.safetensors"]),
        CHECKPOINT | session("draft"),
        frozenset({"draft"}),
    ),
    "checkpoints.<name>.gated": (
        put("checkpoints.draft.gated", True),
        CHECKPOINT | session("draft"),
        frozenset({"draft"}),
    ),
    "checkpoints.<name>.path": (
        put("checkpoints.draft", {"path": "/models/draft"}),
        CHECKPOINT | session("draft"),
        frozenset({"draft"}),
    ),
    "checkpoints.<name>.bundled": (
        put("checkpoints.draft", {"bundled": "smollm2-135m-q4_1"}),
        CHECKPOINT | session("draft"),
        frozenset({"draft"}),
    ),
    "modes.<name>.speculative": (
        put("modes.ngram.speculative.num_speculative_tokens", 3),
        session("ngram"),
        frozenset({"ngram"}),
    ),
    # With what a mode is compared changes none of its own numbers.
    "modes.<name>.against": (put("modes.ngram.against", "other"), session("ngram"), NOTHING),
    "modes.<name>.target": (put("modes.other.target", "draft"), session("other"), frozenset({"other"})),
    "modes.<name>.lossy": (put("modes.ngram.lossy", True), NOTHING, NOTHING),
    "modes.<name>.sweep": (
        put("modes.ngram.sweep", {"num_speculative_tokens": [2, 3]}),
        session("ngram-k2", "ngram-k3"),
        frozenset({"ngram-k2", "ngram-k3"}),
    ),
    "modes.<name>.gpus": (put("modes.ngram.gpus", 2), session("ngram"), frozenset({"ngram"})),
    "modes.<name>.differs.why": (put("modes.other.differs.why", "to see more"), NOTHING, NOTHING),
    "modes.<name>.differs.args": (
        put("modes.other.differs.args.max-num-seqs", 16),
        session("other"),
        frozenset({"other"}),
    ),
    "modes.<name>.differs.env": (put("modes.other.differs.env.A", "2"), session("other"), frozenset({"other"})),
    "only": (put("only", ["ngram"]), NOTHING, NOTHING),
    "workload.seed": (put("workload.seed", 8), PROMPTS, NOTHING),
    "workload.kinds": (put("workload.kinds", ["code"]), PROMPTS | SESSIONS, NOTHING),
    "workload.context_tokens": (put("workload.context_tokens", [2000]), PROMPTS | SESSIONS, MEASURED),
    "workload.requests": (put("workload.requests", 16), SESSIONS, MEASURED),
    "workload.max_tokens": (put("workload.max_tokens.json", 50), SESSIONS, MEASURED),
    "workload.ignore_eos": (put("workload.ignore_eos", True), SESSIONS, MEASURED),
    "workload.warmup": (put("workload.warmup", 5), SESSIONS, MEASURED),
    "workload.temperature": (put("workload.temperature", 0.5), SESSIONS, MEASURED),
    "workload.body": (put("workload.body", {"top_k": 1}), SESSIONS, MEASURED),
    "load.concurrency": (put("load.concurrency", [1, 4, 8]), SESSIONS, MEASURED),
    "load.rates": (put("load.rates", [3.0]), SESSIONS, MEASURED),
    "load.seed": (put("load.seed", 1), SESSIONS, MEASURED),
    "load.total_s": (put("load.total_s", 200.0), SESSIONS, MEASURED),
    "load.first_byte_s": (put("load.first_byte_s", 60.0), SESSIONS, MEASURED),
    "load.idle_s": (put("load.idle_s", 30.0), SESSIONS, MEASURED),
    "load.abort_after_failures": (put("load.abort_after_failures", 4), SESSIONS, MEASURED),
    "load.ttft_s": (put("load.ttft_s", 1.0), SESSIONS, NOTHING),
    "load.tpot_s": (put("load.tpot_s", 0.1), SESSIONS, NOTHING),
    "protocol.replicates": (put("protocol.replicates", 3), NOTHING, NOTHING),
    "protocol.baseline_replicates": (put("protocol.baseline_replicates", 3), NOTHING, NOTHING),
    "protocol.seed": (put("protocol.seed", 8), NOTHING, NOTHING),
    "protocol.placebo": (put("protocol.placebo", True), session("placebo"), frozenset({"placebo"})),
    "decision.margin": (put("decision.margin", 0.1), NOTHING, NOTHING),
    "decision.concurrency": (put("decision.concurrency", 4), NOTHING, NOTHING),
    "decision.identical": (put("decision.identical", 0.9), NOTHING, NOTHING),
    "decision.noise_limit": (put("decision.noise_limit", 0.2), NOTHING, NOTHING),
    "cost.per_hour": (put("cost.per_hour", 3.0), NOTHING, NOTHING),
    "cost.currency": (put("cost.currency", "EUR"), NOTHING, NOTHING),
    "claims[].mode": (put("claims.0.mode", "draft"), NOTHING, NOTHING),
    "claims[].speedup": (put("claims.0.speedup", 2.0), NOTHING, NOTHING),
    "claims[].source": (put("claims.0.source", "another page"), NOTHING, NOTHING),
    "claims[].kind": (put("claims.0.kind", "json"), NOTHING, NOTHING),
}
# Leaves that make another matrix altogether (another folder, another kind of server), each with its own tests.
ELSEWHERE = {
    "name",
    "engine.software",
    "engine.launcher",
    "engine.command",
    "engine.base_url",
    "modes.<name>.base_url",
    "workload.prompts",
}
GROUND = Ground(prompts="p", checkpoints={}, launch="l", image=None, engine=None, hardware="h", code="c")


def load(folder: Path, config: dict[str, Any], name: str) -> Lab:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return Lab.load([path], root=folder)


def jobs(lab: Lab) -> dict[str, object]:
    """Every job that measures or prepares, with what Snakemake compares of it."""
    found: dict[str, object] = {"prompts": (lab.matrix.workload(), lab.own_traffic)}
    found |= {f"checkpoint:{name}": lab.checkpoint_spec(name) for name in lab.checkpoints}
    found["image"] = lab.image()
    found |= {f"session:{mode}": (lab.session_spec(mode), lab.session_inputs(mode)) for mode in lab.modes}
    return found


def cells(lab: Lab) -> set[tuple[str, str]]:
    """Mode and content address of every cell, on one and the same ground."""
    return {
        (mode, cell_key(mode, 1, spec, cell, GROUND))
        for mode, spec in lab.matrix.sessions.items()
        for cell in lab.matrix.cells
    }


def leaves(block: type[models.Block], where: str = "") -> set[str]:
    found = set()
    for name, field in block.model_fields.items():
        inside = _blocks(field.annotation, f"{where}{name}")
        found |= {leaf for one, place in inside for leaf in leaves(one, f"{place}.")} or {f"{where}{name}"}
    return found


def _blocks(annotation: Any, where: str) -> list[tuple[type[models.Block], str]]:
    if isinstance(annotation, type) and issubclass(annotation, models.Block):
        return [(annotation, where)]
    suffix = {dict: ".<name>", list: "[]"}.get(get_origin(annotation), "")
    return [found for arg in get_args(annotation) for found in _blocks(arg, where + suffix)]


def test_every_leaf_of_the_config_is_in_the_table() -> None:
    assert set(LEAVES) | ELSEWHERE == leaves(models.LabConfig)


@pytest.mark.parametrize("leaf", LEAVES)
def test_a_leaf_reaches_its_jobs_and_no_other(leaf: str, tmp_path: Path) -> None:
    change, reruns, measured = LEAVES[leaf]
    config = copy.deepcopy(BASE)
    change(config)
    before, after = load(tmp_path, BASE, "before"), load(tmp_path, config, "after")
    assert before.resolved() != after.resolved()
    ours, theirs = jobs(before), jobs(after)
    assert {job for job in theirs if theirs[job] != ours.get(job)} == reruns
    assert {mode for mode, _ in cells(after) - cells(before)} == measured


def test_the_order_of_keys_and_the_way_numbers_are_written_change_nothing(tmp_path: Path) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(list(value))}
        return value

    config = turned(BASE)
    before = load(tmp_path, BASE, "before")
    path = tmp_path / "after.yaml"
    path.write_text(json.dumps(config).replace("2.5", "2.50").replace("0.05", "5.0e-2"), encoding="utf-8")
    after = Lab.load([path], root=tmp_path)
    assert before.resolved() == after.resolved()
    assert jobs(before) == jobs(after)


@pytest.mark.parametrize("part", ["prompts", "launch", "image", "engine", "hardware", "code"])
def test_what_a_cell_stands_on_changes_its_address(part: str, tmp_path: Path) -> None:
    import dataclasses

    lab = load(tmp_path, BASE, "base")
    mode, cell = "ngram", lab.matrix.cells[0]
    spec = lab.matrix.sessions[mode]
    other = dataclasses.replace(GROUND, **{part: "another"})
    assert cell_key(mode, 1, spec, cell, GROUND) != cell_key(mode, 1, spec, cell, other)


def test_one_more_concurrency_has_the_old_cells_and_new_ones(tmp_path: Path) -> None:
    config = copy.deepcopy(BASE)
    config["load"]["concurrency"] = [1, 4, 8]
    before, after = cells(load(tmp_path, BASE, "before")), cells(load(tmp_path, config, "after"))
    assert before < after
    assert len(after - before) == len(ALL) * 2
