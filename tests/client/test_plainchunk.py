"""The shortcut for plain chunks reads what a full parse reads, and times it alike."""

from __future__ import annotations

import dataclasses
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_lab.client.chunk import parse
from specdec_lab.client.exchange import Exchange
from specdec_lab.client.plainchunk import PlainChunks
from specdec_lab.client.scripted import DONE, delta, sse, usage
from specdec_lab.client.stream import Transcript, transcript

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORDS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from([" tok", '"', "\\", "\n", '","content":"x', "🙂", "\u2028", "", "data: [DONE]\n\n", "\x7f"]),
)
PLAIN = WORDS.map(lambda word: sse(delta(content=word)))
ESCAPED = st.sampled_from(
    [b'"\\u00e9"', b'"\\ud83d"', b'"\\ude42"', b'"a\\/b"', b'"\\x"', b'"\x01"', b'"\xff"', b'"a"b"']
).map(lambda text: sse(delta(content="@")).replace(b'"@"', text))
OTHER = st.sampled_from(
    [sse(delta(reasoning="r")), sse(delta(role="assistant")), sse(usage(3)), b": ping\n\n", sse({"error": "died"})]
)
EVENTS = st.lists(st.one_of(PLAIN, PLAIN, PLAIN, ESCAPED, OTHER), max_size=25)


def recorded(events: list[bytes], cuts: list[int], spoilt: tuple[int, int] | None = None) -> Exchange:
    """An answer of these events, one HTTP chunk each; cut between the frames where a number is even, else anywhere.

    `spoilt`: a place behind the headers, and the byte that stands there instead.
    """
    frames = [b"%x\r\n%s\r\n" % (len(event), event) for event in [*events, DONE]]
    wire = HEAD + b"".join(frames) + b"0\r\n\r\n"
    if spoilt is not None:
        place = len(HEAD) + spoilt[0] % (len(wire) - len(HEAD))
        wire = wire[:place] + bytes([spoilt[1]]) + wire[place + 1 :]
    edges = [len(HEAD)]
    for frame in frames:
        edges.append(edges[-1] + len(frame))
    places = {edges[cut // 2 % len(edges)] if cut % 2 == 0 else cut % len(wire) for cut in cuts}
    exchange = Exchange(0, lambda _: None)
    exchange.sent_at = 0.5
    at = 0
    for end in [*sorted(places - {0}), len(wire)]:
        exchange.record(wire[at:end], 1.0 + len(exchange.sizes))
        at = end
        if exchange.watchful:
            exchange.look()
    exchange.finish("complete", 99.0)
    return exchange


def told(exchange: Exchange) -> dict[str, object]:
    said = transcript(exchange, list(exchange.fetched))
    kept = [field.name for field in dataclasses.fields(Transcript) if not field.name.startswith("_")]
    texts = {name: getattr(said, name) for name in kept if name != "answer"} | {"answer": "".join(said.answer)}
    return texts | {"broken": exchange.framing.broken, "complete": exchange.framing.complete}


@given(events=EVENTS, cuts=st.lists(st.integers(0, 4000), max_size=40), every=st.booleans())
@settings(max_examples=500, deadline=None)
def test_a4_the_shortcut_says_and_times_what_the_full_parse_does(
    events: list[bytes], cuts: list[int], every: bool
) -> None:
    cuts = [*cuts, *range(0, 2 * len(events) + 4, 2)] if every else cuts
    short = told(recorded(events, cuts))
    with mock.patch.object(PlainChunks, "learn", return_value=None):
        full = told(recorded(events, cuts))
    assert short == full


@given(
    words=st.lists(st.sampled_from([" tok", " a", " word"]), min_size=3, max_size=12),
    every=st.booleans(),
    cuts=st.lists(st.integers(0, 4000), max_size=4),
    place=st.integers(0, 4000),
    byte=st.sampled_from(list(b'\r\n0aX "\\}{:;\x00\xff')),
)
@settings(max_examples=1500, deadline=None)
def test_a_spoilt_byte_means_to_the_shortcut_what_it_means_to_the_full_parse(
    words: list[str], every: bool, cuts: list[int], place: int, byte: int
) -> None:
    events = [sse(delta(content=word)) for word in words]
    cuts = [*cuts, *range(0, 2 * len(events) + 4, 2)] if every else cuts
    short = told(recorded(events, cuts, (place, byte)))
    with mock.patch.object(PlainChunks, "learn", return_value=None):
        full = told(recorded(events, cuts, (place, byte)))
    assert short == full


@pytest.mark.parametrize("last", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("end", [b"\rX", b"\n\n", b"\r\r", b"XX"])
def test_a_chunk_without_its_line_end_is_no_http_to_the_shortcut_either(end: bytes, last: int) -> None:
    def spoilt() -> dict[str, object]:
        exchange = recorded([sse(delta(content=" tok"))] * 8, list(range(0, 20, 2)))
        at = sum(exchange.sizes[: last + 1])
        exchange.body[at - 2 : at] = end
        said = told(exchange)
        assert exchange.framing.broken
        return said

    short = spoilt()
    with mock.patch.object(PlainChunks, "learn", return_value=None):
        assert spoilt() == short


def test_the_shortcut_is_really_taken_for_a_plain_stream() -> None:
    events = [sse(delta(content=f" word{i} é \n")) for i in range(50)]
    exchange = recorded(events, list(range(0, 110, 2)))
    with mock.patch("specdec_lab.client.stream.parse", side_effect=parse) as in_full:
        said = transcript(exchange, list(exchange.fetched))
    assert "".join(said.answer) == "".join(f" word{i} é \n" for i in range(50))
    assert in_full.call_count <= 2
