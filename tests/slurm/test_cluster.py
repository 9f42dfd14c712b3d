"""B10: sessions on more than one GPU and through a scheduler, with fake GPUs and a scripted endpoint.

What is tested is who gets which device, when, and that nothing is lost on the way; no speed is measured here.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))
from attached import Project as AttachedProject
from attached import answer

from specdec_lab.client.scripted import Script, ScriptedServer, Seen, Step
from specdec_lab.records.session import Session

HERE = Path(__file__).parent
pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(900)]


def slowly(seen: Seen) -> Script:
    """Slow enough that sessions side by side can be seen to be."""
    script = answer(seen)
    return dataclasses.replace(script, steps=[Step(0.5 + 10 * step.at_s, step.data) for step in script.steps])


def nothing_was_left(run: subprocess.CompletedProcess[str]) -> bool:
    """Whether no job ran; with --until Snakemake prints an empty table instead of a sentence."""
    said = run.stdout + run.stderr
    return "Nothing to be done" in said or re.search(r"^total +0$", said, re.MULTILINE) is not None


class Project(AttachedProject):
    """Modes that ask for GPUs, on a machine that seems to have two."""

    more: Mapping[str, str] = MappingProxyType({})
    """Further variables of the environment."""

    def __init__(self, folder: Path, base_url: str) -> None:
        super().__init__(folder, base_url)
        self.config["engine"]["gpus"] = 1
        self.config["modes"]["wide"] = {"speculative": {"method": "unknown"}, "gpus": 2}
        self.config["workload"]["kinds"] = ["json"]
        self.write()

    def environment(self, folder: Path | None = None) -> dict[str, str]:
        """With the made-up driver in front."""
        found = super().environment(folder)
        found.pop("CUDA_VISIBLE_DEVICES", None)
        return {**found, "PYTHONPATH": f"{HERE / 'fake'}:{found['PYTHONPATH']}", **self.more}

    def sessions(self) -> list[Session]:
        return [Session.read(path) for path in sorted(self.results.glob("sessions/*/r*/session.json"))]

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
    with ScriptedServer(slowly) as server:
        yield Project(tmp_path, server.base_url)


def test_b10_two_gpus_run_two_sessions_side_by_side_one_device_each(project: Project) -> None:
    done = project.snakemake("--cores", "4", "--resources", "gpu=2", "--until", "compare")
    assert done.returncode == 0, done.stdout + done.stderr
    devices = project.devices()
    assert devices["wide"] == [(0, 1), (0, 1)]
    assert {len(held) for mode in ("baseline", "other") for held in devices[mode]} == {1}
    assert project.require_apart() >= 1


def test_b10_a_mode_that_needs_more_gpus_than_are_granted_says_so(project: Project) -> None:
    done = project.snakemake("results/tried/sessions/wide/r1/session.json", "--cores", "1")
    assert done.returncode != 0
    assert "needs 2 GPUs, but the run grants 1" in done.stdout + done.stderr


def test_e6_without_any_option_sessions_never_overlap(project: Project) -> None:
    done = project.snakemake("--cores", "8", "--until", "session")
    assert "needs 2 GPUs" in done.stdout + done.stderr
    ran = project.sessions()
    assert {one.mode for one in ran} == {"baseline", "other"}
    assert project.require_apart() == 0


def test_e6_two_runs_in_two_folders_never_share_a_device(tmp_path: Path) -> None:
    with ScriptedServer(slowly) as server:
        projects = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            made = Project(tmp_path / name, server.base_url)
            del made.config["modes"]["wide"]
            made.write()
            made.more = {"SPECDEC_LOCK_DIR": str(tmp_path / "locks"), "CUDA_VISIBLE_DEVICES": "0"}
            projects.append(made)
        runs = [
            subprocess.Popen(
                made.command("--cores", "1", "--until", "session"),
                cwd=made.folder,
                env=made.environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for made in projects
        ]
        assert [run.wait(400) for run in runs] == [0, 0]
    spans = sorted((s.lifetimes[0].started_at, s.lifetimes[0].stopped_at) for p in projects for s in p.sessions())
    assert len(spans) == 8
    assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


@pytest.mark.skipif(find_spec("snakemake_executor_plugin_cluster_generic") is None, reason="no generic executor")
def test_b10_jobs_that_are_submitted_elsewhere_measure_the_same(project: Project, tmp_path: Path) -> None:
    options = ["--executor", "cluster-generic", "--cluster-generic-submit-cmd", "bash", "--jobs", "1"]
    shared = tmp_path / "shared store"
    project.more = {"SPECDEC_STORE": str(shared)}
    done = project.snakemake(*options, "--resources", "gpu=2", "--until", "compare")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(shared.glob("measured/*/*.json"))) == 6
    assert not (project.folder / "cells").exists()
    again = project.snakemake("--cores", "1", "--until", "compare", "-n", "--resources", "gpu=2")
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
