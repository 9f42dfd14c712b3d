"""Bytes to events, the same for every way the bytes may be cut (cases A4, A5)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_lab.client.scripted import DONE, Script, Step, delta, paced, sse, usage
from specdec_lab.client.sse import Decoder, Event
from specdec_lab.client.stream import Transcript
from specdec_lab.records.cell import Row

RowOf = Callable[..., Row]


def events(reads: list[bytes]) -> list[tuple[str, bytes]]:
    decoder = Decoder()
    found = [event for read in reads for event in decoder.feed(read)]
    last = decoder.finish()
    return [(event.name, event.data) for event in [*found, *([last] if last else [])]]


def single_bytes(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


WORDS = [" naïve", " 🙂", "日本", "  x ", "a\u2028b\u2029c\x85d"]
STREAM = [*(sse(delta(content=word)) for word in WORDS), sse(delta(finish="stop")), sse(usage(5)), DONE]
TEXT = "".join(WORDS)


def two_data_lines() -> list[bytes]:
    """The first event's JSON broken over two data lines, which the standard joins by a line feed."""
    first = STREAM[0].replace(b',"model"', b',\ndata: "model"')
    return [first, *STREAM[1:]]


VARIANTS = {
    "as it is": STREAM,
    "single bytes": single_bytes(b"".join(STREAM)),
    "inside the emoji": [
        b"".join(STREAM)[: (cut := b"".join(STREAM).index("🙂".encode()) + 2)],
        b"".join(STREAM)[cut:],
    ],
    "between data: and the space": [b"".join(STREAM)[:5], b"".join(STREAM)[5:]],
    "CRLF": [piece.replace(b"\n", b"\r\n") for piece in STREAM],
    "CRLF in single bytes": single_bytes(b"".join(STREAM).replace(b"\n", b"\r\n")),
    "CR only": [piece.replace(b"\n", b"\r") for piece in STREAM],
    "no space": [piece.replace(b"data: ", b"data:") for piece in STREAM],
    "two data lines": two_data_lines(),
    "byte order mark": [b"\xef\xbb\xbf" + STREAM[0], *STREAM[1:]],
    "byte order mark in single bytes": single_bytes(b"\xef\xbb\xbf" + b"".join(STREAM)),
    "all in one read": [b"".join(STREAM)],
    "no blank line at the end": [*STREAM[:-1], b"data: [DONE]"],
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a4_the_text_is_the_same_however_the_bytes_are_cut(row: RowOf, name: str) -> None:
    got = row(paced(VARIANTS[name]))
    assert (got.status, got.text, got.completion_tokens) == ("ok", TEXT, 5)
    assert len(got.arrivals) == len(WORDS)


def test_a4_single_byte_writes_on_the_wire_change_nothing(row: RowOf) -> None:
    got = row(Script([Step(0, b"".join(STREAM).replace(b"\n", b"\r\n"))], byte_by_byte=True))
    assert (got.text, got.completion_tokens) == (TEXT, 5)


def test_a4_the_halves_of_a_character_in_two_chunks_become_that_character(row: RowOf) -> None:
    halves = [
        b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude42"}}]}\n\n',
    ]
    assert row(paced([*halves, *STREAM[-3:]])).text == "🙂"


def test_a4_a_lone_half_is_replaced_and_said(row: RowOf) -> None:
    got = row(paced([b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n', *STREAM[-3:]]))
    assert got.text == "a\ufffd"
    assert "surrogates" in got.notes


def test_a_lone_half_in_a_finish_reason_can_be_written_too(row: RowOf) -> None:
    got = row(paced([STREAM[0], b'data: {"choices":[{"delta":{},"finish_reason":"st\\ud83dop"}]}\n\n', DONE]))
    assert got.finish_reason == "st\ufffdop"
    assert got.model_dump_json()


NOISE = [b": ping\n\n", b":\n", b"retry: 3000\n\n", b"id: 7\n\n", b"event: ping\ndata:\n\n", b"\n\n", b"data:\n\n"]


def test_a5_heartbeats_between_tokens_are_ignored_and_start_no_clock(row: RowOf) -> None:
    early = [Step(0.02 * i, piece) for i, piece in enumerate(NOISE)]
    steps = [
        *early,
        *(Step(0.3 + 0.02 * i, piece + noise) for i, (piece, noise) in enumerate(zip(STREAM, NOISE * 2, strict=False))),
    ]
    got = row(Script(steps))
    assert (got.text, got.status) == (TEXT, "ok")
    assert got.ttft_s == pytest.approx(0.3, abs=0.02)


def test_a5_a_frame_cut_off_for_good_fails_the_request_by_name(row: RowOf) -> None:
    got = row(paced([STREAM[0], b'data: {"choices":[\n\n', *STREAM[1:]]))
    assert (got.status, got.reason) == ("failed", "parse_error")
    assert '{"choices":[' in (got.message or "")


@pytest.mark.parametrize("data", [b"5", b"[]", b'"x"', b"null", b"NaN x", b"\xff\xfe", b"{}{}", b"[" * 100_000])
def test_a5_data_that_is_no_json_object_is_a_named_failure(row: RowOf, data: bytes) -> None:
    assert row(paced([b"data: " + data + b"\n\n", *STREAM])).reason == "parse_error"


def test_the_standard_names_events_and_joins_their_lines() -> None:
    stream = b"\xef\xbb\xbfevent: a\ndata: 1\ndata:2\ndata:  3\n\n:c\nid\ndata\n\nevent: b\n\ndata: x: y\r\r\n"
    assert events([stream]) == [("a", b"1\n2\n 3"), ("message", b""), ("message", b"x: y")]


def test_an_event_is_timed_by_its_last_data_line_not_by_the_blank_line_after_it() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\n", 1.0) == []
    assert decoder.feed(b"\ndata: b\n\n", 2.0) == [Event("message", b"a", 1.0), Event("message", b"b", 2.0)]


def cut(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({c % (len(data) + 1) for c in cuts} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(places)]


LINE_ENDS = st.sampled_from([b"\n", b"\r", b"\r\n"])
ANY_LINE = st.one_of(
    st.sampled_from([b"", b":", b"data:", b"data: [DONE]", b"event: error", b"id: 1", b"\xef\xbb\xbfdata: x"]),
    st.text(max_size=20).map(
        lambda t: b"data: " + t.encode("utf-8", "replace").replace(b"\n", b"").replace(b"\r", b"")
    ),
    st.binary(max_size=20),
)
ANY_STREAM = st.lists(st.tuples(ANY_LINE, LINE_ENDS).map(b"".join), max_size=30).map(b"".join)


@given(stream=ANY_STREAM, cuts=st.lists(st.integers(0, 2000), max_size=30))
@settings(max_examples=400, deadline=None)
def test_any_cut_of_any_bytes_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    whole = events([stream])
    assert events(cut(stream, cuts)) == whole
    assert events(single_bytes(stream)) == whole


FIELDS = st.sampled_from(["content", "reasoning", "reasoning_content", "role"])
DELTAS = st.dictionaries(FIELDS, st.one_of(st.none(), st.text(max_size=12)), max_size=3)
CHUNKS = st.one_of(
    DELTAS.map(lambda fields: sse(delta(**fields)) if not surrogate(fields) else sse(delta())),
    st.text(max_size=12).filter(lambda t: not surrogate(t)).map(lambda t: sse(delta(content=t))),
    st.integers(0, 50).map(lambda n: sse(usage(n))),
    st.sampled_from([b": ping\n\n", sse({"error": "x"}), sse({"error": None, "choices": []}), b"data: {\n\n", DONE]),
)


def surrogate(value: object) -> bool:
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return True
    return any(
        "\ud800" <= c <= "\udfff" for v in (value.values() if isinstance(value, dict) else [value]) for c in v or ""
    )


def told(pieces: list[bytes]) -> dict[str, object]:
    """What a transcript says, times left out."""
    read = Transcript().read(pieces, [0.0] * len(pieces))
    return {
        "answer": "".join(read.answer),
        "reasoning": "".join(read.reasoning),
        "arrivals": len(read.arrivals),
        "tokens": read.completion_tokens,
        "finish": read.finish_reason,
        "done": read.done,
        "error": read.error,
        "bad": read.bad is not None,
        "events": read.events,
    }


@given(chunks=st.lists(CHUNKS, max_size=20), cuts=st.lists(st.integers(0, 5000), max_size=20))
@settings(max_examples=400, deadline=None)
def test_any_cut_of_any_stream_gives_the_same_text_and_the_shortcut_equals_the_full_parse(
    chunks: list[bytes], cuts: list[int]
) -> None:
    stream = b"".join(chunks)
    by_event = told(chunks)
    assert told(cut(stream, cuts)) == by_event
    assert told(single_bytes(stream)) == by_event
