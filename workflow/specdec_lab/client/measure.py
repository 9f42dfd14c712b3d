"""The client's front: one endpoint, one pool of connections, and cells measured over it (M22 to M24, B5).

with Client(Endpoint("http://127.0.0.1:8000", "model")) as client:
    client.measure(warmup_prompts, load)      # not recorded; opens the connections
    measured = client.measure(prompts, load)
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import httpx
from pydantic import JsonValue

from .. import quantities
from ..records.cell import ClientProof, Row, Summary
from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.spec import Deadlines, Load, Objective, Sampling
from . import clock
from .exchange import Exchange
from .load import Offer
from .plainchunk import KnownTexts
from .pool import Pool
from .proof import prove
from .reactor import Reactor
from .request import Endpoint, body, cap, wires
from .stream import row
from .transport import RecordingTransport


@dataclass(frozen=True)
class Measured:
    """One cell as the client saw it. `rows` are in the order in which the requests were sent."""

    rows: list[Row]
    summary: Summary
    client: ClientProof
    started_at: str
    """RFC 3339, UTC."""
    completed: bool
    aborted: str | None
    """Why the cell was aborted, when it was; the rows are then what was measured until then."""
    origin: float
    """The cell's start on the machine's monotonic clock (time.perf_counter): where `sent_s` counts from."""
    cpu_s: float
    """CPU time of this process for the cell: opening connections, sending, receiving and making the rows."""


class Client:
    """A client of one endpoint, for one thread at a time. Proxies in the environment are never used (case C8)."""

    def __init__(self, endpoint: Endpoint, *, connect_timeout_s: float = 10.0) -> None:
        self.endpoint = endpoint
        url = endpoint.url
        tls = httpx.create_ssl_context(trust_env=False) if url.scheme == "https" else None
        port = url.port or (443 if tls is not None else 80)
        self._reactor = Reactor()
        self._pool = Pool(self._reactor, url.host, port, tls, connect_timeout_s=connect_timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def http(self, *, timeout_s: float = 30.0) -> httpx.Client:
        """An httpx client for the same endpoint over the same connections; see `transport` for the times it gives."""
        base = self.endpoint.url.copy_with(raw_path=b"/")
        transport = RecordingTransport(self._reactor, self._pool)
        return httpx.Client(base_url=base, transport=transport, trust_env=False, timeout=timeout_s)

    def close(self) -> None:
        """Close every connection. Twice is harmless."""
        self._pool.close()
        self._reactor.close()

    def measure(
        self,
        prompts: Sequence[Prompt],
        load: Load,
        *,
        sampling: Sampling | None = None,
        deadlines: Deadlines | None = None,
        max_tokens: int | None = None,
        ignore_eos: bool = False,
        extra_body: Mapping[str, JsonValue] | None = None,
        objective: Objective | None = None,
        on_progress: Callable[[int, int, int], None] | None = None,
        give_up: Callable[[], str | None] | None = None,
        selftest: ClientProof | None = None,
    ) -> Measured:
        """Send each prompt exactly once under this load and return one row for each that was sent.

        Prompts are never repeated to fill a number: who wants more requests gives more prompts. `on_progress(ended,
        all, tokens)` and `give_up()` are called about five times a second and must be quick; `tokens` are those of the
        answers read so far, which is 0 until the end where answers are read only then (TLS, and systems whose kernel
        gives no times). A reason from `give_up` (the server died) aborts the cell, as does a run of failures. Rows of
        an aborted cell are kept, the summary then says `completed: false`. `selftest`: what the self-test found on this
        machine; goes into the cell's proof.

        UserError when nothing listens at the endpoint, when the load is neither a concurrency nor a rate, or when an
        extra field may not be set.
        """
        if (load.concurrency is None) == (load.rate is None):
            raise UserError(
                "A load is either a concurrency or a rate.", place="load", fix="Give exactly one.", code="bad_args"
            )
        if (load.concurrency is not None and load.concurrency < 1) or (load.rate is not None and not load.rate > 0):
            raise UserError("A load must be positive.", place="load", fix="Give 1 or more.", code="bad_args")
        bodies = [
            body(
                self.endpoint,
                prompt,
                sampling=sampling or Sampling(),
                max_tokens=max_tokens,
                ignore_eos=ignore_eos,
                extra=extra_body,
            )
            for prompt in prompts
        ]
        requests = wires(self.endpoint, bodies)
        started_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made: dict[int, Row] = {}
        tokens = 0
        known = KnownTexts()

        def digest(exchange: Exchange) -> None:
            nonlocal tokens
            asked = bodies[exchange.number]
            stamps = clock.arrivals(exchange)
            one = row(
                exchange,
                stamps,
                prompts[exchange.number],
                started_at=offer.started_at,
                max_tokens=int(asked["max_tokens"]) if ignore_eos else None,
                cap=cap(asked),
                known=known,
            )
            made[exchange.number] = one
            tokens += one.completion_tokens or 0
            exchange.let_go()

        def progress(ended: int, of: int) -> None:
            if on_progress is not None:
                on_progress(ended, of, tokens)

        offer = Offer(
            self._reactor,
            self._pool,
            requests,
            deadlines or Deadlines(),
            digest,
            give_up=give_up,
            on_progress=progress,
        )
        collecting = gc.isenabled()
        gc.disable()
        cpu = time.process_time()
        try:
            if load.rate is not None:
                offer.poisson(load.rate, load.seed)
            else:
                offer.closed(load.concurrency or 1)
        finally:
            cpu_s = time.process_time() - cpu
            if collecting:
                gc.enable()
        progress(offer.ended, len(requests))
        rows = [made[number] for number in sorted(made)]
        completed = offer.aborted is None
        return Measured(
            rows=rows,
            summary=quantities.summarise(
                rows, load=load, objective=objective, completed=completed, peak_in_flight=offer.peak
            ),
            client=prove(offer, rows, cpu_s=cpu_s, selftest=selftest),
            started_at=started_at,
            completed=completed,
            aborted=offer.aborted,
            origin=offer.started_at,
            cpu_s=cpu_s,
        )
