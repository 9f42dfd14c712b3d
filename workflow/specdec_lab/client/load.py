"""How requests are offered (M24): closed loop with exactly N in flight, open loop with Poisson arrivals, and the limits
that bound both.

The next request of a closed loop is sent by the callback that ends the one before it: no task, no queue and no pool
stands between the two, so there are never more and, while prompts are left, never fewer than N under way (case A9).
Nothing is sent twice (case A7).
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Sequence
from time import perf_counter

from ..records.spec import Deadlines
from .connection import DONE_GRACE_S, Connection, Pool
from .exchange import Exchange

TICK_S = 0.01
"""Period of the tick that measures how late the event loop is."""

SWEEP_S = 0.05
"""Longest time between two looks at the deadlines: a deadline is kept within this."""

ASK_S = 0.2
"""How often the caller is asked whether to give up, and told of the progress."""


def arrival_times(n: int, rate: float, seed: int) -> list[float]:
    """Due times of n Poisson arrivals, in seconds, the first at 0: gaps are exponential with mean 1 / rate."""
    draw = random.Random(seed)
    times = [0.0]
    while len(times) < n:
        times.append(times[-1] + draw.expovariate(rate))
    return times[:n]


def longest_s(n: int, *, concurrency: int | None, rate: float | None, deadlines: Deadlines, connect_s: float) -> float:
    """The time that a cell of n requests cannot exceed: each turn of the closed loop is bounded by the total deadline.

    Open loop: the expected time of the last arrival and one total deadline after it.
    """
    one = deadlines.total_s + connect_s + SWEEP_S
    if rate is not None:
        return n / rate + one
    return math.ceil(n / (concurrency or 1)) * one


class Offer:
    """The requests of one cell: sends them, ends them at their deadlines, and stops after a run of failures."""

    def __init__(
        self,
        pool: Pool,
        requests: Sequence[bytes],
        deadlines: Deadlines,
        *,
        give_up: Callable[[], str | None] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._pool = pool
        self._requests = requests
        self._deadlines = deadlines
        self._give_up = give_up
        self._on_progress = on_progress
        self._under_way: dict[Exchange, Connection | None] = {}
        self._connecting: set[asyncio.Task[None]] = set()
        self._next = 0
        self._closed_loop = True
        self._failures_in_row = 0
        self._over = asyncio.Event()
        self.exchanges: list[Exchange] = []
        self.ended = 0
        self.peak = 0
        self.started_at = 0.0
        self.aborted: str | None = None
        """Why the cell was aborted; None when every request was offered."""
        self.lags: list[float] = []
        """How late each tick of the event loop came, in seconds."""

    async def closed(self, concurrency: int) -> None:
        """Keep `concurrency` requests under way until all were offered and have ended."""
        await self._pool.prepare(min(concurrency, len(self._requests)))
        self._closed_loop = True
        await self._run(self._fill(concurrency))

    async def poisson(self, rate: float, seed: int) -> None:
        """Offer the requests at the times of a Poisson process, however many are under way."""
        await self._pool.prepare(1)
        self._closed_loop = False
        await self._run(self._arrive(arrival_times(len(self._requests), rate, seed)))

    async def _run(self, offering: asyncio.Task[None]) -> None:
        ticking = asyncio.create_task(self._tick())
        try:
            await self._over.wait()
        finally:
            for task in (offering, ticking, *self._connecting):
                task.cancel()
            self._stop_all()
            await asyncio.gather(offering, ticking, *self._connecting, return_exceptions=True)

    def _fill(self, concurrency: int) -> asyncio.Task[None]:
        self.started_at = perf_counter()
        if not self._requests:
            self._over.set()
        for _ in range(min(concurrency, len(self._requests))):
            self._offer(None)
        return asyncio.create_task(asyncio.sleep(0))

    def _arrive(self, times: Sequence[float]) -> asyncio.Task[None]:
        self.started_at = start = perf_counter()
        if not self._requests:
            self._over.set()

        async def arrive() -> None:
            for due in times:
                wait = start + due - perf_counter()
                if wait > 0:
                    await asyncio.sleep(wait)
                self._offer(start + due)

        return asyncio.create_task(arrive())

    def _offer(self, due: float | None) -> None:
        number = self._next
        self._next += 1
        exchange = Exchange(number, self._ended)
        exchange.scheduled_at = due
        self.exchanges.append(exchange)
        connection = self._pool.take()
        self._under_way[exchange] = connection
        self.peak = max(self.peak, len(self._under_way))
        if connection is not None:
            connection.send(exchange, self._requests[number])
            return
        task = asyncio.create_task(self._connect_and_send(exchange))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect_and_send(self, exchange: Exchange) -> None:
        try:
            connection = await self._pool.connect()
        except (OSError, TimeoutError) as error:
            exchange.problem = str(error) or "no answer to the connection attempt"
            exchange.finish("connect_error", perf_counter())
            return
        if exchange.end is not None:
            connection.close()
            return
        self._under_way[exchange] = connection
        connection.send(exchange, self._requests[exchange.number])

    def _ended(self, exchange: Exchange) -> None:
        self._under_way.pop(exchange, None)
        self.ended += 1
        if self.aborted is None:
            self._failures_in_row = 0 if exchange.looks_good() else self._failures_in_row + 1
            if self._failures_in_row >= self._deadlines.abort_after_failures:
                self._abort(f"{self._failures_in_row} requests in a row failed")
        if self.aborted is None and self._closed_loop and self._next < len(self._requests):
            self._offer(None)
        if not self._under_way and (self.aborted is not None or self._next >= len(self._requests)):
            self._over.set()

    def _abort(self, reason: str) -> None:
        self.aborted = reason
        self._over.set()

    def _stop_all(self) -> None:
        now = perf_counter()
        for exchange, connection in list(self._under_way.items()):
            if connection is not None:
                connection.stop("aborted", now)
            exchange.finish("aborted", now)

    async def _tick(self) -> None:
        """Measure the loop's lateness at every tick; sweep the deadlines and ask the caller now and then."""
        limits = (self._deadlines.total_s, self._deadlines.first_byte_s, self._deadlines.idle_s)
        sweep_s = min(SWEEP_S, max(min(limits) / 10, TICK_S))
        swept = asked = perf_counter()
        while True:
            due = perf_counter() + TICK_S
            await asyncio.sleep(TICK_S)
            now = perf_counter()
            self.lags.append(max(now - due, 0.0))
            if now - swept >= sweep_s:
                swept = now
                self._sweep(now)
            if now - asked >= ASK_S:
                asked = now
                if self._on_progress is not None:
                    self._on_progress(self.ended, len(self._requests))
                reason = self._give_up() if self._give_up is not None else None
                if reason is not None:
                    self._abort(reason)

    def _sweep(self, now: float) -> None:
        limits = self._deadlines
        for exchange, connection in list(self._under_way.items()):
            if connection is None:
                continue
            stamps = exchange.stamps
            if exchange.unread and now - stamps[-1] >= SWEEP_S and exchange.look():
                connection.complete(exchange, stamps[-1])
            elif exchange.done_at is not None:
                if now - exchange.done_at >= DONE_GRACE_S:
                    connection.stop("done", now)
            elif now - exchange.sent_at >= limits.total_s:
                connection.stop("deadline_total", now)
            elif not exchange.framing.pieces and not exchange.body_began():
                if now - exchange.sent_at >= limits.first_byte_s:
                    connection.stop("deadline_first_byte", now)
            elif now - stamps[-1] >= limits.idle_s:
                connection.stop("deadline_idle", now)
