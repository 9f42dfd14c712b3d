"""D4, A3: what counts as the same text: tool calls, answers without any text, and the reason for which a text ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import decision, tables
from specdec_lab.analysis.answers import Text
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.finishing import otherwise
from specdec_lab.analysis.identity import differences
from specdec_lab.analysis.synthetic import Made, plain_text
from specdec_lab.records.comparison import CellResult, Comparison, Identity
from specdec_lab.records.decision import Decision

Write = Callable[..., Path]
N = 20
TEXTS = [plain_text(i) for i in range(N)]
CALLS = [f'find {{"city": "{plain_text(i, 60)}", "days": {i}}}' for i in range(N)]
DRAFTED: dict[str, Any] = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted": 1300,
}


def run(folder: Write, base: list[dict[str, Any]], mode: dict[str, Any]) -> tuple[Comparison, Decision]:
    """A baseline with these answers in each of its starts, and a mode that is fast and answers so in both of its."""
    cells = [Made("baseline", r, [50.0 + r / 10] * N, against=None, **one) for r, one in enumerate(base, start=1)]
    cells += [Made("eagle3", r, [90.0 + r / 10] * N, **mode, **DRAFTED) for r in (1, 2)]
    comparison = compare(folder(cells))
    return comparison, decision.decide(comparison)


def eagle3(comparison: Comparison) -> CellResult:
    return next(one for one in comparison.cells if one.mode == "eagle3")


def text_of(row: CellResult) -> Identity:
    assert row.identity is not None
    return row.identity


def told(row: CellResult) -> set[str]:
    return {one.code for one in text_of(row).reasons}


def silent_with(calls: list[str | None]) -> dict[str, Any]:
    return {"texts": [""] * N, "tool_calls": calls}


def test_a3_modes_that_differ_in_their_tool_calls_alone_differ(folder: Write) -> None:
    other = [call.replace("find", "fund") for call in CALLS]
    comparison, answer = run(folder, [silent_with(CALLS)] * 2, silent_with(other))
    row = eagle3(comparison)
    text = text_of(row)
    assert (text.word, text.identical, text.n) == ("differs", 0, N)
    assert (text.tool_calls_identical, text.tool_calls_n) == (0, N)
    assert {one.channel for one in text.differences} == {"tool_calls"}
    assert "tool_calls_differ" in told(row)
    assert text.degenerate == 0
    assert not answer.workloads[0].speculative


def test_a3_equal_tool_calls_are_the_same_text(folder: Write) -> None:
    comparison, answer = run(folder, [silent_with(CALLS)] * 2, silent_with(CALLS))
    text = text_of(eagle3(comparison))
    assert (text.word, text.identical, text.n, text.silent) == ("same", N, N, 0)
    assert "tool_calls_differ" not in told(eagle3(comparison))
    assert answer.workloads[0].speculative


def test_a3_a_call_in_the_place_of_an_answer_is_a_difference_and_nothing_empty() -> None:
    (one,) = differences({"p": Text("", None, "tool_calls", CALLS[0])}, {"p": Text(TEXTS[0], None, "stop")})
    assert (one.channel, one.degenerate) == ("answer", None)
    (lost,) = differences({"p": Text("", None, "stop")}, {"p": Text("", None, "tool_calls", CALLS[0])})
    assert (lost.channel, lost.degenerate) == ("tool_calls", "empty")


def test_a3_a_call_that_breaks_off_is_truncation() -> None:
    (cut,) = differences({"p": Text("", None, "length", CALLS[0][:50])}, {"p": Text("", None, "tool_calls", CALLS[0])})
    assert (cut.channel, cut.degenerate) == ("tool_calls", "truncated")


def test_m5_answers_without_a_text_in_either_mode_are_no_evidence(folder: Write) -> None:
    comparison, answer = run(folder, [silent_with([None] * N)] * 2, silent_with([None] * N))
    row = eagle3(comparison)
    text = text_of(row)
    assert (text.word, text.identical, text.n, text.silent) == ("not judged", 0, 0, N)
    assert "no_text" in told(row)
    assert "no_text" in {one.code for one in row.findings}
    assert answer.workloads[0].verdict.word == "undecided"
    assert not answer.workloads[0].speculative
    assert comparison.floors[0].identical is None


def test_m5_a_few_answers_without_a_text_are_left_out_and_said(folder: Write) -> None:
    some = {"texts": ["" if i < 3 else text for i, text in enumerate(TEXTS)]}
    comparison, answer = run(folder, [some] * 2, some)
    text = text_of(eagle3(comparison))
    assert (text.word, text.identical, text.n, text.silent, text.control_n) == ("same", 17, 17, 3, 17)
    assert "3 of 20 prompts got no text" in next(one for one in text.reasons if one.code == "no_text").message
    assert "17/17?" in tables.summary_text(comparison)
    assert answer.workloads[0].speculative


def test_m5_an_answer_that_only_one_side_lacks_is_a_difference(folder: Write) -> None:
    some = {"texts": ["" if i < 3 else text for i, text in enumerate(TEXTS)]}
    comparison, _ = run(folder, [{"texts": TEXTS}] * 2, some)
    text = text_of(eagle3(comparison))
    assert (text.identical, text.n, text.silent, text.degenerate) == (17, 20, 0, 3)


def ends(count: int, *, first: int = 0) -> dict[str, Any]:
    """The texts of the baseline, of which so many end with `length` and not with `stop`."""
    return {"texts": TEXTS, "finish": ["length" if first <= i < first + count else "stop" for i in range(N)]}


@pytest.mark.parametrize(("base", "mode"), [(0, 5), (5, 0)])
def test_d4_equal_texts_that_end_for_another_reason_are_not_simply_the_same(
    folder: Write, base: int, mode: int
) -> None:
    comparison, answer = run(folder, [ends(base)] * 2, ends(mode))
    row = eagle3(comparison)
    text = text_of(row)
    assert (text.word, text.identical, text.n) == ("undecided", N, N)
    assert (text.finish_only_differs, text.control_finish_only_differs) == (5, 0)
    (reason,) = [one for one in text.reasons if one.code == "finish_differs"]
    assert "5 of 20 texts are equal but end for another reason" in reason.message
    assert ("stop -> length" in reason.message) is (mode == 5)
    assert "finish_differs" in {one.code for one in row.findings}
    assert "20/20?" in tables.summary_text(comparison)
    assert not answer.workloads[0].speculative
    assert answer.workloads[0].verdict.word == "undecided"
    assert "finish_reason" in answer.workloads[0].next_step


def test_d4_one_other_end_is_said_and_forbids_nothing_as_one_late_flip_does(folder: Write) -> None:
    comparison, answer = run(folder, [ends(0)] * 2, ends(1))
    assert text_of(eagle3(comparison)).word == "undecided"
    assert "finish_differs" in told(eagle3(comparison))
    assert answer.workloads[0].speculative


def test_d4_other_ends_as_often_as_the_baselines_own_are_its_own_variation(folder: Write) -> None:
    comparison, answer = run(folder, [ends(0), ends(5)], ends(5, first=8))
    row = eagle3(comparison)
    assert text_of(row).word == "within own variation"
    assert text_of(row).control_finish_only_differs == 5
    assert "finish_own_variation" in told(row)
    assert "finish_differs" not in told(row)
    assert answer.workloads[0].speculative


def test_d4_far_more_other_ends_than_the_baselines_own_are_not_excused_by_them(folder: Write) -> None:
    comparison, _ = run(folder, [ends(0), ends(1)], ends(12))
    assert text_of(eagle3(comparison)).word == "undecided"
    assert "finish_differs" in told(eagle3(comparison))


def test_d4_equal_ends_say_nothing(folder: Write) -> None:
    comparison, answer = run(folder, [ends(5)] * 2, ends(5))
    text = text_of(eagle3(comparison))
    assert (text.word, text.finish_only_differs) == ("same", 0)
    assert not told(eagle3(comparison)) & {"finish_differs", "finish_own_variation"}
    assert "20/20?" not in tables.summary_text(comparison)
    assert answer.workloads[0].speculative


def test_d4_a_finish_reason_that_nobody_sent_is_no_other_reason() -> None:
    assert otherwise({"p": Text("a", None, None)}, {"p": Text("a", None, "stop")}) == []
    assert otherwise({"p": Text("a", None, "length")}, {"p": Text("a", None, "stop")}) == ["p"]
    assert otherwise({"p": Text("b", None, "length")}, {"p": Text("a", None, "stop")}) == []
