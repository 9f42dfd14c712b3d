"""The formulas of a row and of a cell (cases A8, D1, D2)."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_lab.quantities import decode_tok_s, few_samples, goodput, percentile, summarise
from specdec_lab.records.cell import Row
from specdec_lab.records.spec import Objective


def made(id: str, tokens: int | None, ttft: float | None, e2e: float | None, **rest: Any) -> Row:
    arrivals = [] if ttft is None else [ttft] if ttft == e2e else [ttft, e2e]
    rate = decode_tok_s(tokens, arrivals)
    fields = {
        "id": id,
        "kind": "k",
        "status": "ok",
        "sent_s": 0.0,
        "completion_tokens": tokens,
        "ttft_s": ttft,
        "e2e_s": e2e,
        "arrivals": arrivals,
        "decode_tok_s": rate,
        "tpot_s": None if rate is None else 1 / rate,
    }
    return Row(**{**fields, **rest})


def test_d1_zero_and_one_token_have_no_decode_rate_and_pull_no_median() -> None:
    rows = [made("r1", 1, 0.20, 0.20), made("r2", 0, None, None), made("r3", 50, 0.10, 1.08)]
    assert [row.decode_tok_s for row in rows] == [None, None, pytest.approx(50.0)]
    summary = summarise(rows)
    assert summary.decode_n == 1
    assert summary.p50_decode_tok_s == pytest.approx(50.0)
    assert summary.p50_ttft_s == pytest.approx(0.15)
    assert summary.completion_tokens == 51


def test_d2_percentiles_of_few_samples() -> None:
    assert percentile([10, 20, 30], 99) == pytest.approx(29.8)
    assert percentile(range(1, 21), 95) == pytest.approx(19.05)
    assert percentile(range(1, 11), 95) == pytest.approx(9.55)
    assert percentile([10, 20, 30], 99, method="nearest") == 30
    assert percentile(range(1, 21), 95, method="nearest") == 19
    assert percentile(range(1, 11), 95, method="nearest") == 10
    assert percentile([7.0], 99) == 7.0
    assert percentile([], 50) is None
    assert percentile([2, 1], 0) == 1
    with pytest.raises(ValueError):
        percentile([1], 101)


def test_d2_too_few_samples_are_marked_by_name() -> None:
    assert few_samples(95, 19)
    assert not few_samples(95, 20)
    assert few_samples(99, 99)
    assert not few_samples(99, 100)
    assert not few_samples(50, 1)
    summary = summarise([made(f"r{i}", 50, 0.1, 1.0) for i in range(20)])
    assert summary.few_samples == ["p99_ttft_s"]
    assert summary.percentile_method == "linear"


def test_failed_rows_are_counted_and_left_out_of_everything_else() -> None:
    rows = [made("a", 50, 0.1, 1.08), made("b", 40, 9.0, 99.0, status="failed", reason="reset", sent_s=0.0)]
    summary = summarise(rows)
    assert (summary.requests, summary.failed, summary.completion_tokens) == (2, 1, 50)
    assert summary.p95_ttft_s == pytest.approx(0.1)
    assert summary.wall_s == pytest.approx(1.08)
    assert summary.agg_tok_s == pytest.approx(50 / 1.08)


def test_a_cell_in_which_all_failed_has_only_nulls() -> None:
    summary = summarise([made("b", None, None, None, status="failed", reason="http_503")])
    assert (summary.agg_tok_s, summary.p50_ttft_s, summary.p50_decode_tok_s, summary.wall_s) == (None,) * 4
    assert summarise([]).requests == 0


def test_an_unknown_count_makes_the_sum_unknown_not_smaller() -> None:
    assert summarise([made("a", 50, 0.1, 1.0), made("b", None, 0.1, 1.0)]).agg_tok_s is None


def test_a8_the_first_chunks_tokens_are_subtracted_when_known() -> None:
    arrivals = [1.0, 1.1, 1.2]
    assert decode_tok_s(9, arrivals) == pytest.approx(8 / 0.2)
    assert decode_tok_s(9, arrivals, [3, 3, 3]) == pytest.approx(6 / 0.2)
    assert decode_tok_s(None, arrivals) is None


def test_tokens_that_arrive_all_at_once_have_no_rate() -> None:
    assert decode_tok_s(100, [1.0] * 100) is None
    assert decode_tok_s(100, [1.0 + 1e-5 * i for i in range(100)]) is None
    assert decode_tok_s(100, [1.0 + 1e-3 * i for i in range(100)]) == pytest.approx(1000)


def test_goodput_counts_failures_as_missed_and_needs_an_objective() -> None:
    rows = [
        made("a", 50, 0.1, 1.08),
        made("b", 50, 0.5, 1.08),
        made("c", 1, 0.1, 0.1),
        made("d", 50, 0.1, 1.0, status="failed", reason="reset"),
    ]
    assert goodput(rows, Objective(ttft_s=0.2)) == 0.5
    assert goodput(rows, Objective(tpot_s=0.015)) == 0.5
    assert goodput(rows, Objective()) is None
    assert goodput([], Objective(ttft_s=1)) is None
