"""Snakemake, asked what it would run after one thing has changed: the exact list of jobs (cases E4, E5).

The finished state is made without an engine: every output exists and Snakemake has recorded the params that it was made
with (`--touch --forceall`). What the jobs do is tested elsewhere; here only which of them would run counts.
"""

from __future__ import annotations

import copy
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import programs

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(600)]

CONFIG: dict[str, Any] = {
    "name": "dry",
    "engine": {"software": "vllm", "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0"},
    "checkpoints": {
        "target": {"hub": "meta-llama/Llama-3.1-8B-Instruct", "revision": "0" * 40},
        "draft": {"hub": "meta-llama/Llama-3.2-1B-Instruct", "revision": "1" * 40},
    },
    "modes": {
        "baseline": {},
        "ngram": {"speculative": {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}},
        "draft": {"speculative": {"method": "draft_model", "model": "draft", "num_speculative_tokens": 5}},
    },
    "workload": {"kinds": ["json"], "requests": 4},
    "load": {"concurrency": [1]},
}
RESOLVE, COMPARE, DECIDE = "Writing down the config as resolved", "Comparing with the baseline", "Deciding per workload"
REPORT, BUNDLE, PROMPTS = "Writing the report", "Packing the bundle", "Writing the prompts"
AFTER = {COMPARE, DECIDE, REPORT, BUNDLE}


def measuring(*modes: str) -> set[str]:
    return {f"Measuring {mode}, replicate {replicate}" for mode in modes for replicate in (1, 2)}


EVERY_SESSION = measuring("baseline", "ngram", "draft")


class Project:
    """A copy of the workflow with everything done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def finished(cls, folder: Path) -> Project:
        programs.copy(programs.LAB, folder)
        made = cls(folder)
        summary = made.snakemake("--summary").stdout.splitlines()
        for line in summary[1:]:
            path = folder / line.split("\t")[0]
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.name == "deploy":
                path.mkdir(exist_ok=True)
            else:
                path.write_text("{}\n", encoding="utf-8")
        done = made.snakemake("--touch", "--forceall", "--quiet", "all")
        assert done.returncode == 0, done.stderr
        return made

    def snakemake(self, *options: str, config: dict[str, Any] | str = CONFIG) -> subprocess.CompletedProcess[str]:
        text = config if isinstance(config, str) else json.dumps(config)
        (self.folder / "lab.yaml").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *options, "--configfile", "lab.yaml"]
        return programs.run(command, self.folder, programs.environment(self.folder))

    def jobs(self, config: dict[str, Any] | str = CONFIG) -> set[str]:
        """What a dry run would run, by the jobs' messages."""
        done = self.snakemake("--dry-run", config=config)
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        if "Nothing to be done" in said:
            return set()
        return set(re.findall(r"^Job \d+: (.+)$", said, re.MULTILINE))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("spec lab") / "it's ünï"
    folder.mkdir()
    return Project.finished(folder)


def changed(path: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(CONFIG)
    *parents, last = path.split(".")
    place = config
    for key in parents:
        place = place.setdefault(key, {})
    place[last] = value
    return config


def test_e4_e5_what_is_done_in_a_folder_with_space_apostrophe_and_umlaut_stays_done(project: Project) -> None:
    assert project.jobs() == set()


def test_e5_touching_every_file_reruns_nothing(project: Project) -> None:
    for path in project.folder.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts[-4:]:
            path.touch()
    assert project.jobs() == set()


def test_e5_keys_in_another_order_and_comments_rerun_nothing(project: Project) -> None:
    turned = {key: CONFIG[key] for key in reversed(CONFIG)}
    for block in ("engine", "modes"):
        turned[block] = {key: CONFIG[block][key] for key in reversed(CONFIG[block])}
    assert project.jobs("# a comment\n" + json.dumps(turned, indent=2)) == set()


@pytest.mark.parametrize(
    ("path", "value", "jobs"),
    [
        ("modes.ngram.speculative.num_speculative_tokens", 3, measuring("ngram") | AFTER),
        ("checkpoints.draft.revision", "2" * 40, {"Fetching checkpoint draft"} | measuring("draft") | AFTER),
        ("engine.image", "other/image:v1", {"Finding the image other/image:v1"} | EVERY_SESSION | AFTER),
        ("workload.seed", 8, {PROMPTS} | EVERY_SESSION | AFTER),
        ("workload.temperature", 0.5, EVERY_SESSION | AFTER),
        ("decision.margin", 0.1, AFTER),
        ("protocol.placebo", True, measuring("placebo") | AFTER),
        ("protocol.replicates", 3, {f"Measuring {m}, replicate 3" for m in ("baseline", "ngram", "draft")} | AFTER),
    ],
    ids=lambda value: value if isinstance(value, str) and "." in value else None,
)
def test_e5_one_change_of_the_config_runs_exactly_what_depends_on_it(
    project: Project, path: str, value: Any, jobs: set[str]
) -> None:
    assert project.jobs(changed(path, value)) == {RESOLVE} | jobs


@pytest.mark.parametrize(
    ("module", "jobs"),
    [
        ("session/measure.py", EVERY_SESSION | AFTER),
        ("client/stream.py", EVERY_SESSION | AFTER),
        ("prompts/code.py", {PROMPTS} | EVERY_SESSION | AFTER),
        ("analysis/identity.py", AFTER),
        ("report/html.py", {REPORT, BUNDLE}),
        ("bundle/archive.py", {BUNDLE}),
        ("cli/doctor.py", set()),
    ],
)
def test_e5_code_of_a_stage_runs_that_stage_and_what_follows(project: Project, module: str, jobs: set[str]) -> None:
    path = project.folder / "workflow" / "specdec_lab" / module
    before = path.read_text(encoding="utf-8")
    path.write_text(f"{before}\n_CHANGED = 1\n", encoding="utf-8")
    try:
        assert project.jobs() - {"Drawing the charts"} == jobs
    finally:
        path.write_text(before, encoding="utf-8")


def test_e5_a_comment_in_the_code_reruns_nothing(project: Project) -> None:
    path = project.folder / "workflow" / "specdec_lab" / "session" / "measure.py"
    before = path.read_text(encoding="utf-8")
    path.write_text(f"# a comment\n\n{before}\n# and one more\n", encoding="utf-8")
    try:
        assert project.jobs() == set()
    finally:
        path.write_text(before, encoding="utf-8")


@pytest.fixture
def moved(project: Project, tmp_path: Path) -> Callable[[], Project]:
    """The project in another place, every file as new as on a fresh clone."""

    def move() -> Project:
        there = tmp_path / "moved"
        shutil.copytree(project.folder, there, copy_function=shutil.copy)
        return Project(there)

    return move


def test_e5_moving_the_folder_or_cloning_it_reruns_nothing_and_changes_are_still_seen(
    moved: Callable[[], Project],
) -> None:
    there = moved()
    assert there.jobs() == set()
    assert there.jobs(changed("modes.ngram.speculative.num_speculative_tokens", 3)) == {
        RESOLVE,
        *measuring("ngram"),
        *AFTER,
    }
