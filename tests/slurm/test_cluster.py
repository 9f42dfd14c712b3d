"""B10: sessions on more than one GPU and through a scheduler, with fake GPUs and a scripted endpoint.

What is tested is who gets which device, when, and that nothing is lost on the way; no speed is measured here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from specdec_lab.client.scripted import DONE, Script, ScriptedServer, Seen, Step, delta, sse, usage
from specdec_lab.records.session import Session

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
sys.path.insert(0, str(HERE))

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(900)]


def answer(seen: Seen) -> Script:
    if seen.method == "GET":
        return Script(steps=[Step(0.0, b'{"data": [{"id": "m"}]}')], content_type="application/json")
    if not seen.json.get("stream"):
        body = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
        body |= {"usage": usage(1)["usage"]}
        return Script(steps=[Step(0.0, json.dumps(body).encode())], content_type="application/json")
    pieces = [sse(delta(content=f"w{i} ")) for i in range(4)]
    pieces += [sse(delta(finish="stop")), sse(usage(4)), DONE]
    return Script(steps=[Step(0.5 + 0.1 * i, piece) for i, piece in enumerate(pieces)])


def nothing_was_left(run: subprocess.CompletedProcess[str]) -> bool:
    """Whether no job ran; with --until Snakemake prints an empty table instead of a sentence."""
    said = run.stdout + run.stderr
    return "Nothing to be done" in said or re.search(r"^total +0$", said, re.MULTILINE) is not None


class Project:
    """A copy of the workflow whose modes attach to a scripted endpoint and ask for GPUs."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        for name in ("Snakefile", "workflow", "profiles"):
            source = REPOSITORY / name
            copied = shutil.copytree if source.is_dir() else shutil.copy
            copied(source, folder / name)
        config = {
            "name": "many",
            "engine": {"software": "openai", "launcher": "attach", "served_model": "m", "base_url": base_url},
            "modes": {
                "baseline": {},
                "other": {"speculative": {"method": "unknown"}},
                "wide": {"speculative": {"method": "unknown"}, "gpus": 2},
            },
            "workload": {"requests": 3, "kinds": ["json"]},
            "load": {"concurrency": [1]},
        }
        (folder / "lab.yaml").write_text(json.dumps(config), encoding="utf-8")

    def snakemake(self, *options: str, store: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{HERE / 'fake'}:{self.folder / 'workflow'}",
            "SPECDEC_LOCK_DIR": str(self.folder / "locks"),
        }
        environment.pop("CUDA_VISIBLE_DEVICES", None)
        if store is not None:
            environment["SPECDEC_STORE"] = str(store)
        return subprocess.run(
            [sys.executable, "-m", "snakemake", *options, "--configfile", "lab.yaml"],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def sessions(self) -> list[Session]:
        return [Session.read(path) for path in sorted(self.folder.glob("results/many/sessions/*/r*/session.json"))]

    def devices(self) -> dict[str, list[tuple[int, ...]]]:
        """Mode -> the GPUs of each of its sessions."""
        found: dict[str, list[tuple[int, ...]]] = {}
        for one in self.sessions():
            held = tuple(gpu.index for gpu in one.lifetimes[0].stack.gpus)
            found.setdefault(one.mode, []).append(held)
        return found

    def require_apart(self) -> int:
        """No device is held by two sessions at a time; gives how many pairs of sessions ran side by side."""
        spans = [
            (one.lifetimes[0].started_at, one.lifetimes[0].stopped_at, {g.index for g in one.lifetimes[0].stack.gpus})
            for one in self.sessions()
        ]
        beside = 0
        for number, (start, stop, held) in enumerate(spans):
            for other_start, other_stop, other_held in spans[number + 1 :]:
                if start < other_stop and other_start < stop:
                    beside += 1
                    assert not held & other_held
        return beside


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with ScriptedServer(answer) as server:
        yield Project(tmp_path, server.base_url)


def test_b10_two_gpus_run_two_sessions_side_by_side_one_device_each(project: Project) -> None:
    done = project.snakemake("--cores", "4", "--resources", "gpu=2", "--until", "compare")
    assert done.returncode == 0, done.stdout + done.stderr
    devices = project.devices()
    assert devices["wide"] == [(0, 1), (0, 1)]
    assert {len(held) for mode in ("baseline", "other") for held in devices[mode]} == {1}
    assert project.require_apart() >= 1


def test_b10_a_mode_that_needs_more_gpus_than_are_granted_says_so(project: Project) -> None:
    done = project.snakemake("results/many/sessions/wide/r1/session.json", "--cores", "1")
    assert done.returncode != 0
    assert "needs 2 GPUs, but the run grants 1" in done.stdout + done.stderr


def test_e6_without_any_option_sessions_never_overlap(project: Project) -> None:
    done = project.snakemake("--cores", "8", "--until", "session")
    assert "needs 2 GPUs" in done.stdout + done.stderr
    ran = project.sessions()
    assert {one.mode for one in ran} == {"baseline", "other"}
    assert project.require_apart() == 0


@pytest.mark.skipif(find_spec("snakemake_executor_plugin_cluster_generic") is None, reason="no generic executor")
def test_b10_jobs_that_are_submitted_elsewhere_measure_the_same(project: Project, tmp_path: Path) -> None:
    options = ["--executor", "cluster-generic", "--cluster-generic-submit-cmd", "bash", "--jobs", "1"]
    shared = tmp_path / "shared store"
    done = project.snakemake(*options, "--resources", "gpu=2", "--until", "compare", store=shared)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(shared.glob("measured/*/*.json"))) == 6
    assert not (project.folder / "cells").exists()
    again = project.snakemake("--cores", "1", "--until", "compare", "-n", "--resources", "gpu=2", store=shared)
    assert nothing_was_left(again)


@pytest.mark.slurm
def test_b10_slurm_gives_each_session_its_gpus(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    from cluster import slurm, why_not

    reason = why_not()
    if reason is None and find_spec("snakemake_executor_plugin_slurm") is None:
        reason = "no Slurm executor: pip install -e .[slurm]"
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("slurm")
    for place in [folder, *folder.parents]:
        if place.stat().st_uid == os.getuid() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o055)
    options = ["--workflow-profile", "profiles/slurm", "--default-resources", "runtime=10", "mem_mb=200"]
    options += ["slurm_partition=gpu", "--slurm-no-account", "--slurm-init-seconds-before-status-checks", "2"]
    options += ["--latency-wait", "10", "--until", "compare"]
    with slurm(folder):
        done = project.snakemake(*options)
        assert done.returncode == 0, done.stdout + done.stderr
        again = project.snakemake(*options)
    assert nothing_was_left(again)
    devices = project.devices()
    assert devices["wide"] == [(0, 1), (0, 1)]
    assert {len(held) for mode in ("baseline", "other") for held in devices[mode]} == {1}
    project.require_apart()
    assert list((project.folder / "logs" / "slurm").rglob("*.log")), "each session was a job of Slurm"
