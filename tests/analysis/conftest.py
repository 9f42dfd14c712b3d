"""Results folders made by hand, from cells with a known truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis.synthetic import Made, cell
from specdec_lab.records.base import strict_dumps
from specdec_lab.records.decision import Plan

Write = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Write:
    """Writes cells (and a plan, if given) as a results folder."""

    def write(cells: Iterable[Made], *, plan: Plan | None = None, failures: Sequence[dict[str, Any]] = ()) -> Path:
        results = tmp_path / "results" / "made"
        for made in cells:
            place = results / "sessions" / made.mode / f"r{made.replicate}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{made.name}.json").write_text(strict_dumps(cell(made)), encoding="utf-8")
        for failure in failures:
            place = results / "sessions" / failure["mode"] / f"r{failure['replicate']}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "failure.json").write_text(json.dumps(failure), encoding="utf-8")
        if plan is not None:
            (results / "config.resolved.json").write_text(strict_dumps({"plan": plan.model_dump(mode="json")}))
        return results

    return write
