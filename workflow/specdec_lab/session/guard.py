"""A job that is told to end, or whose parent dies, still stops its server (case C7).

Layers: this turns a signal into an exception so that every `finally` runs; the kernel tells us when Snakemake is
killed; the launcher has a lifeline of its own for the case that we are killed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_PR_SET_PDEATHSIG = 1
_NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The job was told to end by this signal. Not an Exception: nothing on the way may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


class Guard:
    """Within `with guard:`, INT, TERM, HUP and the parent's death raise Interrupted, once.

    Further signals are noted and change nothing: a second Ctrl-C while the server is being stopped must not cut the
    stopping short. Within `deferred()` the first one is only noted too, so that what runs there can end in good order.
    """

    def __init__(self) -> None:
        self.told: int | None = None
        self._deferring = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> Guard:
        parent = os.getppid()
        self._before = {number: signal.signal(number, self._tell) for number in _NUMBERS}
        if sys.platform == "linux":
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it died in between
            self._tell(signal.SIGTERM, None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _tell(self, number: int, _frame: FrameType | None) -> None:
        first = self.told is None
        if first:
            self.told = number
        if first and not self._deferring:
            raise Interrupted(number)

    def check(self) -> None:
        """Raise Interrupted if we were told to end: what failed since then failed for that reason."""
        if self.told is not None:
            raise Interrupted(self.told)

    def reason(self) -> str | None:
        """Why to end, as a sentence for a partial cell; None as long as nothing told us to."""
        return None if self.told is None else f"interrupted by {signal.Signals(self.told).name}"

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """A signal inside is raised when this is left; ask `reason` inside."""
        self._deferring = True
        try:
            yield
        finally:
            self._deferring = False
        self.check()
