"""M37: a gate that cannot judge says so and fails; what it passes, it has compared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from specdec_lab.bundle.diff import diff
from specdec_lab.bundle.gate import Gate
from specdec_lab.bundle.side_by_side import text
from specdec_lab.cli.diff import run
from specdec_lab.records.errors import UserError

ChangeCells = Callable[[Path, Callable[[dict], None]], None]
OF_ROWS = ["slower:5%", "throughput:5%", "ttft:5%", "acceptance:5%", "identity:5%"]


@pytest.fixture
def other(results: Path, tmp_path: Path) -> Path:
    """The same results once more, to be changed."""
    return Path(shutil.copytree(results, tmp_path / "other" / "results" / "made"))


def broken(a: Path, b: Path, condition: str) -> list[str]:
    return list(Gate.parse(condition).broken(diff(a, b)))


def change_decision(results: Path, how: Callable[[dict], None]) -> None:
    path = results / "decision.json"
    decision = json.loads(path.read_text(encoding="utf-8"))
    for one in decision["workloads"]:
        how(one)
    path.write_text(json.dumps(decision), encoding="utf-8")


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [((1, 16), (2, 16), True), ((1, 16), (1, 4), True), ((None, 16), (1, 16), False), ((None, None), (1, None), False)],
)
def test_another_range_is_another_decision(
    results: Path,
    other: Path,
    before: tuple[int | None, int | None],
    after: tuple[int | None, int | None],
    changed: bool,
) -> None:
    """A file from before the range had a lower end starts at 1."""
    change_decision(results, lambda one: one.update(from_concurrency=before[0], up_to=before[1]))
    change_decision(other, lambda one: one.update(from_concurrency=after[0], up_to=after[1]))
    told = broken(results, other, "decision")
    assert bool(told) is changed
    if changed:
        assert f"at concurrency 1 to 16 -> ngram at concurrency {after[0]} to {after[1]}" in " ".join(told)


@pytest.mark.parametrize("condition", [*OF_ROWS, "decision", "missing"])
def test_nothing_in_common_breaks_every_gate(
    results: Path, other: Path, change_cells: ChangeCells, condition: str
) -> None:
    for path in list(other.glob("sessions/*/r*/*_c*.json")):
        if path.name.startswith("code"):
            path.unlink()
    change_cells(other, lambda cell: None)
    for path in list(results.glob("sessions/*/r*/*_c*.json")):
        if path.name.startswith("chat"):
            path.unlink()
    change_cells(results, lambda cell: None)
    told = broken(results, other, condition)
    assert told
    assert condition == "missing" or all("cannot be judged" in line for line in told)
    assert condition != "decision" or "B has no decision for code against baseline" in told[0]


@pytest.mark.parametrize("condition", OF_ROWS)
@pytest.mark.parametrize(("sent", "why"), [("other", "other prompts"), ("", "B does not say which prompts")])
def test_rows_of_other_prompts_are_not_judged_and_not_passed(
    results: Path, other: Path, change_cells: ChangeCells, condition: str, sent: str, why: str
) -> None:
    change_cells(other, lambda cell: cell["digests"].update(prompts=sent))
    (told,) = broken(results, other, condition)
    assert "cannot be judged" in told
    assert why in told


def test_starts_that_were_sent_different_prompts_are_not_compared(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    change_cells(other, lambda cell: cell["digests"].update(prompts="other" if cell["replicate"] == 1 else "p"))
    assert {cell.remark for cell in diff(results, other).cells} == {"the starts of B were sent different prompts"}


def test_acceptance_that_is_gone_is_not_taken_for_unchanged(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    def gone(cell: dict) -> None:
        if cell["mode"] == "ngram":
            cell["counters"] = {"source": "none", "acceptance": {"status": "absent"}}

    change_cells(other, gone)
    (told,) = broken(results, other, "acceptance:5%")
    assert "ngram" in told
    assert "no acceptance rate in B" in told
    (back,) = broken(other, results, "acceptance:5%")
    assert "no acceptance rate in A" in back
    (neither,) = broken(other, other, "acceptance:5%")
    assert "no acceptance rate in A and B" in neither


def test_nothing_drafted_on_both_sides_is_no_unknown_acceptance(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    def idle(cell: dict) -> None:
        if cell["mode"] == "ngram":
            cell["counters"]["acceptance"] = {"status": "not_exercised", "drafts": 0, "draft_tokens": 0}

    for one in (results, other):
        change_cells(one, idle)
    assert broken(results, other, "acceptance:5%") == []


def test_acceptance_where_nothing_drafts_at_all_cannot_be_judged(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    for one in (results, other):
        for mode in ("ngram", "draft_k2", "draft_k4"):
            shutil.rmtree(one / "sessions" / mode)
        change_cells(one, lambda cell: None)
    assert broken(results, other, "acceptance:5%") == ["acceptance cannot be judged: no row of A or B has it"]
    assert broken(results, other, "identity:5%") == ["identity cannot be judged: no row of A or B has it"]
    assert broken(results, other, "slower:5%") == []


def test_a_speed_that_is_gone_is_not_taken_for_unchanged(results: Path, other: Path, change_cells: ChangeCells) -> None:
    def without_usage(cell: dict) -> None:
        if cell["mode"] == "ngram":
            for row in cell["rows"]:
                row["decode_tok_s"] = None
            cell["summary"]["p50_decode_tok_s"] = None

    change_cells(other, without_usage)
    (told,) = broken(results, other, "slower:5%")
    assert "ngram" in told
    assert "no P50 decode in B" in told


def test_numbers_of_survivors_and_of_foreign_traffic_are_not_judged(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    def spoil(cell: dict) -> None:
        if cell["mode"] == "ngram":
            for row in cell["rows"][:3]:
                row.update(status="failed", reason="http_503")
            cell["summary"]["failed"] = 3
        if cell["mode"] == "draft_k2":
            cell["counters"]["requests_finished"] = 500

    change_cells(other, spoil)
    for condition in ("slower:5%", "throughput:5%", "ttft:50%"):
        told = [line for line in broken(results, other, condition) if "cannot be judged" in line]
        assert any("ngram" in line and "of B must not be used (survivors_only)" in line for line in told)
        assert any("draft_k2" in line and "of B must not be used (foreign_traffic)" in line for line in told)
    told = broken(results, other, "acceptance:5%")
    assert any("draft_k2" in line and "of B must not be used (foreign_traffic)" in line for line in told)


@pytest.mark.parametrize("side", ["A", "B"])
def test_a_decision_that_is_not_there_breaks_the_gate(results: Path, other: Path, side: str) -> None:
    ((results if side == "A" else other) / "decision.json").unlink()
    (told,) = broken(results, other, "decision")
    assert f"{side} has no decision.json" in told
    assert f"{side} has no decision.json" in text(diff(results, other))


def test_a_stack_that_was_not_recorded_is_not_the_same_stack(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    for one in (results, other):
        path = one / "comparison.json"
        content = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**content, "stack": None}), encoding="utf-8")
    told = broken(results, other, "stack")
    assert len(told) == 2
    assert all("does not say on what it was measured" in line for line in told)


@pytest.mark.parametrize(
    ("given", "right"),
    [("slower:0.05", "slower:5%"), ("acceptance:1.5", "acceptance:1.5%"), ("slower:500%", "slower:5%")],
)
def test_a_limit_that_may_mean_two_things_or_nothing_is_refused_with_the_right_form(given: str, right: str) -> None:
    with pytest.raises(UserError) as caught:
        Gate.parse(given)
    assert right in caught.value.fix


@pytest.mark.parametrize(
    ("given", "limit"), [("slower:5", 0.05), ("slower:0.5%", 0.005), ("slower: 5 %", 0.05), ("ttft:150%", 1.5)]
)
def test_a_limit_is_in_per_cent(given: str, limit: float) -> None:
    assert Gate.parse(given).limit == pytest.approx(limit)


def test_the_command_fails_where_its_gate_could_not_judge(results: Path, other: Path) -> None:
    (other / "decision.json").unlink()
    app = typer.Typer()
    app.command()(run)
    made = CliRunner().invoke(app, [str(results), str(other), "--fail-on", "decision"])
    assert made.exit_code == 1
    assert "failed: decision cannot be judged: B has no decision.json" in made.output
