"""A connection that stamps and stores: the asyncio protocol under the measured requests, and the pool that opens it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, cast

from ..records.errors import UserError
from .exchange import Exchange

DONE_GRACE_S = 0.1
"""How long after `[DONE]` the rest of the response is awaited before the connection is given up (case A7)."""

FRESH_S = 1.0
"""An idle connection older than this is replaced before it is used: servers close idle ones, often after five seconds,
and a request that meets such a close would fail without a fault of the server."""


NOTICE_S = 0.002
"""Between two cells nothing runs here, so the closes that servers sent meanwhile are taken note of first."""


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    __slots__ = ("_socket", "exchange", "idle_since", "on_free", "open", "transport")

    def __init__(self, on_free: Callable[[Connection], None], sock: socket.socket | None) -> None:
        self.on_free = on_free
        self.transport: asyncio.Transport | None = None
        self.exchange: Exchange | None = None
        self.open = False
        self.idle_since = 0.0
        self._socket = sock

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
        self.transport = cast(asyncio.Transport, transport)
        self.open = True
        self.idle_since = perf_counter()

    def data_received(self, data: bytes) -> None:
        """The hot path: one stamp, two appends, one look at the read's end."""
        now = perf_counter()
        exchange = self.exchange
        if exchange is None:
            self.close()
            return
        exchange.stamps.append(now)
        exchange.reads.append(data)
        if exchange.may_end(data) and exchange.look():
            self.complete(exchange, now)

    def eof_received(self) -> bool:
        """The server will send no more."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone; a request on it ends with it."""
        now = perf_counter()
        self.open = False
        exchange = self.exchange
        if exchange is None:
            return
        self.exchange = None
        exchange.look()
        exchange.framing.end_of_stream()
        if exchange.framing.complete:
            exchange.finish("complete", now)
        elif exchange.done_at is not None:
            exchange.finish("done", now)
        else:
            exchange.problem = str(exc) if exc is not None else None
            exchange.finish("closed" if exc is None else "reset", now)

    # What the load calls.

    def send(self, exchange: Exchange, request: bytes) -> None:
        """Send the request now. `sent_at` is taken just before the kernel gets it."""
        self.exchange = exchange
        transport = self.transport
        sock = self._socket
        if transport is None:
            raise RuntimeError("the connection was never made")
        exchange.sent_at = perf_counter()
        if sock is not None and not transport.get_write_buffer_size():
            try:
                sent = sock.send(request)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                transport.abort()
                return
            request = request[sent:]
        if request:
            transport.write(request)

    def stop(self, end: Any, now: float) -> None:
        """End the request under way for a reason of ours, and drop the connection."""
        exchange = self.exchange
        self.exchange = None
        self.close()
        if exchange is not None:
            exchange.look()
            exchange.finish("complete" if exchange.framing.complete else end, now)

    def close(self) -> None:
        """Drop the connection at once."""
        self.open = False
        if self.transport is not None:
            self.transport.abort()

    def complete(self, exchange: Exchange, now: float) -> None:
        """The answer is over; the connection takes another request if the server keeps it."""
        self.exchange = None
        self.idle_since = now
        if not exchange.framing.keep_alive or exchange.framing.broken is not None:
            self.close()
        if self.open:
            self.on_free(self)
        exchange.finish("complete", now)


@dataclass(frozen=True)
class Address:
    """One address of the endpoint that took a connection."""

    family: int
    host: str
    port: int


class Pool:
    """Open connections to one endpoint. There is no upper limit here: the load decides how many there are (case A9)."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, *, connect_timeout_s: float = 10.0) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._timeout_s = connect_timeout_s
        self._address: Address | None = None
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()

    async def find_address(self) -> Address:
        """The first of the host's addresses that takes a connection, found once and kept (case C8).

        For `localhost` both loopback addresses are tried, whichever way it resolves, so that a server on one of them is
        found without a delay in any measured request. UserError when none answers.
        """
        if self._address is not None:
            return self._address
        loop = asyncio.get_running_loop()
        candidates: list[Address] = []
        try:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
            candidates += [Address(family, info[0], self._port) for family, _, _, _, info in found]  # type: ignore[arg-type]
        except OSError as error:
            if self._host != "localhost":
                raise UserError(
                    f"The host name {self._host} cannot be resolved: {error}.",
                    place=f"{self._host}:{self._port}",
                    fix="Check the base URL.",
                    code="connect_error",
                ) from error
        if self._host == "localhost":
            candidates += [
                Address(socket.AF_INET, "127.0.0.1", self._port),
                Address(socket.AF_INET6, "::1", self._port),
            ]
        problems = []
        for address in dict.fromkeys(candidates):
            try:
                connection = await self._connect(address)
            except (OSError, TimeoutError) as error:
                problems.append(f"{address.host}: {error or 'no answer'}")
                continue
            self._address = address
            self._idle.append(connection)
            return address
        raise UserError(
            f"Nothing takes connections on {self._host}:{self._port} ({'; '.join(problems)}).",
            place=f"{self._host}:{self._port}",
            fix="Start the server, or correct the base URL.",
            code="connect_error",
        )

    async def _connect(self, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        sock = socket.socket(address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(self._timeout_s):
                await loop.sock_connect(sock, (address.host, address.port))
                direct = sock if self._tls is None else None
                _, connection = await loop.create_connection(
                    lambda: Connection(self._free, direct),
                    sock=sock,
                    ssl=self._tls,
                    server_hostname=self._host if self._tls is not None else None,
                )
        except BaseException:
            sock.close()
            raise
        self._all.add(connection)
        return connection

    async def connect(self) -> Connection:
        """A new connection, for its caller alone; OSError or TimeoutError when it cannot be made."""
        return await self._connect(await self.find_address())

    async def prepare(self, wanted: int) -> None:
        """Have at least that many fresh idle connections, so that no measured request waits for a handshake.

        Fewer when the server takes no more; each request that lacks one then tries by itself, and says why it failed.
        """
        await asyncio.sleep(NOTICE_S)
        now = perf_counter()
        for connection in self._idle:
            if now - connection.idle_since > FRESH_S:
                connection.close()
        self._idle = [c for c in self._idle if c.open]
        self._all = {c for c in self._all if c.open}
        await self.find_address()
        while len(self._idle) < wanted:
            batch = min(wanted - len(self._idle), 64)
            made = await asyncio.gather(*(self.connect() for _ in range(batch)), return_exceptions=True)
            good = [c for c in made if isinstance(c, Connection)]
            self._idle += good
            if len(good) < batch:
                return

    def take(self) -> Connection | None:
        """An idle connection that is fresh enough; None when there is none."""
        now = perf_counter()
        while self._idle:
            connection = self._idle.pop()
            if connection.open and now - connection.idle_since <= FRESH_S:
                return connection
            connection.close()
        return None

    def _free(self, connection: Connection) -> None:
        self._idle.append(connection)

    async def close(self) -> None:
        """Close every connection."""
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._idle.clear()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)
