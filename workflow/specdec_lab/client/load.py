"""How requests are offered (M24): closed loop with exactly N in flight, open loop with Poisson arrivals, and the limits
that bound both.

The next request of a closed loop is sent by the callback that ends the one before it: no task, no queue and no pool
stands between the two, so there are never more and, while prompts are left, never fewer than N under way (case A9).
Nothing is sent twice (case A7).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from ..records.spec import Deadlines
from . import clock
from .connection import Connection
from .exchange import Exchange
from .pool import Pool
from .reactor import Reactor

TICK_S = 0.01
"""Period of the tick that measures how late the loop is."""

DONE_GRACE_S = 0.1
"""How long after `[DONE]` the rest of the response is awaited before the connection is given up (case A7)."""

SWEEP_S = 0.05
"""Longest time between two looks at the deadlines: a deadline is kept within this."""

TOGETHER = 4
"""Answers read in a row while others stream; that takes about two milliseconds, by which a request may go out late."""

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
        reactor: Reactor,
        pool: Pool,
        requests: Sequence[bytes],
        deadlines: Deadlines,
        digest: Callable[[Exchange], None],
        *,
        give_up: Callable[[], str | None] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._reactor = reactor
        self._pool = pool
        self._requests = requests
        self._deadlines = deadlines
        self._digest = digest
        self._finished: deque[Exchange] = deque()
        self._give_up = give_up
        self._on_progress = on_progress
        self._under_way: dict[Exchange, Connection] = {}
        self._begun: dict[Exchange, float] = {}
        self._due: deque[float] = deque()
        self._next = 0
        self._closed_loop = True
        self._failures_in_row = 0
        self.exchanges: list[Exchange] = []
        self.ended = 0
        self.peak = 0
        self.started_at = 0.0
        self._offset = 0.0
        self.aborted: str | None = None
        """Why the cell was aborted; None when every request was offered."""
        self.lags: list[float] = []
        """How late each tick of the loop came, in seconds."""

    @property
    def stamped_by_kernel(self) -> bool:
        """Whether the kernel times what arrives on every connection."""
        return self._reactor.may_nap

    def closed(self, concurrency: int) -> None:
        """Keep `concurrency` requests under way until all were offered and have ended."""
        first = min(concurrency, len(self._requests))
        self._pool.prepare(first)
        self._closed_loop = True
        self._offset = clock.offset()
        self.started_at = perf_counter()
        for _ in range(first):
            self._offer(None)
        self._run()

    def poisson(self, rate: float, seed: int) -> None:
        """Offer the requests at the times of a Poisson process, however many are under way."""
        self._pool.prepare(1)
        self._closed_loop = False
        self._offset = clock.offset()
        self.started_at = perf_counter()
        self._due.extend(self.started_at + at for at in arrival_times(len(self._requests), rate, seed))
        self._run()

    def _run(self) -> None:
        limits = (self._deadlines.total_s, self._deadlines.first_byte_s, self._deadlines.idle_s)
        sweep_s = min(SWEEP_S, max(min(limits) / 10, TICK_S))
        now = perf_counter()
        tick, sweep, ask = now + TICK_S, now + sweep_s, now + ASK_S
        try:
            while self.aborted is None and (self._under_way or self._next < len(self._requests)):
                self._reactor.turn(min(tick, self._due[0]) if self._due else tick)
                now = perf_counter()
                while self._due and self._due[0] <= now:
                    self._offer(self._due.popleft())
                if len(self._finished) >= TOGETHER and self.stamped_by_kernel:
                    # The kernel times what arrives meanwhile. A few in a row cost less each: the code that reads an
                    # answer has left the processor's cache between two of them.
                    self._read_finished()
                if now < tick:
                    continue
                self.lags.append(now - tick)
                tick = now + TICK_S
                if now >= sweep:
                    sweep = now + sweep_s
                    self._sweep(now)
                if now >= ask:
                    ask = now + ASK_S
                    self._ask()
        finally:
            self._stop_all()
        while self._finished:
            self._read_finished()

    def _read_finished(self) -> None:
        for _ in range(min(TOGETHER, len(self._finished))):
            self._digest(self._finished.popleft())

    def _offer(self, due: float | None) -> None:
        exchange = Exchange(self._next, self._ended)
        self._next += 1
        exchange.scheduled_at = due
        self.exchanges.append(exchange)
        connection = self._pool.take()
        if connection is not None:
            self._under_way[exchange] = connection
            self.peak = max(self.peak, len(self._under_way))
            self._send(exchange, connection)
            return
        self._begun[exchange] = perf_counter()
        connection = self._pool.connect()
        self._under_way[exchange] = connection
        self.peak = max(self.peak, len(self._under_way))
        connection.opened = partial(self._opened, exchange)
        if not connection.connecting:
            self._opened(exchange, connection)

    def _opened(self, exchange: Exchange, connection: Connection) -> None:
        self._begun.pop(exchange, None)
        if connection.problem is not None:
            exchange.problem = connection.problem
            exchange.finish("connect_error", perf_counter())
        elif exchange.end is None:
            self._send(exchange, connection)

    def _send(self, exchange: Exchange, connection: Connection) -> None:
        exchange.offset = self._offset
        connection.send(exchange, self._requests[exchange.number])

    def _ended(self, exchange: Exchange) -> None:
        self._under_way.pop(exchange, None)
        self._finished.append(exchange)
        self.ended += 1
        if self.aborted is not None:
            return
        self._failures_in_row = 0 if exchange.looks_good() else self._failures_in_row + 1
        if self._failures_in_row >= self._deadlines.abort_after_failures:
            self.aborted = f"{self._failures_in_row} requests in a row failed"
        elif self._closed_loop and self._next < len(self._requests):
            self._offer(None)

    def _stop_all(self) -> None:
        if self.aborted is None and self._under_way:
            self.aborted = "interrupted"
        now = perf_counter()
        for exchange, connection in list(self._under_way.items()):
            connection.stop("aborted", now)
            exchange.finish("aborted", now)

    def _ask(self) -> None:
        self._offset = clock.offset()
        if self.stamped_by_kernel:
            self._read_finished()
        if self._on_progress is not None:
            self._on_progress(self.ended, len(self._requests))
        if self._give_up is not None and self.aborted is None:
            self.aborted = self._give_up()

    def _sweep(self, now: float) -> None:
        """Keep the deadlines, and look at what was only stored for a while."""
        limits = self._deadlines
        for exchange, connection in list(self._under_way.items()):
            latest = exchange.fetched[-1] if exchange.fetched else 0.0
            begun = exchange.framing.pieces and exchange.done_at is None
            if begun and now - latest < SWEEP_S and now - exchange.sent_at < limits.total_s:
                # An answer that is coming along, as nearly all are.
                continue
            if exchange in self._begun:
                if now - self._begun[exchange] >= self._pool.connect_timeout_s:
                    connection.close()
                    exchange.problem = "no answer to the connection attempt"
                    exchange.finish("connect_error", now)
            elif exchange.unread and now - latest >= SWEEP_S and exchange.look():
                connection.complete(exchange, latest)
            elif exchange.done_at is not None:
                if now - exchange.done_at >= DONE_GRACE_S:
                    connection.stop("done", now)
            elif now - exchange.sent_at >= limits.total_s:
                connection.stop("deadline_total", now)
            elif not exchange.body_began():
                if now - exchange.sent_at >= limits.first_byte_s:
                    connection.stop("deadline_first_byte", now)
            elif now - latest >= limits.idle_s:
                connection.stop("deadline_idle", now)
