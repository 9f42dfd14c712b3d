"""A project folder with finished results, judged by the real analysis from made-up cells, and no Snakemake."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_lab.analysis import compare, decision, tables

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "report"))


def judge(results: Path) -> None:
    """Tables and decision again, as the workflow's rules write them."""
    tables.write(compare.compare(results), results)
    decision.write(results)


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from made import make

    project = tmp_path_factory.mktemp("made")
    results = make(project / "results" / "made")
    resolved = results / "config.resolved.json"
    resolved.unlink(missing_ok=True)
    judge(results)
    return project


@pytest.fixture
def project(made_once: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(made_once, tmp_path / "project"))


@pytest.fixture
def results(project: Path) -> Path:
    """Its results folder."""
    return project / "results" / "made"


@pytest.fixture
def change_cells() -> Callable[[Path, Callable[[dict], None]], None]:
    """Rewrite every cell of a results folder, and judge again."""

    def change(results: Path, how: Callable[[dict], None]) -> None:
        for path in results.glob("sessions/*/r*/*_c*.json"):
            cell = json.loads(path.read_text(encoding="utf-8"))
            how(cell)
            path.write_text(json.dumps(cell), encoding="utf-8")
        judge(results)

    return change
