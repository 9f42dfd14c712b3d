"""One connection to the endpoint: connects without blocking, sends a request, stamps and stores what comes back."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Callable
from time import perf_counter

from . import clock
from .clock import ANCILLARY_BYTES
from .exchange import LAST_CHUNK, SMALL_READ, End, Exchange
from .reactor import READ, WRITE, Reactor

READ_BYTES = 1 << 13
"""Most bytes taken by one read; what is left comes with the next one at once."""

_CR = 0x0D

_BUFFER = bytearray(READ_BYTES)
_VIEW = memoryview(_BUFFER)
_BUFFERS = [_BUFFER]
"""Where every read lands before it is stored: one place that stays in the cache. A new object a read costs more."""


class Connection:
    """Begins to connect when it is made; takes one request at a time."""

    __slots__ = (
        "_context",
        "_host",
        "_out",
        "_reactor",
        "_reading",
        "_secure",
        "_sock",
        "answers",
        "connecting",
        "dropped",
        "exchange",
        "free",
        "idle_since",
        "is_open",
        "number",
        "opened",
        "problem",
    )

    def __init__(
        self,
        reactor: Reactor,
        family: int,
        address: tuple[str, int],
        tls: ssl.SSLContext | None,
        server_name: str,
    ) -> None:
        self._reactor = reactor
        self._context = tls
        self._host = server_name
        self._secure: ssl.SSLSocket | None = None
        self._out = b""
        self.connecting = True
        self.problem: str | None = None
        """Why no connection could be made."""
        self.opened: Callable[[Connection], None] | None = None
        """Called once, when the connection stands or has failed."""
        self.free: Callable[[Connection], None] | None = None
        """Called when the connection can take another request."""
        self.dropped: Callable[[Connection], None] | None = None
        """Called when the server closes it after an answer: idle, or before the first byte of the next one."""
        self.answers = 0
        """Complete answers so far."""
        self.exchange: Exchange | None = None
        self.is_open = False
        self.idle_since = 0.0
        self._sock = socket.socket(family, socket.SOCK_STREAM)
        self._reading: Callable[[], None] = self._unasked
        self.number = self._sock.fileno()
        self._sock.setblocking(False)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None or not clock.ask_for_stamps(self._sock):
            reactor.may_nap = False
        problem = self._sock.connect_ex(address)
        if problem in (0, errno.EINPROGRESS):
            reactor.watch(self.number, WRITE, self._connected)
        else:
            self._end_of_connecting(os.strerror(problem))

    def _end_of_connecting(self, problem: str | None) -> None:
        self.connecting = False
        self.problem = problem
        if problem is not None:
            self.close()
        if self.opened is not None:
            self.opened(self)

    def _connected(self) -> None:
        problem = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if problem:
            self._end_of_connecting(os.strerror(problem))
        elif self._context is None:
            self._ready()
        else:
            self._secure = self._context.wrap_socket(
                self._sock, server_hostname=self._host, do_handshake_on_connect=False
            )
            self._sock = self._secure
            self._handshake()

    def _handshake(self) -> None:
        assert self._secure is not None
        try:
            self._secure.do_handshake()
        except ssl.SSLWantReadError:
            self._reactor.watch(self.number, READ, self._handshake)
        except ssl.SSLWantWriteError:
            self._reactor.watch(self.number, WRITE, self._handshake)
        except OSError as error:
            self._end_of_connecting(str(error))
        else:
            self._ready()

    def _ready(self) -> None:
        self.is_open = True
        self.idle_since = perf_counter()
        self._reactor.watch(self.number, READ, self._unasked)
        self._end_of_connecting(None)

    def send(self, exchange: Exchange, request: bytes) -> None:
        """Send the request now. `sent_at` is taken just before the kernel gets it."""
        self.exchange = exchange
        self._out = request
        self._reading = self._reader(exchange) if self._secure is None else self._decrypt
        self._reactor.answer(self.number, self._reading)
        exchange.sent_at = perf_counter()
        self._flush()

    def _flush(self) -> None:
        try:
            sent = self._sock.send(self._out)
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            sent = 0
        except OSError:
            # The reading side says what happened; until it does, the deadlines bound the request.
            self._out = b""
            return
        self._out = self._out[sent:]
        if self._out:
            self._reactor.watch(self.number, READ | WRITE, self._both)
        elif sent == 0:
            self._reactor.watch(self.number, READ, self._reading)

    def _both(self) -> None:
        """The request was too long for the kernel at once: send on, and take what comes meanwhile."""
        self._flush()
        if not self._out:
            self._reactor.watch(self.number, READ, self._reading)
        self._reading()

    def _reader(self, exchange: Exchange) -> Callable[[], None]:
        """What takes a read of this exchange: the hot path.

        One system call that brings the kernel's receive time too, and a glance at the read's end. A function made for
        the one exchange, so that it holds at hand what it would else look up at each read.
        """
        receive, reactor = self._sock.recvmsg_into, self._reactor
        body, kernel = exchange.body, exchange.kernel
        note_size, note_time = exchange.sizes.append, exchange.fetched.append

        def readable() -> None:
            nonlocal body, kernel
            try:
                size, ancillary, _, _ = receive(_BUFFERS, ANCILLARY_BYTES)
            except BlockingIOError:
                return
            except OSError as error:
                self._lost(str(error))
                return
            if not size:
                self._lost(None)
                return
            body += _VIEW[:size]
            note_size(size)
            note_time(reactor.now)
            if ancillary:
                kernel += ancillary[0][2]
            # An event ends in two line feeds and its HTTP chunk's line end; the end of a body has a line end there.
            if (size < SMALL_READ or _BUFFER[size - 4] == _CR or exchange.watchful) and exchange.over(
                bytes(_VIEW[:size])
            ):
                self.complete(exchange, perf_counter())

        return readable

    def _unasked(self) -> None:
        """Readable between two requests: closed by the server, or bytes that belong to nothing."""
        self._lost(None)

    def _decrypt(self) -> None:
        """As above, for TLS: the stamp is when the bytes were fetched."""
        while self.is_open:
            try:
                data = self._sock.recv(READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return
            except ssl.SSLEOFError:
                data = b""
            except OSError as error:
                self._lost(str(error))
                return
            exchange = self.exchange
            if not data or exchange is None:
                self._lost(None)
                return
            exchange.record(data, perf_counter())
            if (exchange.watchful or len(data) < SMALL_READ or data.endswith(LAST_CHUNK)) and exchange.over(data):
                self.complete(exchange, perf_counter())

    def complete(self, exchange: Exchange, now: float) -> None:
        """The answer is over; the connection takes another request if the server keeps it."""
        self.exchange = None
        self._reading = self._unasked
        self._reactor.answer(self.number, self._reading)
        self.answers += 1
        self.idle_since = now
        if not exchange.framing.keep_alive or exchange.framing.broken is not None or self._out:
            self.close()
        elif self.free is not None:
            self.free(self)
        exchange.finish("complete", now)

    def _lost(self, problem: str | None) -> None:
        """The server closed or reset the connection; a request on it ends with it."""
        now = perf_counter()
        exchange = self.exchange
        if self.answers and self.dropped is not None and (exchange is None or not exchange.sizes):
            self.dropped(self)
        self.exchange = None
        self.close()
        if exchange is None:
            return
        exchange.look()
        exchange.framing.end_of_stream()
        exchange.problem = problem
        if exchange.framing.complete:
            exchange.finish("complete", now)
        elif exchange.done_at is not None:
            exchange.finish("done", now)
        else:
            exchange.finish("closed" if problem is None else "reset", now)

    def stop(self, end: End, now: float) -> None:
        """End the request under way for a reason of ours, and drop the connection."""
        exchange = self.exchange
        self.exchange = None
        self.close()
        if exchange is not None:
            complete = exchange.look() and exchange.framing.complete
            exchange.finish("complete" if complete else end, now)

    def close(self) -> None:
        """Drop the connection at once. Twice is harmless."""
        self.is_open = False
        self._reactor.forget(self.number)
        self._sock.close()
