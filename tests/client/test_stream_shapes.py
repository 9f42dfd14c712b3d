"""Shapes of chunks and errors that servers and proxies send beside the common one (cases A2, A3, A6, A7)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specdec_lab.client.chunk import parse
from specdec_lab.client.scripted import DONE, delta, paced, sse, usage
from specdec_lab.records.cell import Row

RowOf = Callable[..., Row]
HI = sse(delta(content="Hi"))
CHOICE = {"index": 0, "delta": {}}


@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        ({"detail": "boom"}, "boom"),
        ({"message": "boom", "type": "InternalServerError", "code": 500}, "boom"),
        ({"errors": [{"message": "boom"}]}, "boom"),
        ({"error": {}}, "{}"),
        ({"choices": [{**CHOICE, "finish_reason": "stop", "error": {"code": 502, "message": "boom"}}]}, "boom"),
        ({"choices": [{**CHOICE, "finish_reason": {"type": "abort", "message": "boom"}}]}, "boom"),
    ],
)
def test_a6_an_error_in_any_known_shape_fails_the_request_with_its_words(row: RowOf, chunk: Any, words: str) -> None:
    got = row(paced([HI, sse(chunk), DONE], gap_s=0.01))
    assert (got.status, got.reason) == ("failed", "server_error")
    assert words in (got.message or "")


@pytest.mark.parametrize("chunk", [{"error": None}, {"error": ""}, {"error": False}, {"choices": [], "message": "x"}])
def test_a6_what_is_no_error_fails_nothing(row: RowOf, chunk: Any) -> None:
    assert row(paced([HI, sse(chunk), sse(delta(finish="stop")), DONE], gap_s=0.01)).status == "ok"


@pytest.mark.parametrize("pieces", [[DONE], [sse({"choices": []}), DONE]])
def test_a7_a_stream_that_holds_nothing_is_a_failure(row: RowOf, pieces: list[bytes]) -> None:
    got = row(paced(pieces, gap_s=0.01))
    assert (got.status, got.reason) == ("failed", "truncated")


@pytest.mark.parametrize(
    ("choice", "answer", "reasoning"),
    [
        ({"delta": {"content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}}, "AB", ""),
        (
            {"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}},
            "",
            "hm",
        ),
        ({"delta": {"refusal": "no"}}, "no", ""),
        ({"delta": {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}}, "", "hm"),
        ({"text": "A"}, "A", ""),
        ({"message": {"role": "assistant", "content": "A"}}, "A", ""),
    ],
)
def test_a3_text_in_other_places_is_kept_and_timed(choice: Any, answer: str, reasoning: str) -> None:
    import json

    got = parse(json.dumps({"choices": [{"index": 0, **choice}]}).encode())
    assert (got.answer, got.reasoning, got.generated) == (answer, reasoning, True)


def test_a2_a_function_call_is_generated_and_an_empty_list_is_not() -> None:
    assert parse(b'{"choices": [{"delta": {"function_call": {"name": "f", "arguments": ""}}}]}').generated
    assert not parse(b'{"choices": [{"delta": {"content": []}}]}').generated


def test_only_the_first_of_several_choices_counts(row: RowOf) -> None:
    other = {"index": 1, "delta": {"content": "X"}}
    mixed = [sse({"choices": [other]}), sse({"choices": [other, {"index": 0, "delta": {"content": "B"}}]})]
    got = row(paced([HI, *mixed, sse(delta(finish="stop")), sse(usage(2)), DONE], gap_s=0.01))
    assert (got.text, len(got.arrivals)) == ("HiB", 2)
