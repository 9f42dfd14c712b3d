"""What is missing is shown as missing: never 0, never a crash, never a winner (C2, E8, M10)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import decision, tables
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.synthetic import Made, starts
from specdec_lab.records.base import strict_loads
from specdec_lab.records.comparison import CellResult

Write = Callable[..., Path]
DRAFTED: dict[str, Any] = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted": 1300,
}


def everything(results: Path) -> CellResult:
    """All files written and read back strictly; the speculative row."""
    comparison = compare(results)
    tables.write(comparison, results)
    decision.write(results)
    for name in ("comparison.json", "decision.json", "deploy/routes.json"):
        strict_loads((results / name).read_bytes())
    assert "nan" not in (results / "summary.txt").read_text().lower().split()
    return next(row for row in comparison.cells if row.mode == "eagle3")


def test_e8_a_mode_whose_requests_all_failed_has_no_numbers(folder: Write) -> None:
    lost = starts("eagle3", [90, 91], fail=dict.fromkeys(range(20), "http_503"), **DRAFTED)
    row = everything(folder(starts("baseline", [50, 50.1]) + lost))
    assert row.p50_decode_tok_s is None
    assert row.agg_tok_s is None
    assert row.verdict is not None
    assert row.verdict.word == "not comparable"


def test_e8_a_baseline_whose_requests_all_failed_gives_no_ratio(folder: Write) -> None:
    lost = starts("baseline", [50, 50.1], fail=dict.fromkeys(range(20), "http_503"))
    row = everything(folder(lost + starts("eagle3", [90, 91], **DRAFTED)))
    assert row.decode is None or row.decode.ratio is None
    assert row.verdict is not None
    assert row.verdict.word == "not comparable"


def test_a_mode_without_a_baseline_is_not_comparable(folder: Write) -> None:
    row = everything(folder(starts("eagle3", [90, 91], **DRAFTED)))
    assert row.status == "measured"
    assert row.p50_decode_tok_s == pytest.approx(90.5, rel=1e-3)
    assert row.verdict is not None
    assert row.verdict.word == "not comparable"
    assert "no_baseline" in {found.code for found in row.findings}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"rows": [{"decode_tok_s": NaN}]}', "{}"])
def test_e8_a_file_that_is_no_cell_is_named_and_the_rest_still_judged(folder: Write, content: str) -> None:
    results = folder(starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], **DRAFTED))
    (results / "sessions" / "eagle3" / "r2" / "chat_c4.json").write_text(content)
    row = everything(results)
    assert row.verdict is not None
    assert row.verdict.word == "not comparable"
    assert any(found.code == "unreadable" and "chat_c4.json" in found.message for found in row.findings)


def test_rows_count_when_the_summary_disagrees(folder: Write) -> None:
    edited = {"over": {"summary": {"requests": 20, "failed": 0, "p50_decode_tok_s": 500.0}}}
    row = everything(folder(starts("baseline", [50, 50.1]) + starts("eagle3", [60, 60.3], **DRAFTED, **edited)))
    assert row.p50_decode_tok_s == pytest.approx(60.15, rel=1e-3)
    assert "summary_disagrees" in {found.code for found in row.findings}


def test_prompts_in_one_mode_only_are_left_out_of_the_pairs(folder: Write) -> None:
    few = [Made("eagle3", r, [90.0] * 12, started_at=f"2026-01-01T00:01:{20 + r}Z", **DRAFTED) for r in (1, 2)]
    row = everything(folder(starts("baseline", [50, 50.1]) + few))
    assert row.paired is not None
    assert row.paired.prompts == 12
    assert row.identity is not None
    assert row.identity.n == 12


def test_a_planned_mode_that_never_ran_is_listed_as_missing(folder: Write) -> None:
    from specdec_lab.records.decision import Plan, PlannedMode
    from specdec_lab.records.spec import CellSpec, Load

    plan = Plan(
        name="made",
        modes=[PlannedMode(name="baseline", against=None), PlannedMode(name="eagle3", against="baseline")],
        cells=[CellSpec(kind="chat", load=Load(concurrency=4), warmup=4)],
    )
    row = everything(folder(starts("baseline", [50, 50.1]), plan=plan))
    assert row.status == "missing"
    assert row.agg_tok_s is None


def test_judging_twice_gives_the_same_bytes(folder: Write) -> None:
    results = folder(starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], **DRAFTED))
    everything(results)
    first = {path.name: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    everything(results)
    assert first == {path.name: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    assert json.loads(first["comparison.json"])["name"] == "made"
