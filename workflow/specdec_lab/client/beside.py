"""The client and the bare one beside each other, on the same server, in one run: what exactness and cost are judged by.

On a machine that others use too, only such pairs mean something; take the best of a few.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from .. import quantities
from ..records.prompt import Prompt
from ..records.spec import Load, Sampling
from . import bare
from .measure import Client
from .paced import PacedServer, Sent
from .request import Endpoint, body, wires

_TOKEN = b'"content":" tok'


@dataclass(frozen=True)
class Seen:
    """What one client saw of one run. Errors are client minus the server's log, in milliseconds."""

    ttft_ms: list[float]
    """In the order of sending; the first `concurrency` were sent at once."""
    transit_ms: list[float]
    """First token's arrival minus its sending: the way through the kernel, and what the stamp itself is wrong by."""
    decode: list[float]
    """Relative error of each decode rate."""
    cpu_s_per_million: float

    def wave(self, concurrency: int) -> float:
        """Median TTFT error of the requests that were sent at once."""
        return quantities.median(self.ttft_ms[:concurrency]) or 0.0

    def later(self, concurrency: int, q: float) -> float:
        """A percentile of the TTFT error of all others."""
        return quantities.percentile(self.ttft_ms[concurrency:], q) or 0.0

    @property
    def decode_p50(self) -> float:
        """Median of the decode rates' errors."""
        return quantities.median(self.decode) or 0.0


def ours(server: PacedServer, prompts: Sequence[Prompt], concurrency: int) -> Seen:
    """The client of this package, making the rows included."""
    server.log()
    with Client(Endpoint(server.base_url, "paced")) as client:
        measured = client.measure(prompts, Load(concurrency=concurrency))
    if measured.summary.failed:
        raise RuntimeError(f"{measured.summary.failed} requests failed: {measured.rows[0].message}")
    log = server.log()
    rows = measured.rows
    chunks = sum(len(row.arrivals) for row in rows)
    return Seen(
        ttft_ms=[1e3 * ((row.ttft_s or 0.0) - _ttft(log[row.id])) for row in rows],
        transit_ms=[
            1e3 * (measured.origin + (row.sent_s or 0.0) + (row.ttft_s or 0.0) - log[row.id].at[0]) for row in rows
        ],
        decode=[abs((row.decode_tok_s or 0.0) / _decode(log[row.id]) - 1) for row in rows],
        cpu_s_per_million=1e6 * measured.cpu_s / chunks,
    )


def the_bare_one(server: PacedServer, prompts: Sequence[Prompt], concurrency: int) -> Seen:
    """The client that only stamps and stores. Its times are worked out afterwards and cost it nothing."""
    server.log()
    endpoint = Endpoint(server.base_url, "paced")
    requests = wires(endpoint, [body(endpoint, prompt, sampling=Sampling()) for prompt in prompts])
    cpu = time.process_time()
    answers = bare.run(endpoint.url.host, endpoint.url.port or 80, requests, concurrency)
    cpu = time.process_time() - cpu
    log = server.log()
    ttft, transit, decode, chunks = [], [], [], 0
    for prompt, (sent, reads) in zip(prompts, answers, strict=True):
        times = [at for at, data in reads for _ in range(data.count(_TOKEN))]
        chunks += len(times)
        known = log[prompt.id]
        ttft.append(1e3 * (times[0] - sent - _ttft(known)))
        transit.append(1e3 * (times[0] - known.at[0]))
        decode.append(abs((known.tokens - 1) / (times[-1] - times[0]) / _decode(known) - 1))
    return Seen(ttft_ms=ttft, transit_ms=transit, decode=decode, cpu_s_per_million=1e6 * cpu / chunks)


def _ttft(sent: Sent) -> float:
    return sent.at[0] - sent.received


def _decode(sent: Sent) -> float:
    return (sent.tokens - 1) / (sent.at[-1] - sent.at[0])
