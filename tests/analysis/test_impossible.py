"""A cell that no measurement can give is unreadable, with the reason and the place; it is never a number (E8)."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import cells
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.synthetic import Made, cell, starts
from specdec_lab.records.comparison import CellResult

Write = Callable[..., Path]
DRAFTED: dict[str, Any] = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted": 1300,
}


@pytest.fixture
def results(folder: Write) -> Path:
    return folder(starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], **DRAFTED))


def edit(results: Path, how: Callable[[dict[str, Any]], object], mode: str = "eagle3") -> Path:
    path = results / "sessions" / mode / "r2" / "chat_c4.json"
    content = json.loads(path.read_text())
    how(content)
    path.write_text(json.dumps(content))
    return path


def row_of(results: Path, mode: str = "eagle3") -> CellResult:
    return next(row for row in compare(results).cells if row.mode == mode)


ROWS: list[tuple[dict[str, Any], str]] = [
    ({"decode_tok_s": -50}, "decode_tok_s is -50, no rate that was measured"),
    ({"decode_tok_s": 0}, "decode_tok_s is 0, no rate that was measured"),
    ({"decode_tok_s": 1e-320}, "decode_tok_s is 1e-320, no rate that was measured"),
    ({"ttft_s": -50}, "ttft_s is -50, no time that was measured"),
    ({"ttft_s": "1"}, "ttft_s is '1', no time that was measured"),
    ({"sent_s": -0.5}, "sent_s is -0.5, no time that was measured"),
    ({"sent_s": True}, "sent_s is True, no time that was measured"),
    ({"e2e_s": 0.01}, "it ended (e2e_s 0.01) before its first token (ttft_s 0.05)"),
    ({"completion_tokens": -1}, "completion_tokens is -1, no count that was measured"),
    ({"completion_tokens": 10.5}, "completion_tokens is 10.5, no count that was measured"),
    ({"completion_tokens": 10**400}, "no count that was measured"),
    ({"arrivals": [-0.1, 0.2]}, "arrivals is -0.1, no time that was measured"),
    ({"arrivals": [0.3, 0.2]}, "arrivals are not in the order of time"),
    ({"arrivals": ["a"]}, "arrivals is ['a'], no list of times"),
    ({"id": ["p"]}, "id is ['p'], no text"),
    ({"text": 5}, "text is 5, no text"),
    ({"status": "okay"}, "status is 'okay', neither ok nor failed"),
]


@pytest.mark.parametrize(("change", "told"), ROWS)
def test_a_row_that_cannot_be_makes_its_cell_unreadable(results: Path, change: dict[str, Any], told: str) -> None:
    edit(results, lambda content: content["rows"][3].update(change))
    row = row_of(results)
    assert [one.code for one in row.findings] == ["unreadable"]
    assert "eagle3 r2 chat_c4.json: impossible: rows.3 (id " in row.findings[0].message
    assert told in row.findings[0].message
    assert row.p50_decode_tok_s is None
    assert row.verdict is not None
    assert row.verdict.word == "not comparable"


def test_a_number_beyond_all_is_none(results: Path) -> None:
    path = results / "sessions" / "eagle3" / "r2" / "chat_c4.json"
    path.write_text(path.read_text().replace('"ttft_s": 0.05', '"ttft_s": 1e999', 1))
    assert [one.code for one in row_of(results).findings] == ["unreadable"]


def _negated(content: dict[str, Any]) -> None:
    content["summary"]["wall_s"] = -5


CELLS: list[tuple[Callable[[dict[str, Any]], object], str]] = [
    (lambda c: c.update(rows=[]), "impossible: rows: there are none, and the summary counts 20 requests"),
    (lambda c: c.pop("rows"), "impossible: rows: there are none, and the summary counts 20 requests"),
    (_negated, "impossible: summary: wall_s is -5.0, no number that was measured"),
    (lambda c: c["summary"].update(failed=-1), "impossible: summary: failed is -1"),
    (lambda c: c.update(schema_version="1"), "schema_version is '1', no whole number"),
    (lambda c: c.update(schema_version=True), "schema_version is True, no whole number"),
    (lambda c: c.update(digests=["p"]), "valid dictionary"),
    (lambda c: c.update(digests={"prompts": 5}), "prompts"),
    (lambda c: c.update(warmup=[1]), "valid dictionary"),
    (lambda c: c.update(energy_j=-1), "greater than or equal to 0"),
    (lambda c: c.update(order=1e400), "not strict JSON"),
    (lambda c: c.update(order=[1]), "not a cell"),
]


@pytest.mark.parametrize(("how", "told"), CELLS)
@pytest.mark.parametrize("mode", ["eagle3", "baseline"])
def test_a_cell_that_cannot_be_is_unreadable_and_that_is_all_that_is_told(
    results: Path, how: Callable[[dict[str, Any]], object], told: str, mode: str
) -> None:
    edit(results, how, mode)
    row = row_of(results)
    assert [one.code for one in row.findings] == ["unreadable"]
    assert f"{mode} r2 chat_c4.json: " in row.findings[0].message
    assert told in row.findings[0].message


def test_what_only_the_summary_says_is_no_speed(results: Path) -> None:
    def without_rates(content: dict[str, Any]) -> None:
        for row in content["rows"]:
            row |= {"decode_tok_s": None, "ttft_s": None}

    edit(results, without_rates)
    read = cells.read_cell(results / "sessions/eagle3/r2/chat_c4.json", "eagle3", 2)
    assert (read.p50_decode, read.p50_ttft, read.decode_n) == (None, None, 0)
    told = [one.message for one in row_of(results).findings if one.code == "summary_disagrees"]
    assert "eagle3 r2: P50 decode tok/s 91.0 in the summary, nothing by its rows." in told
    assert "eagle3 r2: P50 TTFT in seconds 0.05 in the summary, nothing by its rows." in told


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("pipe", "neither a file nor a link to one"),
        ("device", "neither a file nor a link to one"),
        ("folder", "a folder, not a file"),
        ("dangling", "a link that leads nowhere"),
    ],
)
def test_only_a_regular_file_is_opened(results: Path, kind: str, told: str) -> None:
    path = results / "sessions" / "eagle3" / "r2" / "chat_c4.json"
    path.unlink()
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to(results / "nowhere")
    row = row_of(results)
    assert [(one.code, one.message) for one in row.findings] == [("unreadable", f"eagle3 r2 chat_c4.json: {told}")]


def test_looking_at_each_row_costs_little(tmp_path: Path) -> None:
    content = cell(Made("baseline", 1, [50.0] * 5000, tokens=[101] * 5000))
    for row in content["rows"]:
        row["arrivals"] = [0.05 + 0.02 * k for k in range(100)]
    path = tmp_path / "chat_c4.json"
    path.write_text(json.dumps(content))
    start = time.process_time()
    read = cells.read_cell(path, "baseline", 1)
    assert (len(read.requests), read.read) == (5000, True)
    assert time.process_time() - start < 2
