"""The one place for the formulas of a row and of a cell (M1-M3, M35; cases A8, D1, D2). Pure functions, no I/O.

Times are seconds. Everything that is not known is None, never 0. Whoever needs one of these numbers (client, analysis,
report, command line) calls the function here, so that a number has one meaning everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import sub
from typing import Literal

from .records.cell import Row, Summary
from .records.spec import Load, Objective

PERCENTILE_METHOD: Literal["linear"] = "linear"
"""Percentiles in a summary are interpolated linearly between the two nearest samples (Hyndman and Fan, type 7)."""

BUFFERED_GAP_S = 0.0002
"""A mean gap between chunks below this is a stream that something held back and let go at once, not a decode rate."""


def percentile(values: Iterable[float], q: float, *, method: Literal["linear", "nearest"] = "linear") -> float | None:
    """The q-th percentile (0 to 100); None of nothing, the value itself of one value (case D2).

    `linear`: between the sorted samples around position q/100 * (n - 1). `nearest`: nearest rank, sample number
    ceil(q/100 * n). ValueError if q is outside 0 to 100.
    """
    if not 0 <= q <= 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {q}")
    ordered = sorted(values)
    if not ordered:
        return None
    if method == "nearest":
        return ordered[max(math.ceil(q / 100 * len(ordered)), 1) - 1]
    position = q / 100 * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def median(values: Iterable[float]) -> float | None:
    """The 50th percentile; None of nothing."""
    return percentile(values, 50)


def few_samples(q: float, n: int) -> bool:
    """Whether n samples are too few for a q-th percentile: fewer than 1 / (1 - q/100): 20 for p95, 100 for p99 (D2)."""
    return n * (100 - q) < 100 if q > 50 else n < 1


def buffered(arrivals: Sequence[float]) -> bool:
    """Whether several chunks arrived all at once: mean gap below `BUFFERED_GAP_S`. Such a stream has no decode rate."""
    return len(arrivals) > 1 and (arrivals[-1] - arrivals[0]) / (len(arrivals) - 1) < BUFFERED_GAP_S


def tokens_after_first(completion_tokens: int | None, chunk_tokens: Sequence[int] | None) -> tuple[int, bool] | None:
    """Tokens that arrived after the first arrival, and whether that is exact.

    With `chunk_tokens` (from running usage or token ids) it is their sum without the first chunk's, exact. Without, the
    first chunk is taken to hold one token: completion_tokens - 1, not exact. None when the server counted nothing.
    """
    if chunk_tokens:
        return sum(chunk_tokens[1:]), True
    if completion_tokens is None:
        return None
    return completion_tokens - 1, False


def decode_tok_s(
    completion_tokens: int | None, arrivals: Sequence[float], chunk_tokens: Sequence[int] | None = None
) -> float | None:
    """M2: tokens after the first arrival / (last arrival - first arrival), in tokens per second.

    None for fewer than two tokens or arrivals (case D1), without a count from the server, and for a buffered stream.
    """
    after = tokens_after_first(completion_tokens, chunk_tokens)
    if after is None or after[0] < 1 or len(arrivals) < 2 or buffered(arrivals):
        return None
    return after[0] / (arrivals[-1] - arrivals[0])


def tpot_s(decode: float | None) -> float | None:
    """Amortised time per output token after the first: 1 / decode rate (case A8). Not the gap between chunks."""
    return None if decode is None else 1.0 / decode


def chunk_gaps(arrivals: Sequence[float]) -> list[float]:
    """Gaps between one chunk and the next. A chunk may hold several tokens, so this is no inter-token latency (A8)."""
    return list(map(sub, arrivals[1:], arrivals))


def good(row: Row, objective: Objective) -> bool:
    """Whether a request met each limit of the objective. A failed request met none.

    A request with one token has no time per output token, and so cannot miss that limit; one without a token has missed
    a limit on the first token.
    """
    if row.status != "ok":
        return False
    if objective.ttft_s is not None and (row.ttft_s is None or row.ttft_s > objective.ttft_s):
        return False
    return objective.tpot_s is None or row.tpot_s is None or row.tpot_s <= objective.tpot_s


def goodput(rows: Sequence[Row], objective: Objective) -> float | None:
    """Requests that met the objective / all requests; None without an objective or without requests."""
    if not rows or (objective.ttft_s is None and objective.tpot_s is None):
        return None
    return sum(good(row, objective) for row in rows) / len(rows)


def wall_s(rows: Iterable[Row]) -> float | None:
    """First request sent -> last token of the last successful request; None when no request gave a token."""
    known = list(rows)
    starts = [row.sent_s for row in known if row.sent_s is not None]
    ends = [
        row.sent_s + row.e2e_s
        for row in known
        if row.status == "ok" and row.sent_s is not None and row.e2e_s is not None
    ]
    return max(ends) - min(starts) if starts and ends else None


def decode_share(rows: Iterable[Row]) -> float | None:
    """M35: time between first and last token / end-to-end time, each summed over the rows; None without such rows."""
    timed = [(row.e2e_s - row.ttft_s, row.e2e_s) for row in rows if row.ttft_s is not None and row.e2e_s]
    whole = math.fsum(e2e for _, e2e in timed)
    return math.fsum(decode for decode, _ in timed) / whole if whole > 0 else None


def _total(values: Sequence[int | None]) -> int | None:
    """The sum; None as soon as one part is unknown, for then the sum is unknown too."""
    return sum(v for v in values if v is not None) if values and None not in values else None


def summarise(
    rows: Sequence[Row],
    *,
    load: Load | None = None,
    objective: Objective | None = None,
    completed: bool = True,
    peak_in_flight: int | None = None,
) -> Summary:
    """What the rows of one cell add up to. Failed rows are counted, and left out of latency and of throughput.

    agg_tok_s (M1) = completion tokens / wall_s; None as soon as one successful request has no token count from the
    server. p50_decode_tok_s (M2) is the median over the `decode_n` rows that have a rate (case D1). tokens_per_chunk =
    completion tokens / chunks that carried text, over rows that have both. Open loop: achieved_rate = (n - 1) / (last
    sent - first sent); schedule delay = sent - due.
    """
    ok = [row for row in rows if row.status == "ok"]
    wall = wall_s(rows)
    completion = _total([row.completion_tokens for row in ok])
    decodes = [row.decode_tok_s for row in ok if row.decode_tok_s is not None]
    ttfts = [row.ttft_s for row in ok if row.ttft_s is not None]
    e2es = [row.e2e_s for row in ok if row.e2e_s is not None]
    chunked = [(row.completion_tokens, len(row.arrivals)) for row in ok if row.completion_tokens and row.arrivals]
    chunks = sum(n for _, n in chunked)
    rate = load.rate if load is not None else None
    sent = sorted(row.sent_s for row in rows if row.sent_s is not None)
    delays = [row.sent_s - row.scheduled_s for row in rows if row.sent_s is not None and row.scheduled_s is not None]
    few = [
        name
        for name, q, n in (
            ("p90_ttft_s", 90, len(ttfts)),
            ("p95_ttft_s", 95, len(ttfts)),
            ("p99_ttft_s", 99, len(ttfts)),
            ("p95_e2e_s", 95, len(e2es)),
        )
        if n and few_samples(q, n)
    ]
    return Summary(
        requests=len(rows),
        failed=len(rows) - len(ok),
        completed=completed,
        wall_s=wall,
        completion_tokens=completion,
        prompt_tokens=_total([row.prompt_tokens for row in ok]),
        agg_tok_s=completion / wall if completion is not None and wall else None,
        p50_decode_tok_s=median(decodes),
        decode_n=len(decodes),
        p50_ttft_s=median(ttfts),
        p90_ttft_s=percentile(ttfts, 90),
        p95_ttft_s=percentile(ttfts, 95),
        p99_ttft_s=percentile(ttfts, 99),
        p50_tpot_s=median(row.tpot_s for row in ok if row.tpot_s is not None),
        p50_e2e_s=median(e2es),
        p95_e2e_s=percentile(e2es, 95),
        p50_chunk_gap_s=median(chain.from_iterable(chunk_gaps(row.arrivals) for row in ok)),
        tokens_per_chunk=sum(tokens for tokens, _ in chunked) / chunks if chunks else None,
        mean_completion_tokens=completion / len(ok) if completion is not None else None,
        decode_share=decode_share(ok),
        requested_rate=rate,
        achieved_rate=(len(sent) - 1) / (sent[-1] - sent[0]) if rate and len(sent) > 1 and sent[-1] > sent[0] else None,
        p50_schedule_delay_s=median(delays),
        p95_schedule_delay_s=percentile(delays, 95),
        peak_in_flight=peak_in_flight,
        goodput=goodput(rows, objective) if objective is not None else None,
        percentile_method=PERCENTILE_METHOD,
        few_samples=few,
    )
