"""A count of tokens that cannot be is no count, and what only keeps a connection open breaks no stream (A1, A5, M6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specdec_lab.client.scripted import DONE, delta, paced, sse, usage
from specdec_lab.client.stream import Transcript
from specdec_lab.records.cell import Row

RowOf = Callable[..., Row]
HI = sse(delta(content="Hi"))
END = sse(delta(finish="stop"))


def running(text: str, count: int) -> bytes:
    return sse({**delta(content=text), "usage": {"prompt_tokens": 7, "completion_tokens": count}})


def said(*pieces: bytes) -> Transcript:
    return Transcript().read(pieces, [float(at) for at in range(len(pieces))])


@pytest.mark.parametrize(
    ("pieces", "count"),
    [
        ([running("a", 1), running("b", 2), sse(usage(0)), DONE], None),
        ([running("a", 4), sse(usage(3)), DONE], None),
        ([HI, sse(usage(0)), DONE], None),
        ([HI, DONE], None),
        ([running("a", 0), running("b", 1), sse(usage(2)), DONE], 2),
        ([running("a", 1), running("b", 2), sse(usage(2)), DONE], 2),
        ([END, sse(usage(0)), DONE], 0),
    ],
)
def test_a1_a_count_that_fell_or_that_denies_the_text_is_missing_and_never_0(
    pieces: list[bytes], count: int | None
) -> None:
    assert said(*pieces).counted() == count


def test_a1_the_row_of_a_count_that_fell_says_so_and_has_no_count(row: RowOf) -> None:
    got = row(paced([running("a", 1), running("b", 2), running("c", 3), END, sse(usage(0)), DONE], gap_s=0.01))
    assert (got.status, got.text, got.completion_tokens) == ("ok", "abc", None)
    assert "usage_contradicts" in got.notes
    assert got.decode_tok_s == pytest.approx(100, rel=0.3)


def test_a1_the_row_of_a_sound_count_says_nothing(row: RowOf) -> None:
    assert "usage_contradicts" not in row(paced([HI, END, sse(usage(1)), DONE], gap_s=0.01)).notes


@pytest.mark.parametrize(
    "beat",
    [
        b"event: ping\ndata: 2026-01-01 00:00:00\n\n",
        b'event: ping\ndata: {"type": "ping", "message": "still here"}\n\n',
        b"event: heartbeat\ndata: {\n\n",
        b"error: not a field that the standard knows\n\n",
        b'error: {"code": 500}\n',
    ],
)
def test_a5_what_keeps_a_connection_open_and_unknown_fields_break_no_stream(beat: bytes) -> None:
    got: Any = said(beat, HI, beat, sse(delta(content="!")), END, beat, sse(usage(2)), DONE)
    assert ("".join(got.answer), got.counted(), got.done) == ("Hi!", 2, True)
    assert (got.bad, got.error) == (None, None)
    assert got.arrivals == [1.0, 3.0]


def test_a6_an_event_of_type_error_is_still_one() -> None:
    assert said(HI, b"event: error\ndata: boom\n\n").error == "boom"
