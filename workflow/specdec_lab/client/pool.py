"""Open connections to one endpoint, and the one of its addresses that answers (cases A9, C8)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from ..records.errors import UserError
from .connection import Connection
from .reactor import Reactor

FRESH_S = 1.0
"""An idle connection older than this is replaced before it is used: servers close idle ones, often after five seconds,
and a request that meets such a close would fail without a fault of the server."""

AT_ONCE = 128
"""Handshakes under way at one time while connections are prepared; servers' queues are often this long."""


@dataclass(frozen=True)
class Address:
    """One address of the endpoint."""

    family: int
    host: str
    port: int


SEEN_S = 0.05
"""A connection that is still open this long after its answer was kept by the server."""

AT_ONCE_CLOSED_S = 0.5
"""A connection closed within this time of its answer was closed because of the answer, not for being idle."""


class Pool:
    """There is no upper limit here: the load decides how many connections there are (case A9)."""

    def __init__(
        self, reactor: Reactor, host: str, port: int, tls: ssl.SSLContext | None, *, connect_timeout_s: float
    ) -> None:
        self._reactor = reactor
        self._host = host
        self._port = port
        self._tls = tls
        self.connect_timeout_s = connect_timeout_s
        self._address: Address | None = None
        self._idle: list[Connection] = []
        self.keeps: bool | None = None
        """Whether the server keeps a connection after an answer; None until it was seen.

        Some announce `Keep-Alive` and close after every streamed answer all the same (llama.cpp's does). In a closed
        loop the next request would be on its way before the close arrives, and be lost. So no connection is used a
        second time before one was seen to stay open, and never if one was seen to be closed.
        """

    def find_address(self) -> Address:
        """The first of the host's addresses that takes a connection, found once and kept (case C8).

        For `localhost` both loopback addresses are tried, whichever way it resolves, so that a server on one of them is
        found without a delay in any measured request. UserError when none answers.
        """
        if self._address is not None:
            return self._address
        problems = []
        for address in self._candidates():
            connection = self._begin(address)
            self._wait([connection])
            if connection.is_open:
                self._address = address
                self._idle.append(connection)
                return address
            problems.append(f"{address.host}: {connection.problem}")
        if self._tls is not None and any("refused" not in problem for problem in problems):
            raise UserError(
                f"TLS with {self._host}:{self._port} failed ({'; '.join(problems)}).",
                place=f"https://{self._host}:{self._port}",
                fix="Write http:// if the server speaks plain HTTP; otherwise its certificate must be one that a "
                "browser would take.",
                code="connect_error",
            )
        raise UserError(
            f"Nothing takes connections on {self._host}:{self._port} ({'; '.join(problems)}).",
            place=f"{self._host}:{self._port}",
            fix="Start the server, or correct the base URL.",
            code="connect_error",
        )

    def _candidates(self) -> list[Address]:
        found: list[Address] = []
        try:
            for family, _, _, _, where in socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM):
                found.append(Address(family, str(where[0]), self._port))
        except OSError as error:
            if self._host != "localhost":
                raise UserError(
                    f"The host name {self._host} cannot be resolved: {error}.",
                    place=f"{self._host}:{self._port}",
                    fix="Check the base URL.",
                    code="connect_error",
                ) from error
        if self._host == "localhost":
            found += [Address(socket.AF_INET, "127.0.0.1", self._port), Address(socket.AF_INET6, "::1", self._port)]
        return list(dict.fromkeys(found))

    def _begin(self, address: Address) -> Connection:
        connection = Connection(self._reactor, address.family, (address.host, address.port), self._tls, self._host)
        connection.free = self._freed
        connection.dropped = self._dropped
        return connection

    def _freed(self, connection: Connection) -> None:
        if self.keeps is False:
            connection.close()
        else:
            self._idle.append(connection)

    def _dropped(self, connection: Connection) -> None:
        """The server closed a connection that had answered before, while it was idle or before it answered again."""
        if connection.exchange is not None or perf_counter() - connection.idle_since <= AT_ONCE_CLOSED_S:
            self.keeps = False

    def _usable(self, connection: Connection, now: float) -> bool:
        if not connection.is_open or now - connection.idle_since > FRESH_S:
            return False
        if connection.answers and self.keeps is None and now - connection.idle_since >= SEEN_S:
            self.keeps = True
        return not connection.answers or self.keeps is True

    def _wait(self, begun: Sequence[Connection]) -> None:
        """Until each of these stands or has failed; the timeout is a failure."""
        limit = perf_counter() + self.connect_timeout_s
        while any(connection.connecting for connection in begun) and perf_counter() < limit:
            self._reactor.turn(min(limit, perf_counter() + 0.05))
        for connection in begun:
            if connection.connecting:
                connection.problem = "no answer"
                connection.close()

    def connect(self) -> Connection:
        """Begin a new connection, for its caller alone."""
        return self._begin(self.find_address())

    def prepare(self, wanted: int) -> None:
        """Have at least that many fresh idle connections, so that no measured request waits for a handshake.

        Fewer when the server takes no more; each request that lacks one then tries by itself, and says why it failed.
        """
        self._reactor.turn(0.0)
        self._see()
        now = perf_counter()
        usable = [connection for connection in self._idle if self._usable(connection, now)]
        for connection in self._idle:
            if connection not in usable:
                connection.close()
        self._idle[:] = usable
        self.find_address()
        while len(self._idle) < wanted:
            begun = [self.connect() for _ in range(min(wanted - len(self._idle), AT_ONCE))]
            self._wait(begun)
            self._idle += [connection for connection in begun if connection.is_open]
            if not all(connection.is_open for connection in begun):
                return

    def _see(self) -> None:
        """Wait the moment it takes to see whether the server keeps a connection, if one has answered lately."""
        answered = [connection for connection in self._idle if connection.answers and connection.is_open]
        if self.keeps is not None or not answered:
            return
        limit = max(connection.idle_since for connection in answered) + SEEN_S
        while self.keeps is None and perf_counter() < limit:
            self._reactor.turn(limit)

    def take(self) -> Connection | None:
        """An idle connection that may be used (see `keeps`); None when there is none."""
        now = perf_counter()
        for connection in reversed(self._idle):
            if self._usable(connection, now):
                self._idle.remove(connection)
                return connection
            if self.keeps is not None or not connection.is_open:
                self._idle.remove(connection)
                connection.close()
        return None

    def close(self) -> None:
        """Close the idle connections; those under a request are the load's to end."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
