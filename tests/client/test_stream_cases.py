"""What one stream is worth: usage, first token, channels, chunks of several tokens (cases A1 to A3, A6 to A8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specdec_lab.client.scripted import DONE, Script, Step, delta, paced, sse, usage
from specdec_lab.records.cell import Row
from specdec_lab.records.spec import Deadlines

RowOf = Callable[..., Row]


def with_usage(chunk: dict[str, Any], completion: int | None) -> dict[str, Any]:
    counts = None if completion is None else {"prompt_tokens": 7, "completion_tokens": completion, "total_tokens": 0}
    return {**chunk, "usage": counts}


HI = [delta(content="Hi"), delta(content=" there")]
FINISH = delta(finish="stop")


def test_a1_a_late_usage_chunk_gives_the_count_and_moves_no_time(row: RowOf) -> None:
    steps = [
        Step(0.05, sse(with_usage(HI[0], None))),
        Step(0.10, sse(with_usage(HI[1], None)) + sse(with_usage(FINISH, None))),
        Step(0.40, sse(usage(2)) + DONE),
    ]
    got = row(Script(steps))
    assert (got.text, got.completion_tokens) == ("Hi there", 2)
    assert got.e2e_s == pytest.approx(0.10, abs=0.04)
    assert got.decode_tok_s == pytest.approx(1 / 0.05, rel=0.5)


def test_a1_running_usage_is_not_added_up_and_tells_the_first_chunk(row: RowOf) -> None:
    pieces = [
        sse(with_usage(delta(role="assistant", content=""), 0)),
        sse(with_usage(HI[0], 1)),
        sse(with_usage(HI[1], 2)),
        sse(with_usage(FINISH, 2)),
        sse(usage(2)),
        DONE,
    ]
    got = row(paced(pieces, gap_s=0.01))
    assert (got.text, got.completion_tokens, got.chunk_tokens, got.decode_exact) == ("Hi there", 2, [1, 1], True)


def test_a1_usage_may_come_with_the_finish_reason(row: RowOf) -> None:
    got = row(paced([sse(HI[0]), sse(HI[1]), sse(with_usage(FINISH, 2)), DONE], gap_s=0.01))
    assert (got.text, got.completion_tokens, got.chunk_tokens) == ("Hi there", 2, None)


def test_a1_without_usage_the_count_is_missing_and_never_the_chunks(row: RowOf) -> None:
    got = row(paced([sse(HI[0]), sse(HI[1]), sse(FINISH), DONE], gap_s=0.01))
    assert got.status == "ok"
    assert (got.completion_tokens, got.decode_tok_s) == (None, None)
    assert "no_usage" in got.notes


def test_a1_a_first_chunk_without_choices_is_harmless(row: RowOf) -> None:
    got = row(paced([sse({"choices": []}), sse(HI[0]), sse(HI[1]), sse(FINISH), sse(usage(2)), DONE], gap_s=0.01))
    assert (got.text, got.completion_tokens) == ("Hi there", 2)


def test_a2_a_role_and_an_empty_string_are_no_tokens(row: RowOf) -> None:
    steps = [
        Step(0.05, sse(delta(role="assistant", content=None))),
        Step(0.06, sse(delta(content=""))),
        *(Step(0.40 + 0.02 * i, sse(delta(content="A"))) for i in range(10)),
        Step(0.59, sse(FINISH) + sse(usage(10)) + DONE),
    ]
    got = row(Script(steps))
    assert got.ttft_s == pytest.approx(0.40, abs=0.04)
    assert got.decode_tok_s == pytest.approx(50, rel=0.06)
    assert len(got.arrivals) == 10


@pytest.mark.parametrize("names", [("reasoning_content",), ("reasoning",), ("reasoning_content", "reasoning")])
def test_a3_thinking_counts_as_tokens_and_the_answer_has_its_own_first_time(row: RowOf, names: tuple[str, ...]) -> None:
    steps = [
        *(Step(0.05 + 0.05 * i, sse(delta(**dict.fromkeys(names, f"r{i} ")))) for i in range(10)),
        *(Step(0.55 + 0.05 * i, sse(delta(content=f"a{i} "))) for i in range(10)),
        Step(1.01, sse(FINISH) + sse(usage(20)) + DONE),
    ]
    got = row(Script(steps))
    assert got.ttft_s == pytest.approx(0.05, abs=0.04)
    assert got.first_answer_s == pytest.approx(0.55, abs=0.04)
    assert got.decode_tok_s == pytest.approx(20, rel=0.05)
    assert got.reasoning == "".join(f"r{i} " for i in range(10))
    assert got.text == "".join(f"a{i} " for i in range(10))


def test_a3_a_cap_reached_while_thinking_is_a_success_without_an_answer(row: RowOf) -> None:
    pieces = [sse(delta(reasoning="r ")) for _ in range(10)]
    got = row(paced([*pieces, sse(delta(finish="length")), sse(usage(10)), DONE], gap_s=0.01))
    assert (got.status, got.text, got.completion_tokens, got.first_answer_s) == ("ok", "", 10, None)
    assert got.ttft_s is not None


TOKENS = [sse(delta(content=f" t{i}")) for i in range(3)]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        ([*TOKENS, sse({"error": {"message": "engine died", "code": 500}}), DONE], "engine died"),
        ([sse({"error": {"message": "engine died", "code": 500}}), DONE], "engine died"),
        ([*TOKENS, sse({"error": "engine died"}), DONE], "engine died"),
        ([*TOKENS, b'event: error\ndata: {"message": "engine died"}\n\n', DONE], "engine died"),
        ([*TOKENS, b"event: error\ndata: engine died\n\n", DONE], "engine died"),
        ([*TOKENS, sse({"object": "error", "message": "engine died"}), DONE], "engine died"),
        ([*TOKENS, sse(delta(finish="abort")), DONE], "abort"),
    ],
)
def test_a6_an_error_inside_a_stream_is_a_failure_with_the_servers_words(
    row: RowOf, pieces: list[bytes], words: str
) -> None:
    got = row(paced(pieces))
    assert (got.status, got.reason) == ("failed", "server_error")
    assert words in (got.message or "")


def test_a6_a_null_error_and_the_word_error_in_a_text_are_none(row: RowOf) -> None:
    pieces = [sse({**delta(content='an "error": {'), "error": None}), sse(delta(content=' {"error": 1}'))]
    got = row(paced([*pieces, sse(FINISH), sse(usage(2)), DONE]))
    assert (got.status, got.text) == ("ok", 'an "error": { {"error": 1}')


def test_a7_a_clean_close_without_a_finish_reason_is_truncation(row: RowOf) -> None:
    got = row(paced(TOKENS * 3, end="close"))
    assert (got.status, got.reason) == ("failed", "truncated")


def test_a7_an_end_of_the_response_without_a_finish_reason_is_truncation(row: RowOf) -> None:
    got = row(paced(TOKENS * 3, end="finish"))
    assert (got.status, got.reason) == ("failed", "truncated")


def test_a7_a_finish_reason_without_done_is_a_success_with_a_note(row: RowOf) -> None:
    got = row(paced([*TOKENS, sse(delta(finish="length")), sse(usage(3))], end="close"))
    assert got.status == "ok"
    assert "no_done" in got.notes


def test_a7_done_ends_the_request_though_the_socket_stays_open(measure: Callable[..., Any]) -> None:
    measured, _ = measure(paced([*TOKENS, sse(FINISH), sse(usage(3)), DONE], end="hold"), n=3)
    assert [r.status for r in measured.rows] == ["ok"] * 3
    assert all("held_open" in r.notes for r in measured.rows)
    assert measured.summary.wall_s < 1.5


def test_a7_done_is_seen_even_when_split_and_followed_by_comments(measure: Callable[..., Any]) -> None:
    end = [DONE[:8], DONE[8:] + b": " + b"x" * 200 + b"\n\n"]
    script = paced([*TOKENS, sse(FINISH), sse(usage(3)), *end], gap_s=0.01, end="hold")
    measured, _ = measure(script, deadlines=Deadlines(total_s=5, first_byte_s=5, idle_s=5))
    assert measured.rows[0].status == "ok"
    assert measured.rows[0].text == " t0 t1 t2"


def test_a7_the_word_done_inside_a_text_ends_nothing(row: RowOf) -> None:
    pieces = [sse(delta(content="say [DONE]\n\ndata: [DONE]\n\n")), *TOKENS, sse(FINISH), sse(usage(4)), DONE]
    got = row(paced(pieces, gap_s=0.02))
    assert got.text == "say [DONE]\n\ndata: [DONE]\n\n t0 t1 t2"


def test_a7_a_reset_in_mid_answer_is_a_failure(row: RowOf) -> None:
    got = row(paced([*TOKENS, b""], gap_s=0.02, end="reset"))
    assert (got.status, got.reason) == ("failed", "reset")


@pytest.mark.parametrize(
    ("status", "body", "headers", "words"),
    [
        (429, b'{"error":{"message":"slow down"}}', [("retry-after", "7")], "slow down (Retry-After: 7)"),
        (503, b"overloaded", [], "overloaded"),
        (400, b'{"error":{"message":"maximum context length is 2048 tokens"}}', [], "maximum context length"),
        (404, b'{"detail":"Not Found"}', [], "Not Found"),
    ],
)
def test_a7_a_refusal_keeps_its_status_and_words_and_is_never_sent_again(
    measure: Callable[..., Any], status: int, body: bytes, headers: list[tuple[str, str]], words: str
) -> None:
    script = Script([Step(0, body)], status=status, headers=headers, content_type="application/json")
    measured, server = measure(script, n=3)
    assert [(r.status, r.reason) for r in measured.rows] == [("failed", f"http_{status}")] * 3
    assert words in measured.rows[0].message
    assert len(server.posts) == 3
    assert measured.summary.failed == 3
    assert measured.summary.agg_tok_s is None


def test_a7_an_early_stop_is_flagged_short_when_the_end_token_was_to_be_ignored(row: RowOf) -> None:
    pieces = [*(sse(delta(content="x")) for _ in range(10)), sse(FINISH), sse(usage(10)), DONE]
    assert "short" in row(paced(pieces), ignore_eos=True, prompt_tokens=100).notes
    assert "short" not in row(paced(pieces), prompt_tokens=100).notes


def test_a7_an_answer_that_is_no_stream_is_named_as_such(row: RowOf) -> None:
    script = Script([Step(0, b'{"choices":[{"message":{"content":"x"}}]}')], content_type="application/json")
    assert row(script).reason == "not_a_stream"


def speculative(first: int, rest: int, chunks: int) -> list[dict[str, Any]]:
    return [delta(content="x" * first), *(delta(content="y" * rest) for _ in range(chunks))]


def test_a8_chunks_of_several_tokens_are_counted_by_the_servers_usage(row: RowOf) -> None:
    plain = [*(sse(delta(content="x")) for _ in range(40)), sse(FINISH) + sse(usage(40)) + DONE]
    several = [*(sse(chunk) for chunk in speculative(1, 3, 13)), sse(FINISH) + sse(usage(40)) + DONE]
    base = row(paced(plain, gap_s=0.02))
    fast = row(paced(several, gap_s=0.03))
    assert base.decode_tok_s == pytest.approx(50, rel=0.03)
    assert fast.decode_tok_s == pytest.approx(100, rel=0.03)
    assert base.tpot_s == pytest.approx(0.020, rel=0.03)
    assert fast.tpot_s == pytest.approx(0.010, rel=0.03)
    assert fast.decode_exact is False


def test_a8_token_ids_tell_the_first_chunks_tokens(row: RowOf) -> None:
    chunks = [sse(delta(content="x")) for _ in range(5)]
    for i in range(5):
        made = delta(content="x")
        made["choices"][0]["token_ids"] = [1, 2, 3]
        chunks[i] = sse(made)
    got = row(paced([*chunks, sse(FINISH) + sse(usage(15)) + DONE], gap_s=0.02))
    assert got.chunk_tokens == [3] * 5
    assert got.decode_exact is True
    assert got.decode_tok_s == pytest.approx(12 / 0.08, rel=0.05)


def test_a_buffered_stream_has_no_decode_rate(measure: Callable[..., Any]) -> None:
    body = b"".join([*(sse(delta(content="x")) for _ in range(100)), sse(FINISH), sse(usage(100)), DONE])
    for script in (Script([Step(0.1, body)]), paced([body[:9000], body[9000:]], first_s=0.1)):
        measured, _ = measure(script)
        got = measured.rows[0]
        assert (got.decode_tok_s, got.tpot_s, got.completion_tokens) == (None, None, 100)
        assert "buffered" in got.notes
        assert measured.summary.p50_decode_tok_s is None
        assert measured.summary.agg_tok_s is not None
