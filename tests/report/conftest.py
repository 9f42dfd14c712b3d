"""The made-up results folder, written once for all tests of the report."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a decision, as the analysis wrote it."""
    from made import make

    return make(tmp_path_factory.mktemp("report") / "results" / "made")


@pytest.fixture(scope="session")
def page(results: Path) -> Path:
    """Its report."""
    from specdec_lab.report import html

    html.write(results, results / "report.html")
    return results / "report.html"


@pytest.fixture(scope="session")
def poor_page(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run in which much went wrong."""
    from made import make_poor

    from specdec_lab.report import html

    poor = make_poor(results, tmp_path_factory.mktemp("poor") / "results")
    html.write(poor, poor / "report.html")
    return poor / "report.html"
