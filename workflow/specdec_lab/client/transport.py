"""The client as an httpx transport: any httpx.Client over the same connections, with the times beside the answer.

The load does not pass through httpx for each request, for that would cost as much as the stream itself; it takes the
same way below it. `extensions` of a response hold `sent` and `arrivals` (one time for each piece of the body), on the
clock of time.perf_counter.
"""

from __future__ import annotations

from time import perf_counter

import httpx

from . import clock
from .exchange import Exchange
from .pool import Pool
from .reactor import Reactor
from .request import wire


class RecordingTransport(httpx.BaseTransport):
    """Sends one request at a time over a pool, and returns the response when it is whole."""

    def __init__(self, reactor: Reactor, pool: Pool) -> None:
        self._reactor = reactor
        self._pool = pool

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The whole response. httpx.ReadTimeout after the request's own read timeout, counted from its sending;
        httpx.RemoteProtocolError when the answer is cut short; UserError when nothing listens."""
        request.read()
        self._pool.prepare(1)
        connection = self._pool.take()
        if connection is None:
            raise httpx.ConnectError("the server closed the connection as soon as it was made", request=request)
        exchange = Exchange(0, lambda _: None)
        exchange.offset = clock.offset()
        connection.send(exchange, wire(request))
        allowed = request.extensions.get("timeout", {}).get("read")
        limit = float("inf") if allowed is None else exchange.sent_at + allowed
        while exchange.end is None and perf_counter() < limit:
            self._reactor.turn(min(limit, perf_counter() + 0.05))
            if exchange.end is None and exchange.unread and exchange.look():
                connection.complete(exchange, perf_counter())
        if exchange.end is None:
            connection.stop("deadline_total", perf_counter())
            raise httpx.ReadTimeout(f"no whole answer within {allowed} s", request=request)
        exchange.look()
        framing = exchange.framing
        if not framing.complete or framing.status is None:
            raise httpx.RemoteProtocolError(framing.broken or exchange.problem or "cut short", request=request)
        times = clock.arrivals(exchange)
        return httpx.Response(
            framing.status,
            headers=[pair for pair in framing.headers if pair[0].lower() != b"transfer-encoding"],
            content=b"".join(framing.pieces),
            extensions={"sent": exchange.sent_at, "arrivals": [times[index] for index in framing.piece_reads]},
        )
