"""Tool calls are kept as text, whichever way a server cuts and numbers them (cases A2, A3; M5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from specdec_lab.client.scripted import DONE, delta, paced, sse, usage
from specdec_lab.client.stream import Transcript, joined
from specdec_lab.records.cell import Row

RowOf = Callable[..., Row]


def call(name: str | None = None, arguments: Any = None, **more: Any) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return delta(tool_calls=[{**more, "function": function}])


def text(*chunks: dict[str, Any]) -> str:
    events = [sse(chunk) for chunk in chunks]
    said = Transcript().read(events, [float(i) for i in range(len(events))])
    return joined(said.calls.parts())


SHAPES = {
    "arguments in pieces": [
        call("get", "", index=0, id="a", type="function"),
        call(arguments='{"x": ', index=0),
        call(arguments='"é"}', index=0),
        call("put", "{}", index=1, id="b", type="function"),
    ],
    "pieces of two calls in turn": [
        call("get", '{"x": ', index=0, id="a"),
        call("put", "{", index=1, id="b"),
        call(arguments='"é"}', index=0),
        call(arguments="}", index=1),
    ],
    "the index is always 0": [call("get", '{"x": "é"}', index=0, id="a"), call("put", "{}", index=0, id="b")],
    "no index": [call("get", '{"x": "é"}', id="a"), call("put", "{}", id="b")],
    "neither index nor id": [call("get", '{"x": ', index=None), call(arguments='"é"}'), call("put", "{}")],
    "name and id with every piece": [
        call("get", '{"x": ', index=0, id="a"),
        call("get", '"é"}', index=0, id="a"),
        call("put", "{}", index=1, id="b"),
    ],
    "both in one chunk": [
        delta(
            tool_calls=[
                {"index": 0, "id": "a", "function": {"name": "get", "arguments": '{"x": "é"}'}},
                {"index": 1, "id": "b", "function": {"name": "put", "arguments": "{}"}},
            ]
        )
    ],
    "arguments as objects": [call("get", {"x": "é"}, index=0), call("put", {}, index=1)],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a3_calls_are_the_same_text_in_every_shape(shape: str) -> None:
    assert text(*SHAPES[shape]) == 'get {"x": "é"}\nput {}'


def test_a3_two_calls_of_one_tool_are_two() -> None:
    assert text(call("get", "{}", index=0, id="a"), call("get", "{}", index=1, id="b")) == "get {}\nget {}"


def test_a3_a_call_that_was_cut_off_is_the_beginning_of_the_whole_one() -> None:
    whole = text(call("get", '{"x": "é"}', index=0))
    assert whole.startswith(text(call("get", '{"x": ', index=0)))


def test_a3_the_function_call_of_old_servers_and_custom_tools_are_kept() -> None:
    old = [delta(function_call={"name": "f", "arguments": ""}), delta(function_call={"arguments": "{}"})]
    assert text(*old) == "f {}"
    assert text(delta(tool_calls=[{"index": 0, "custom": {"name": "sh", "input": "ls"}}])) == "sh ls"


@pytest.mark.parametrize("calls", [None, [], "x", [1], [None]])
def test_a3_what_is_no_call_is_none_and_breaks_nothing(calls: Any) -> None:
    assert text(delta(content="Hi", tool_calls=calls)) == ""


def test_a3_calls_that_are_odd_break_nothing() -> None:
    odd = [[{}], [{"index": True, "id": 5, "function": "f"}], [{"function": {"name": 7, "arguments": None}}]]
    for calls in odd:
        assert " " in text(delta(tool_calls=calls))


def test_a3_an_answer_that_only_calls_a_tool_has_a_row_with_times_and_the_call(row: RowOf) -> None:
    pieces = [
        sse(delta(role="assistant", content=None)),
        sse(call("get", "", index=0, id="call_93", type="function")),
        sse(json.dumps(call(arguments='{"half": "\ud83d', index=0))),
        sse(json.dumps(call(arguments='\ude42"}', index=0))),
        sse(delta(finish="tool_calls")),
        sse(usage(9)),
        DONE,
    ]
    got = row(paced(pieces, gap_s=0.01))
    assert (got.status, got.text, got.tool_calls) == ("ok", "", 'get {"half": "🙂"}')
    assert (got.finish_reason, got.completion_tokens, len(got.arrivals)) == ("tool_calls", 9, 3)
    assert got.first_answer_s is None
    assert got.ttft_s is not None


def test_a3_an_answer_without_a_call_says_null(row: RowOf) -> None:
    assert row(paced([sse(delta(content="Hi")), sse(delta(finish="stop")), DONE])).tool_calls is None
