"""Waiting for sockets: a plain poll loop, made for measuring.

Why not asyncio: the kernel says when each read arrived (see `clock`), so being late costs no exactness. That makes it
right, under many streams, to sleep for a few milliseconds and then read everything that came, which saves a wake-up for
nearly every chunk (docs/client.md has the numbers).
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from time import perf_counter

LONGEST_NAP_S = 0.005
"""The longest sleep before a look at the sockets while reads come fast: as much later may the next request be sent."""

NAP_SHARE = 0.25
"""The sleep as a share of the time between two reads of one stream: two reads that met in it would get one stamp."""

FAST_READS_S = 4000
"""Reads per second from which on the loop naps. Below, it answers at once."""

_WINDOW_S = 0.01
_SLICE_S = 0.001

READ = select.POLLIN | select.POLLHUP | select.POLLERR
WRITE = select.POLLOUT | select.POLLHUP | select.POLLERR


class Reactor:
    """Calls back for sockets that are ready. One thread."""

    def __init__(self) -> None:
        self._poller = select.epoll() if hasattr(select, "epoll") else select.poll()
        self._unit = 1.0 if hasattr(select, "epoll") else 1000.0
        self._ready: dict[int, Callable[[], None]] = {}
        self._window_end = 0.0
        self._reads = 0
        self._nap_s = 0.0
        self.now = perf_counter()
        """When the look at the sockets that is being answered was made."""
        self.may_nap = True
        """False while a socket is watched whose reads the kernel does not time."""

    def watch(self, number: int, events: int, ready: Callable[[], None]) -> None:
        """Call `ready` whenever the socket with this number is ready for `events`; replaces an earlier watch."""
        if number in self._ready:
            self._poller.modify(number, events)
        else:
            self._poller.register(number, events)
        self._ready[number] = ready

    def answer(self, number: int, ready: Callable[[], None]) -> None:
        """From now on call `ready` for this socket, which is watched already and stays watched for the same events."""
        if number in self._ready:
            self._ready[number] = ready

    def forget(self, number: int) -> None:
        """Watch that socket no more; harmless if it was not watched."""
        if self._ready.pop(number, None) is not None:
            self._poller.unregister(number)

    def turn(self, until: float) -> None:
        """One look at the sockets, waiting for them no longer than `until` (of time.perf_counter), never much later."""
        wait = until - perf_counter()
        if self._nap_s and wait > 0:
            time.sleep(min(self._nap_s, wait))
            wait = 0.0
        elif 0 < wait < _SLICE_S:
            time.sleep(wait)
            wait = 0.0
        events = self._poller.poll(max(int(wait * 1000), 0) / 1000 * self._unit)
        self.now = perf_counter()
        ready = self._ready
        for number, _ in events:
            call = ready.get(number)
            if call is not None:
                call()
        self._reads += len(events)
        now = perf_counter()
        if now >= self._window_end:
            window_s = now - self._window_end + _WINDOW_S
            fast = self.may_nap and self._reads > FAST_READS_S * window_s
            self._nap_s = min(LONGEST_NAP_S, NAP_SHARE * len(ready) * window_s / self._reads) if fast else 0.0
            self._reads = 0
            self._window_end = now + _WINDOW_S

    def close(self) -> None:
        """Release the poller."""
        if hasattr(self._poller, "close"):
            self._poller.close()
