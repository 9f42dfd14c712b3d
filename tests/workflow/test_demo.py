"""The demo's workflow, reduced, on the real engine with the real model: from an empty folder to a verdict, and back.

Numbers of so small a run say nothing; what is tested is that the whole way is gone and that nothing is gone twice.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import programs

pytest.importorskip("xllamacpp", reason="the embedded engine is not installed (pip install -e .[demo])")

pytestmark = [pytest.mark.engine, pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(900)]

REDUCED = """
name: tiny
only: [baseline, ngram]
workload: {requests: 3, kinds: [code, json], max_tokens: {code: 48, json: 16}}
load: {concurrency: [1]}
protocol: {replicates: 2}
"""


FILES = ["--configfile", "config/demo.yaml", "tiny.yaml"]


class Run:
    """A copy of the workflow in a folder of its own, and Snakemake in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs.copy((*programs.LAB, "config"), folder)
        self.overlay(REDUCED)

    def overlay(self, text: str) -> None:
        (self.folder / "tiny.yaml").write_text(text, encoding="utf-8")

    def snakemake(self, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--resources", "gpu=1", *options, *FILES]
        return programs.run(command, self.folder, programs.environment(self.folder), timeout_s=600)

    def planned(self) -> dict[str, int]:
        """How many jobs of each rule a dry run names; empty when there is nothing to be done."""
        done = self.snakemake("-n")
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        if "Nothing to be done" in said:
            return {}
        table = said.rsplit("Job stats:", 1)[1]
        counts = re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE)
        self.sessions = sorted(set(re.findall(r"Measuring (\S+), replicate (\d+)", said)))
        return {rule: int(count) for rule, count in counts if rule not in ("total", "all")}

    @property
    def results(self) -> Path:
        return self.folder / "results" / "tiny"


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    made = Run(tmp_path_factory.mktemp("demo"))
    done = made.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_every_file_of_the_contract_is_there(run):
    expected = ["prompts.jsonl", "summary.txt", "summary.csv", "comparison.json", "decision.json", "decision.md"]
    expected += ["report.html", "config.resolved.json", "checkpoints/target.json"]
    for mode in ("baseline", "ngram"):
        for replicate in ("r1", "r2"):
            names = ["session.json", "server.log", "metrics.prom", "code_c1.json", "json_c1.json"]
            expected += [f"sessions/{mode}/{replicate}/{name}" for name in names]
    missing = [name for name in expected if not (run.results / name).is_file()]
    assert missing == []


def test_e8_every_json_file_is_strict(run):
    def refuse(name: str) -> None:
        raise AssertionError(name)

    files = list(run.results.rglob("*.json"))
    assert len(files) > 15
    for path in files:
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_the_rows_are_real(run):
    cell = json.loads((run.results / "sessions/ngram/r1/code_c1.json").read_text())
    assert [row["status"] for row in cell["rows"]] == ["ok"] * 3
    for row in cell["rows"]:
        assert row["completion_tokens"] > 1
        assert row["text"]
        assert 0 < row["ttft_s"] < row["e2e_s"]
        assert row["decode_tok_s"] > 0
    assert cell["counters"]["acceptance"]["status"] in ("measured", "not_exercised")
    assert cell["stack"]["engine"]["version"]
    assert cell["stack"]["checkpoints"]["target"]


def test_the_baseline_does_not_speculate(run):
    cell = json.loads((run.results / "sessions/baseline/r1/code_c1.json").read_text())
    assert cell["counters"]["acceptance"]["status"] == "not_applicable"


def test_the_table_has_a_row_per_kind_load_and_mode(run):
    with (run.results / "summary.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {(row["kind"], row["mode"]) for row in rows} == {
        (kind, mode) for kind in ("code", "json") for mode in ("baseline", "ngram")
    }


def test_the_decision_has_a_sentence_per_workload(run):
    text = (run.results / "decision.md").read_text(encoding="utf-8")
    assert "code" in text
    assert "json" in text


def test_the_serve_commands_open_the_measured_model_with_the_measured_flags(run, tmp_path):
    stub = tmp_path / "llama-server"
    stub.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n', encoding="utf-8")
    stub.chmod(0o755)
    scripts = sorted((run.results / "deploy").glob("*.sh"))
    assert scripts
    for script in scripts:
        path = f"{tmp_path}:{os.environ['PATH']}"
        done = programs.run(["/bin/sh", str(script)], tmp_path, {**os.environ, "PATH": path})
        assert done.returncode == 0, done.stderr
        served = options(done.stdout.split("\0")[:-1])
        session = json.loads((run.results / "sessions" / script.stem / "r1" / "session.json").read_text())
        measured = options(session["lifetimes"][0]["argv"])
        assert Path(served["--model"][0]).is_file()
        assert served.pop("--port") == ["8080"]
        measured.pop("--port")
        assert {name: measured.pop(name) for name in set(measured) - set(served)} == {
            "-m": ["specdec_lab.engines.embedded_llama"],
            "-u": [],
            "--alias": [Path(served["--model"][0]).stem],
            "--no-cache-prompt": [],
            "--cache-ram": ["0"],
            "--seed": ["0"],
        }
        assert served == measured


def options(argv: list[str]) -> dict[str, list[str]]:
    """Each option with its words."""
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for word in argv:
        if re.match(r"--?[a-z]", word):
            words = found.setdefault(word, [])
        else:
            words.append(word)
    return found


def test_running_again_does_nothing(run):
    assert run.planned() == {}


def test_e5_touching_every_file_reruns_nothing(run):
    for path in run.folder.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert run.planned() == {}


def test_e5_reordering_keys_reruns_nothing(run):
    run.overlay(
        "load: {concurrency: [1]}\n" + "\n".join(reversed(REDUCED.replace("load: {concurrency: [1]}", "").split("\n")))
    )
    try:
        assert run.planned() == {}
    finally:
        run.overlay(REDUCED)


def test_e5_a_changed_mode_reruns_that_mode_and_what_follows(run):
    run.overlay(REDUCED + "modes: {ngram: {speculative: {ngram-simple-size-m: 9}}}\n")
    try:
        planned = run.planned()
    finally:
        run.overlay(REDUCED)
    assert run.sessions == [("ngram", "1"), ("ngram", "2")]
    assert set(planned) == {"resolve", "session", "compare", "decide", "report_page", "bundle"} | (
        {"charts"} & set(planned)
    )


def test_a_rule_for_a_win_that_changed_measures_nothing(run):
    run.overlay(REDUCED + "decision: {margin: 0.2}\n")
    try:
        planned = run.planned()
    finally:
        run.overlay(REDUCED)
    assert "session" not in planned
    assert {"resolve", "compare", "decide"} <= set(planned)


def test_one_more_concurrency_measures_only_the_new_cells(run):
    run.overlay(REDUCED.replace("concurrency: [1]", "concurrency: [1, 2]"))
    done = run.snakemake()
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    assert said.count("4 cells, 2 of them measured before") == 4
    run.overlay(REDUCED)
    again = run.snakemake()
    assert again.returncode == 0, again.stderr
    assert (again.stdout + again.stderr).count("2 cells, 2 of them measured before") == 4
    assert "starting the server" not in again.stdout + again.stderr


def test_bad_input_stops_before_anything_runs(run):
    run.overlay(REDUCED + "warmpu: 2\n")
    try:
        done = run.snakemake()
    finally:
        run.overlay(REDUCED)
    assert done.returncode != 0
    assert "warmpu" in done.stderr
    assert "tiny.yaml:7:1" in done.stderr
    assert "workload.warmup" in done.stderr
