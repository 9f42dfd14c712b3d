"""Ctrl-C in the middle of a run: what is told, and that the same command goes on from there (cases C7, E7)."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from attached import Project, answer

from specdec_lab.client.scripted import Script, ScriptedServer, Seen, Step

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


@dataclasses.dataclass
class Endpoint:
    """Answers after `wait_s`."""

    wait_s: float

    def __call__(self, seen: Seen) -> Script:
        script = answer(seen)
        return dataclasses.replace(script, steps=[Step(self.wait_s + step.at_s, step.data) for step in script.steps])


def test_c7_after_ctrl_c_the_same_command_goes_on(tmp_path: Path) -> None:
    endpoint = Endpoint(wait_s=0.5)  # slow enough to be stopped within a cell
    with ScriptedServer(endpoint) as server:
        project = Project(tmp_path, server.base_url)
        with (tmp_path / "said").open("w+", encoding="utf-8") as said:
            run = subprocess.Popen(
                project.command("--cores", "1", "--quiet", "rules"),
                cwd=tmp_path,
                env=project.environment(),
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            limit = time.monotonic() + 120
            while not (complete := list(tmp_path.glob("cells/measured/*/*.json"))):
                assert run.poll() is None
                assert time.monotonic() < limit
                time.sleep(0.05)
            time.sleep(0.5)  # within the next cell
            os.killpg(run.pid, signal.SIGINT)
            assert run.wait(60) == 1
            said.seek(0)
            text = said.read()
        failure = json.loads((project.results / "sessions/baseline/r1/failure.json").read_text(encoding="utf-8"))
        assert failure["code"] == "interrupted"
        assert "Mode baseline, replicate 1 was stopped: ended by SIGINT." in text
        assert "Run the same command again to go on: cells that are complete are kept." in text
        assert "server's log" not in text
        assert "Traceback" not in text
        endpoint.wait_s = 0.0
        again = project.snakemake("--cores", "1", "results/tried/sessions/baseline/r1/session.json")
    assert again.returncode == 0, again.stderr
    told = again.stdout + again.stderr
    assert f"baseline r1: 3 cells, {len(complete)} of them measured before" in told
    assert not list(tmp_path.glob("**/failure.json"))
