"""The report's rule and Snakemake's own report, from finished comparisons, without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
import programs

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("snakemake", path=str(Path(sys.executable).parent)) is None, reason="no snakemake"),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose sessions, comparison and decision are there; only the report is to be made."""
    from made import make

    folder = tmp_path_factory.mktemp("project with spaces")
    make(folder / "results" / "made")
    (folder / "Snakefile").write_text(
        f'report: "{ROOT}/workflow/report/workflow.rst"\n'
        "class LAB:\n"
        '    results = "results/made"\n'
        "    code = staticmethod(lambda stage: stage)\n"
        f'include: "{ROOT}/workflow/rules/report.smk"\n'
        "rule all:\n"
        "    input: rules.report_page.output\n"
        "    default_target: True\n",
        encoding="utf-8",
    )
    return folder


def snakemake(project: Path, *arguments: str, offline: bool = False) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "snakemake"), "--cores", "1", *arguments]
    if offline and shutil.which("unshare"):
        probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
        command = ["unshare", "-rn", *command] if probe.returncode == 0 else command
    return programs.run(command, project, programs.environment(ROOT, SPECDEC_LOCK_DIR=str(project / "locks")))


def test_the_rule_writes_the_page_its_charts_and_the_numbers(project: Path) -> None:
    done = snakemake(project)
    assert done.returncode == 0, done.stderr
    results = project / "results" / "made"
    assert (results / "report.html").stat().st_size > 1_000_000
    assert len(list((results / "charts").glob("*.svg"))) >= 8
    assert (results / "specdec.prom").read_text().startswith("# HELP specdec_")
    again = snakemake(project)
    assert "Nothing to be done" in again.stdout + again.stderr


def test_snakemakes_own_report_builds_without_a_network_and_has_every_category(project: Path) -> None:
    done = snakemake(project, "--report", "snakemake-report.html", offline=True)
    assert done.returncode == 0, done.stderr
    text = (project / "snakemake-report.html").read_text(encoding="utf-8")
    for words in ("Everything on one page", "Decode speedup against concurrency", "Acceptance by draft position"):
        assert words in text
    assert "What speculative decoding gained" in text


def test_a_run_without_any_pair_still_has_its_charts(project: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    for name in ("comparison.json", "decision.json"):
        content = json.loads((project / "results" / "made" / name).read_text())
        content.update({"cells": []} if name.startswith("comparison") else {"workloads": [], "routes": []})
        (results / name).write_text(json.dumps(content))
    from specdec_lab.report import html

    html.write(results, results / "report.html")
    for name in ("decode_speedup", "acceptance"):
        assert "No data in this run" in (results / "charts" / f"{name}.svg").read_text()
    assert "No workload could be decided" in (results / "report.html").read_text()
