"""B5: the client against a server with known times. What it recovers, what it costs, how much it can take.

Each trial streams from `paced` and lays the client's rows beside the server's log. The server shares the machine with
the client here, as the measured server often does, so a busy machine shows in these numbers; that is their purpose.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import Field

from .. import quantities
from ..records.base import Record
from ..records.cell import ClientProof, Row
from ..records.prompt import Message, Prompt
from ..records.spec import Load
from .clock import kernel_stamps
from .measure import Client, Measured
from .paced import Pace, PacedServer, Sent
from .request import Endpoint

CONCURRENCIES = (1, 16, 64, 256)
TOKENS_PER_CHUNK = (1, 2, 4, 8)

TTFT_LIMIT_MS = 0.5
"""Most that the median TTFT may differ from the server's log, after the first wave."""

DECODE_LIMIT = 0.001
"""Most that the median decode rate may differ from the server's log, relatively."""

_WAVES = 3
_CHUNKS = (30, 50)
_QUICK = Pace(first_s=0.05, gap_s=0.01)


class Trial(Record):
    """One trial. Errors are client minus log."""

    concurrency: int
    tokens_per_chunk: int
    requests: int
    failed: int
    chunks: int
    wall_s: float
    chunks_s: float
    first_wave_ttft_ms: float | None = Field(description="Median TTFT error of the requests that were sent at once.")
    p50_ttft_ms: float | None = Field(description="Median TTFT error of the others: (TTFT) - (first sent - received).")
    p95_ttft_ms: float | None
    p95_arrival_ms: float | None = Field(description="95th percentile of (chunk arrived) - (chunk sent), all chunks.")
    p50_decode: float | None = Field(description="Median of |decode rate / rate of the log - 1|.")
    p95_decode: float | None
    cpu_s_per_million: float = Field(description="Client CPU seconds per million chunks, making the rows included.")
    loop_lag_p99_ms: float | None
    within_limits: bool


class Selftest(Record):
    """What `specdec selftest` found."""

    schema_version: Literal[1] = 1
    stamps: Literal["kernel", "program"] = Field(description="Whose receive times the rows carry.")
    ceiling_chunks_s: float = Field(description="Chunks per second at which the client would fill one core.")
    null_chunks_s: float | None = Field(description="Chunks per second taken from a server that waits for nothing.")
    trials: list[Trial]
    proof: ClientProof
    passed: bool


def prompts(n: int, low: int, high: int, *, seed: int = 0) -> list[Prompt]:
    """Prompts whose max_tokens are spread evenly at random from low to high."""
    draw = random.Random(seed)
    return [
        Prompt(
            id=f"selftest-{i}",
            kind="selftest",
            messages=[Message(role="user", content=f"selftest-{i}")],
            max_tokens=draw.randint(low, high),
        )
        for i in range(n)
    ]


def compare(measured: Measured, log: dict[str, Sent], *, concurrency: int, tokens_per_chunk: int) -> Trial:
    """Lay the rows of one measurement beside the log of the server that it was made on."""
    pairs = [(row, log[row.id]) for row in measured.rows if row.status == "ok" and row.ttft_s is not None]
    ttft = [1e3 * ((row.ttft_s or 0.0) - (sent.at[0] - sent.received)) for row, sent in pairs]
    late = [1e3 * gap for row, sent in pairs for gap in _transit(row, sent, measured.origin)]
    decode = [abs(row.decode_tok_s / _rate(sent) - 1) for row, sent in pairs if row.decode_tok_s]
    chunks = sum(len(row.arrivals) for row in measured.rows)
    wall = measured.summary.wall_s or 0.0
    rest = ttft[concurrency:] or ttft
    p50_ttft, p50_decode = quantities.median(rest), quantities.median(decode)
    return Trial(
        concurrency=concurrency,
        tokens_per_chunk=tokens_per_chunk,
        requests=len(measured.rows),
        failed=measured.summary.failed,
        chunks=chunks,
        wall_s=wall,
        chunks_s=chunks / wall if wall else 0.0,
        first_wave_ttft_ms=quantities.median(ttft[:concurrency]),
        p50_ttft_ms=p50_ttft,
        p95_ttft_ms=quantities.percentile(rest, 95),
        p95_arrival_ms=quantities.percentile(late, 95),
        p50_decode=p50_decode,
        p95_decode=quantities.percentile(decode, 95),
        cpu_s_per_million=1e6 * measured.cpu_s / max(chunks, 1),
        loop_lag_p99_ms=measured.client.loop_lag_p99_ms,
        within_limits=not measured.summary.failed
        and p50_ttft is not None
        and abs(p50_ttft) <= TTFT_LIMIT_MS
        and p50_decode is not None
        and p50_decode <= DECODE_LIMIT,
    )


