"""A server that runs already is measured by its address, and left running (M20)."""

import json
import socket
import time
from pathlib import PurePosixPath

import pytest

from specdec_lab import checkpoints, engines, launchers
from specdec_lab.engines import http
from specdec_lab.launchers.base import LaunchPlan
from specdec_lab.records.base import canonical
from specdec_lab.records.cell import Cell
from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, ServerSpec, SessionSpec
from specdec_lab.session.run import run

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture
def somebodys_server(tmp_path, monkeypatch):
    pytest.importorskip("xllamacpp", reason="the embedded engine is not installed (pip install -e '.[demo]')")
    monkeypatch.setenv("SPECDEC_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SPECDEC_STORE", str(tmp_path / "cells"))
    model = checkpoints.fetch(CheckpointSpec(bundled="smollm2-135m-q4_1")).path
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    llama = engines.get("llama_cpp")
    spec = ServerSpec(engine="llama_cpp", launcher="process", args={"ctx-size": 2048, "threads": 1}, gpus=0)
    argv = llama.argv(spec, {"target": PurePosixPath(model)}, host="127.0.0.1", port=port)
    running = launchers.get("process").start(
        LaunchPlan(name="theirs", argv=[*llama.default_command, *argv], log=tmp_path / "theirs.log", port=port)
    )
    limit = time.monotonic() + 60
    while http.get_text(f"{running.base_url}/health") is None and time.monotonic() < limit:
        time.sleep(0.1)
    yield running
    running.stop(5)


@pytest.mark.parametrize("engine", ["llama_cpp", "openai"])
def test_an_attached_server_is_measured_and_lives_on(engine, somebodys_server, tmp_path):
    server = ServerSpec(
        engine=engine, launcher="attach", base_url=somebodys_server.base_url, served_model="whatever", gpus=0
    )
    session = SessionSpec(server=server, checkpoints={}, against=None)
    cell = CellSpec(kind="k", load=Load(concurrency=1), requests=None, warmup=1)
    asked = canonical({"session": session.model_dump(mode="json"), "cells": [cell.model_dump(mode="json")]})
    row = {"id": "p", "kind": "k", "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 12}
    (tmp_path / "prompts.jsonl").write_text(json.dumps(row) + "\n")
    folder = tmp_path / "results" / "t" / "sessions" / "m" / "r1"
    run(asked, mode="m", replicate=1, folder=folder, prompts_file=tmp_path / "prompts.jsonl", places=1)
    measured = Cell.read(folder / "k_c1.json")
    assert measured.summary.failed == 0
    assert measured.summary.completion_tokens > 0
    assert measured.counters.source == ("metrics" if engine == "llama_cpp" else "none")
    assert somebodys_server.exited() is None
    assert http.get_text(f"{somebodys_server.base_url}/health") is not None
