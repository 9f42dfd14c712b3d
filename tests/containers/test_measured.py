"""A container measured end to end through a session: digest in the key, packages in the stack (M9, M10)."""

import json

import pytest

from specdec_lab.launchers.docker import LABEL
from specdec_lab.records.base import canonical
from specdec_lab.records.cell import Cell
from specdec_lab.records.errors import UserError
from specdec_lab.records.session import Failure
from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, ServerSpec, SessionSpec
from specdec_lab.session.run import run

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]


def spec(image, speculative, **more) -> str:
    args = {"ctx-size": 2048, "parallel": 1, "threads": 1, "threads-batch": 1}
    server = ServerSpec(
        engine="llama_cpp", launcher="docker", image=image, gpus=0, speculative=speculative, args={**args, **more}
    )
    checkpoints = {"target": CheckpointSpec(bundled="smollm2-135m-q4_1")}
    session = SessionSpec(server=server, checkpoints=checkpoints, against=None)
    cell = CellSpec(kind="k", load=Load(concurrency=1), requests=None, warmup=1)
    return canonical({"session": session.model_dump(mode="json"), "cells": [cell.model_dump(mode="json")]})


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_STORE", str(tmp_path / "cells"))
    monkeypatch.chdir(tmp_path)
    texts = ["Count from one to ten.", "Explain how a tide works to a child.", "Say hello."]
    rows = [
        {"id": f"p{n}", "kind": "k", "messages": [{"role": "user", "content": t}], "max_tokens": 24}
        for n, t in enumerate(texts)
    ]
    (tmp_path / "prompts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def measure(place, asked, mode):
    folder = place / "results" / "t" / "sessions" / mode / "r1"
    run(asked, mode=mode, replicate=1, folder=folder, prompts_file=place / "prompts.jsonl", places=1)
    return Cell.read(folder / "k_c1.json"), folder


def test_a_container_is_measured_with_its_digest_and_packages(engine, llama_image, place):
    cell, folder = measure(place, spec(llama_image, {"method": "ngram-simple", "ngram-simple-size-n": 6}), "ngram")
    assert cell.summary.failed == 0
    assert cell.summary.completion_tokens > 0
    assert cell.stack.engine.image_digest == engine.images.get(llama_image).id
    assert cell.digests["image"] == cell.stack.engine.image_digest
    assert "xllamacpp" in cell.stack.engine.packages
    assert cell.counters.source == "metrics"
    assert (folder / "server.log").read_text().startswith('{"specdec_engine"')
    assert engine.containers.list(all=True, filters={"label": LABEL}) == []


def test_c2_a_container_that_dies_at_start_is_a_failure_with_its_log_and_no_cell(engine, llama_image, place):
    with pytest.raises(UserError) as error:
        measure(place, spec(llama_image, None, **{"no-such-flag": 1}), "bad")
    folder = place / "results" / "t" / "sessions" / "bad" / "r1"
    failure = Failure.read(folder / "failure.json")
    assert (failure.code, failure.exit_code) == ("unknown_option", 2)
    assert "no-such-flag" in error.value.cause
    assert (folder / "server.log").exists()
    assert not (folder / "k_c1.json").exists()
    assert engine.containers.list(all=True, filters={"label": LABEL}) == []
