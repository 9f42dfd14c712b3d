"""Counts of tokens that contradict each other, the text or the request give no exact rate and say so (A1, A8, M6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_lab.client import counts
from specdec_lab.client.request import cap
from specdec_lab.client.scripted import DONE, delta, paced, sse, usage
from specdec_lab.client.stream import NOTES, Transcript
from specdec_lab.records.cell import Row

RowOf = Callable[..., Row]
END = sse(delta(finish="stop"))


def text(at: int, count: int | None = None, ids: int | None = None) -> bytes:
    """One chunk of text, with the usage so far or with that many token ids."""
    made: dict[str, Any] = delta(content=f" {at}")
    if ids is not None:
        made["choices"][0]["token_ids"] = list(range(ids))
    if count is not None:
        made["usage"] = {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count}
    return sse(made)


def running(*totals: int) -> list[bytes]:
    return [text(at, total) for at, total in enumerate(totals)]


def plain(n: int) -> list[bytes]:
    return [text(at) for at in range(n)]


def ids(each: int, n: int) -> list[bytes]:
    return [text(at, ids=each) for at in range(n)]


def closing(completion: int, *, total: int | None = None, thoughts: int | None = None) -> list[bytes]:
    made = usage(completion)
    if total is not None:
        made["usage"]["total_tokens"] = total
    if thoughts is not None:
        made["usage"]["completion_tokens_details"] = {"reasoning_tokens": thoughts}
    return [END, sse(made), DONE]


def judged(pieces: list[bytes], most: int | None = 100) -> counts.Counts:
    return counts.judged(Transcript().read(pieces, [0.02 * at for at in range(len(pieces))]), most)


STALE = [*running(1, 2, 3, 3, 3, 3), *closing(6)]
LATE = [*running(1, 1, 2, 3, 4), *closing(5)]
ONE_ID = [*ids(1, 10), *closing(30)]
SUMMED = [*running(*(n * (n + 1) // 2 for n in range(1, 31))), *closing(465)]
ABOVE_CAP = [*plain(10), *closing(150)]
FEW = [*plain(40), *closing(2)]
THOUGHTS = [
    *(sse(delta(reasoning_content=f" t{at}")) for at in range(10)),
    *plain(10),
    *closing(10, total=27, thoughts=10),
]
WITH_PROMPT = [*plain(10), *closing(17, total=17)]

CONTRADICTIONS = {
    "running usage that stalls": (STALE, 6, True, ["chunk_tokens_contradict"]),
    "running usage that is one chunk late": (LATE, 5, True, ["chunk_tokens_contradict"]),
    "one id a chunk, more tokens by usage": (ONE_ID, 30, False, ["chunk_tokens_contradict"]),
    "sums of running totals": (SUMMED, None, True, ["usage_above_cap", "chunk_tokens_contradict"]),
    "above the cap": (ABOVE_CAP, None, True, ["usage_above_cap"]),
    "far fewer than chunks": (FEW, None, True, ["usage_below_chunks"]),
    "thoughts left out": (THOUGHTS, None, True, ["usage_parts_differ", "usage_below_chunks"]),
    "more thoughts than tokens": (
        [*plain(4), *closing(9, thoughts=12)],
        None,
        True,
        ["usage_parts_differ"],
    ),
    "prompt counted in": (WITH_PROMPT, None, True, ["usage_parts_differ"]),
    "thoughts that never came": ([*plain(10), *closing(100, thoughts=90)], 100, False, ["thoughts_unseen"]),
    "one chunk more than tokens, of many": ([*plain(21), *closing(20)], 20, True, ["usage_below_chunks"]),
    "one chunk more than tokens, of few": ([*plain(3), *closing(2)], None, True, ["usage_below_chunks"]),
    "running usage above the final": ([*running(1, 2, 3), *closing(1)], None, True, None),
    "ids that lack the marks between channels": ([*ids(1, 29), *closing(31)], 31, True, ["chunk_tokens_contradict"]),
}


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_m6_counts_that_contradict_are_named_and_never_exact(name: str) -> None:
    pieces, tokens, timeable, notes = CONTRADICTIONS[name]
    got = judged(pieces)
    assert (got.tokens, got.timeable, got.exact) == (tokens, timeable, False)
    assert got.notes
    assert set(got.notes) <= NOTES.keys()
    if notes is not None:
        assert got.notes == notes


@pytest.mark.parametrize(
    ("pieces", "tokens", "each", "exact"),
    [
        ([*running(1, 2, 3), *closing(3)], 3, [1, 1, 1], True),
        ([*running(1, 2, 3), *closing(4)], 4, [1, 1, 1], True),
        ([*running(3, 6, 9), *closing(9)], 9, [3, 3, 3], True),
        ([*running(1, 2, 3, 4, 40), *closing(40)], 40, [1, 1, 1, 1, 36], True),
        ([*ids(3, 10), *closing(30)], 30, [3] * 10, True),
        ([*ids(3, 10), END, DONE], None, [3] * 10, True),
        ([*plain(10), *closing(30)], 30, None, False),
        ([*plain(10), *closing(100)], 100, None, False),
        ([*plain(10), *closing(101)], 101, None, False),
        ([*running(6, 6, 6), *closing(6)], 6, None, False),
        ([sse(delta(content="")), *plain(2), sse(delta(content="")), *closing(2)], 2, None, False),
        ([sse(delta(reasoning=" t")), *plain(10), *closing(20, thoughts=10)], 20, None, False),
        ([*running(11, 12, 13), *closing(13, thoughts=10)], 13, [11, 1, 1], True),
        ([*plain(10), *closing(10, total=0)], 10, None, False),
        ([*closing(0)], 0, None, False),
    ],
)
def test_m6_sound_counts_are_taken_without_a_remark(
    pieces: list[bytes], tokens: int | None, each: list[int] | None, exact: bool
) -> None:
    got = judged(pieces)
    assert (got.tokens, got.chunk_tokens, got.exact, got.notes) == (tokens, each, exact, [])


@pytest.mark.parametrize(
    ("pieces", "gap", "rate", "note"),
    [
        (STALE, 0.02, 50, "chunk_tokens_contradict"),
        (LATE, 0.02, 50, "chunk_tokens_contradict"),
        (ONE_ID, 0.02, None, "chunk_tokens_contradict"),
        (SUMMED, 0.01, None, "usage_above_cap"),
        (ABOVE_CAP, 0.02, None, "usage_above_cap"),
        (FEW, 0.005, None, "usage_below_chunks"),
        (THOUGHTS, 0.02, None, "usage_parts_differ"),
        ([*plain(10), *closing(100, thoughts=90)], 0.02, None, "thoughts_unseen"),
        ([*ids(1, 30), *closing(465)], 0.02, 50, "usage_above_cap"),
    ],
)
def test_m6_the_row_has_the_right_rate_or_none_and_is_never_called_exact(
    row: RowOf, pieces: list[bytes], gap: float, rate: float | None, note: str
) -> None:
    got = row(paced(pieces, gap_s=gap))
    assert got.status == "ok"
    assert note in got.notes
    assert got.decode_exact is not True
    assert got.decode_tok_s == (None if rate is None else pytest.approx(rate, rel=0.1))


def test_m6_an_unknown_cap_condemns_nothing() -> None:
    assert judged(ABOVE_CAP, None).tokens == 150
    assert cap({"max_tokens": 100}) == 100
    assert cap({"max_tokens": 100, "max_completion_tokens": 500}) is None
    assert cap({"max_tokens": None}) is None


STEPS = st.lists(st.integers(0, 6), min_size=1, max_size=12)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.booleans(), st.integers(0, 60), st.integers(1, 60))
def test_m6_whatever_is_taken_agrees_with_all_that_was_told(
    steps: list[int], in_ids: bool, said: int, most: int
) -> None:
    totals = [sum(steps[: at + 1]) for at in range(len(steps))]
    told = [text(at, ids=step) for at, step in enumerate(steps)] if in_ids else running(*totals)
    got = judged([*told, *closing(said)], most)
    if got.tokens is not None:
        assert got.tokens == said <= most + 1
        assert got.tokens >= 0.9 * len(steps)
    if got.chunk_tokens is not None:
        assert got.chunk_tokens == steps
        assert min(steps) >= 1
        assert got.tokens in (None, sum(steps), sum(steps) + 1)
    if got.exact:
        assert said in (sum(steps), sum(steps) + 1)
