"""The llama.cpp image on a real engine: served, drafted, described, stopped (M10, M20)."""

import socket
import time
from pathlib import PurePosixPath

import httpx
import pytest

from specdec_lab import checkpoints, engines, launchers
from specdec_lab.engines import http
from specdec_lab.launchers.base import LaunchPlan, Mount
from specdec_lab.records.spec import CheckpointSpec, ServerSpec

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_image_serves_with_speculation_and_names_its_packages(engine, llama_image, tmp_path):
    model = checkpoints.fetch(CheckpointSpec(bundled="smollm2-135m-q4_1"))
    llama = engines.get("llama_cpp")
    spec = ServerSpec(
        engine="llama_cpp",
        launcher="docker",
        image=llama_image,
        args={"ctx-size": 4096, "parallel": 1, "threads": 1},
        speculative={"method": "draft-simple", "model": "draft", "draft-n-max": 4},
        gpus=0,
    )
    places = {role: PurePosixPath(f"/models/{role}/{model.path.name}") for role in ("target", "draft")}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = launchers.get("docker").start(
        LaunchPlan(
            name="test-llama",
            argv=llama.argv(spec, places, host="0.0.0.0", port=8000),
            log=tmp_path / "server.log",
            port=port,
            image=llama_image,
            mounts=[Mount(model.path, str(place)) for place in places.values()],
        )
    )
    try:
        limit = time.monotonic() + 60
        while http.get_text(f"{running.base_url}/health") is None:
            assert running.exited() is None, (tmp_path / "server.log").read_text()
            assert time.monotonic() < limit
            time.sleep(0.1)
        assert running.owns_port() is True
        body = {"messages": [{"role": "user", "content": "Count to ten."}], "max_tokens": 40, "temperature": 0}
        with httpx.Client(trust_env=False, timeout=60) as client:
            reply = client.post(f"{running.base_url}/v1/chat/completions", json=body).json()
        assert reply["timings"]["draft_n_accepted"] > 0
        assert "xllamacpp" in running.packages()
        facts = llama.facts((tmp_path / "server.log").read_text().splitlines())
        assert facts["args"]["spec-type"] == "draft-simple"
    finally:
        running.stop(10)
