"""M37: two bundles side by side, the stack first, and as a gate."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_lab.bundle.diff import diff
from specdec_lab.bundle.gate import Gate
from specdec_lab.bundle.pack import pack
from specdec_lab.bundle.side_by_side import text
from specdec_lab.records.errors import UserError

ChangeCells = Callable[[Path, Callable[[dict], None]], None]


@pytest.fixture
def other(results: Path, tmp_path: Path) -> Path:
    """The same results once more, to be changed."""
    return Path(shutil.copytree(results, tmp_path / "other" / "results" / "made"))


def slower(mode: str, share: float) -> Callable[[dict], None]:
    def change(cell: dict) -> None:
        if cell["mode"] == mode:
            for row in cell["rows"]:
                row["decode_tok_s"] *= share
            cell["summary"]["p50_decode_tok_s"] *= share

    return change


def test_a_thing_beside_itself_shows_no_difference(results: Path, other: Path) -> None:
    found = diff(pack(results), other)
    assert found.stack == []
    assert found.only_a == found.only_b == []
    assert {cell.word for cell in found.cells} == {"no difference shown"}
    assert all(cell.decode.ratio == pytest.approx(1) and cell.same_text == cell.same_text_n for cell in found.cells)
    assert not any(one.changed for one in found.decisions)
    assert "Stack: the same" in text(found)
    for condition in ("slower:1%", "throughput:1%", "ttft:1%", "acceptance:1%", "identity:1%"):
        assert list(Gate.parse(condition).broken(found)) == []


def test_a_slower_mode_is_found_with_its_interval_and_breaks_the_gate(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    change_cells(other, slower("ngram", 0.7))
    found = diff(results, other)
    cells = {cell.mode: cell for cell in found.cells if (cell.kind, cell.load) == ("code", "c1")}
    assert cells["ngram"].decode.ratio == pytest.approx(0.7)
    assert cells["ngram"].decode.high is not None
    assert cells["ngram"].decode.high < 1
    assert (cells["ngram"].word, cells["baseline"].word) == ("slower", "no difference shown")
    broken = list(Gate.parse("slower:5%").broken(found))
    assert broken
    assert all("ngram" in line for line in broken)
    assert list(Gate.parse("slower:40%").broken(found)) == []


def test_swapping_the_two_gives_exactly_the_reciprocal(results: Path, other: Path, change_cells: ChangeCells) -> None:
    change_cells(other, slower("ngram", 0.7))
    there = {(c.kind, c.load, c.mode): c for c in diff(results, other).cells}
    for cell in diff(other, results).cells:
        assert cell.decode.ratio == pytest.approx(1 / there[cell.kind, cell.load, cell.mode].decode.ratio)


def test_a_small_loss_within_the_noise_does_not_break_the_gate(
    results: Path, other: Path, change_cells: ChangeCells
) -> None:
    change_cells(other, slower("ngram", 0.985))
    found = diff(results, other)
    assert {cell.word for cell in found.cells} == {"no difference shown"}
    assert list(Gate.parse("slower:1%").broken(found)) == []


def test_an_engine_upgrade_stands_before_the_numbers(results: Path, other: Path, change_cells: ChangeCells) -> None:
    def upgrade(cell: dict) -> None:
        cell["stack"]["engine"] |= {"version": "0.34.0", "image_digest": "sha256:new", "packages": {"torch": "2.10"}}
        cell["stack"]["driver"] = "590.1"

    change_cells(other, upgrade)
    found = diff(results, other)
    changed = {(one.where, one.fact): one.b for one in found.stack}
    assert changed["engine", "version"] == "0.34.0"
    assert changed["engine", "image digest"] == "sha256:new"
    assert changed["gpu", "driver"] == "590.1"
    assert changed["package", "torch"] == "2.10"
    page = text(found)
    assert page.index("0.34.0") < page.index("P50 decode B/A")
    assert list(Gate.parse("stack").broken(found))


def test_acceptance_and_texts_that_changed_are_told(results: Path, other: Path, change_cells: ChangeCells) -> None:
    def change(cell: dict) -> None:
        if cell["mode"] == "ngram":
            acceptance = cell["counters"]["acceptance"]
            acceptance["accepted_tokens"] //= 2
            acceptance["acceptance_rate"] /= 2
            acceptance["acceptance_length"] = 1 + acceptance["accepted_tokens"] / acceptance["drafts"]
            for row in cell["rows"]:
                row["text"] = "another answer"

    change_cells(other, change)
    found = diff(results, other)
    cell = next(one for one in found.cells if (one.kind, one.load, one.mode) == ("code", "c1", "ngram"))
    assert cell.acceptance_b == pytest.approx(cell.acceptance_a / 2)
    assert cell.same_text == 0
    assert list(Gate.parse("acceptance:5%").broken(found))
    assert list(Gate.parse("identity:50%").broken(found))
    assert any(one.changed for one in found.decisions)
    assert list(Gate.parse("decision").broken(found))


def test_other_prompts_are_never_compared(results: Path, other: Path, change_cells: ChangeCells) -> None:
    change_cells(other, lambda cell: cell["digests"].update(prompts="other"))
    found = diff(results, other)
    assert {cell.word for cell in found.cells} == {"not comparable"}
    assert {one.code for one in found.findings} == {"prompts_differ"}
    assert {cell.decode.ratio for cell in found.cells} == {None}


def test_rows_that_only_one_has_are_listed(results: Path, other: Path, change_cells: ChangeCells) -> None:
    shutil.rmtree(other / "sessions" / "draft_k2")
    change_cells(other, lambda cell: None)
    found = diff(results, other)
    assert "code c1 draft_k2" in found.only_a
    assert not [one.fact for one in found.stack if "draft_k2" in one.fact]
    assert list(Gate.parse("missing").broken(found))


@pytest.mark.parametrize(
    "wrong", ["slower", "slower:", "slower:much", "slower:-5%", "slower:５%", "decision:5%", "hue:1%"]
)
def test_a_condition_that_does_not_exist_is_refused_with_the_list(wrong: str) -> None:
    with pytest.raises(UserError, match="no condition") as caught:
        Gate.parse(wrong)
    assert "slower:5%" in caught.value.fix


def test_what_holds_no_table_is_refused(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no table"):
        diff(results, tmp_path)


@pytest.mark.parametrize("gone", ["sessions/ngram", "sessions/ngram/r2", "sessions/ngram/r2/code_c1.json"])
def test_a_table_without_the_cells_behind_it_is_refused(results: Path, other: Path, gone: str) -> None:
    path = other / gone
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    with pytest.raises(UserError, match="do not have their measured cells"):
        diff(results, other)


@pytest.mark.parametrize("name", ["comparison.json", "decision.json"])
@pytest.mark.parametrize("content", ["{", '{"schema_version": 99}', ""])
def test_a_file_that_cannot_be_read_is_named(results: Path, other: Path, name: str, content: str) -> None:
    (other / name).write_text(content)
    with pytest.raises(UserError, match=f"{name} is not of this version"):
        diff(results, other)