def _transit(row: Row, sent: Sent, origin: float) -> list[float]:
    """From each chunk's sending to its arrival; nothing when chunks were merged and so cannot be told apart."""
    if row.sent_s is None or len(row.arrivals) != len(sent.at):
        return []
    start = origin + row.sent_s
    return [start + arrived - at for arrived, at in zip(row.arrivals, sent.at, strict=True)]


def _rate(sent: Sent) -> float:
    """The decode rate that the log shows, with the first chunk's tokens taken to be one, as the client must."""
    return (sent.tokens - 1) / (sent.at[-1] - sent.at[0])


def trial(server: PacedServer, concurrency: int, waves: int = _WAVES) -> Trial:
    """One trial on a running server: `waves` times the concurrency in requests, of 30 to 50 chunks each."""
    size = server.pace.tokens_per_chunk
    asked = prompts(concurrency * waves, _CHUNKS[0] * size, _CHUNKS[1] * size)
    server.log()
    with Client(Endpoint(server.base_url, "paced")) as client:
        measured = client.measure(asked, Load(concurrency=concurrency))
    return compare(measured, server.log(), concurrency=concurrency, tokens_per_chunk=size)


def null_rate(tokens: int = 2000, concurrency: int = 16) -> float:
    """Chunks per second taken from a server that sends as fast as it can; both share the machine."""
    with PacedServer(Pace(first_s=0.0, gap_s=0.0)) as server, Client(Endpoint(server.base_url, "paced")) as client:
        measured = client.measure(prompts(concurrency, tokens, tokens), Load(concurrency=concurrency))
        chunks = sum(len(row.arrivals) for row in measured.rows)
        return chunks / (measured.summary.wall_s or 1.0)


def full(
    concurrencies: Sequence[int] = CONCURRENCIES,
    sizes: Sequence[int] = TOKENS_PER_CHUNK,
    *,
    told: Callable[[Trial], None] | None = None,
) -> Selftest:
    """Every concurrency with every number of tokens a chunk; about three seconds a trial. `told` hears of each."""
    trials = []
    for size in sizes:
        with PacedServer(Pace(first_s=0.1, gap_s=0.02, tokens_per_chunk=size)) as server:
            for concurrency in concurrencies:
                waves = _WAVES if concurrency > 1 else 4
                trials.append(trial(server, concurrency, waves))
                if told is not None:
                    told(trials[-1])
    return _found(trials, null_rate())


def quick() -> ClientProof:
    """Two seconds at concurrency 16: what a session stores beside its cells."""
    with PacedServer(_QUICK) as server:
        return _found([trial(server, 16)], None).proof


def _found(trials: Sequence[Trial], null: float | None) -> Selftest:
    heaviest = max(trials, key=lambda one: one.chunks_s)
    ceiling = 1e6 / heaviest.cpu_s_per_million
    return Selftest(
        stamps="kernel" if kernel_stamps() else "program",
        ceiling_chunks_s=ceiling,
        null_chunks_s=null,
        trials=list(trials),
        proof=ClientProof(
            selftest_ttft_error_ms=quantities.median(abs(t.p50_ttft_ms) for t in trials if t.p50_ttft_ms is not None),
            selftest_decode_error=quantities.median(t.p50_decode for t in trials if t.p50_decode is not None),
            selftest_cpu_s_per_million=heaviest.cpu_s_per_million,
            ceiling_chunks_s=ceiling,
            loop_lag_p99_ms=quantities.median(t.loop_lag_p99_ms for t in trials if t.loop_lag_p99_ms is not None),
        ),
        passed=all(one.within_limits for one in trials),
    )
