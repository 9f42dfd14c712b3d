"""The made-up results folder of the report's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "report"))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with a decision."""
    from made import make

    return make(tmp_path_factory.mktemp("monitoring") / "results" / "made")
