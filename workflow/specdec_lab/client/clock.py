"""The kernel's receive times, on the client's clock.

Linux can say of each read when its last byte arrived (SO_TIMESTAMPNS), however late the program comes to fetch it. It
says so on the wall clock, which may step; the client counts on the monotonic clock, which does not. Both clocks run at
the same speed, so one difference between them serves a whole request, and a step shows as a change of that difference.
"""

from __future__ import annotations

import socket
import time
from time import perf_counter

from .exchange import Exchange

SO_TIMESTAMPNS = 35
"""The option's number on Linux (asm-generic), for which Python has no name."""

ANCILLARY_BYTES = 64
"""Room for the kernel's word on one read."""

STEP_S = 0.0005
"""Differences between the clocks that vary by more than this within a request mean that the wall clock was set."""

_TRIES = 20
_TRY_S = 0.002

_EARLY_S = 0.05
"""A read is noted with the time of the look that found it; what arrived meanwhile may be this much younger."""


def ask_for_stamps(sock: socket.socket) -> bool:
    """Have the kernel stamp what this socket receives; False where the system cannot."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    except OSError:
        return False
    return True


def kernel_stamps() -> bool:
    """Whether the kernel of this machine times what a TCP socket receives. Tried on a pair of sockets of our own."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as one:
        other, _ = listener.accept()
        with other:
            if not ask_for_stamps(one):
                return False
            # The kernel switches its clocking of packets on a moment after the first socket asked for it.
            for _ in range(_TRIES):
                other.sendall(b"x")
                if one.recvmsg(1, ANCILLARY_BYTES)[1]:
                    return True
                time.sleep(_TRY_S)
            return False


def offset() -> float:
    """Monotonic minus wall clock, in seconds, from the quickest of a few readings (good to about a microsecond)."""
    best, value = float("inf"), 0.0
    for _ in range(5):
        before = perf_counter()
        wall = time.clock_gettime(time.CLOCK_REALTIME)
        after = perf_counter()
        if after - before < best:
            best, value = after - before, (before + after) / 2 - wall
    return value


def steady(before: float, after: float) -> float | None:
    """The one difference between the clocks over a request; None when the wall clock was set in it."""
    return (before + after) / 2 if abs(after - before) <= STEP_S else None


def arrivals(exchange: Exchange) -> list[float]:
    """When each read arrived: the kernel's time where it has one that can be, else when the program fetched it.

    Kernel times before the request or well after the fetch cannot be, and are not believed. Call it soon after the end.
    """
    fetched, words, sent_at = exchange.fetched, memoryview(exchange.kernel).cast("q"), exchange.sent_at
    difference = steady(exchange.offset, offset()) if exchange.offset else None
    if not fetched or difference is None or len(words) != 2 * len(fetched):
        return list(fetched)
    times = [seconds + nanos * 1e-9 + difference for seconds, nanos in zip(words[0::2], words[1::2], strict=True)]
    if sent_at <= times[0] <= fetched[0] + _EARLY_S and times[-1] <= fetched[-1] + _EARLY_S:
        return times
    return list(fetched)
