"""A job that is told to end, or whose parent dies, still stops its server (case C7).

Layers: these handlers turn a signal into an exception so that every `finally` runs; the kernel tells us when Snakemake
is killed; the launcher has a lifeline of its own for the case that we are killed.
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


class Interrupted(BaseException):
    """The job was told to end by this signal. Not an Exception: nothing on the way may swallow it."""

    def __init__(self, number: int) -> None:
        super().__init__(f"ended by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def guarded() -> Iterator[None]:
    """Within it, INT, TERM, HUP and the parent's death raise Interrupted once; further ones wait until it is left.

    A second Ctrl-C while the server is being stopped must not cut the stopping short.
    """
    told = False

    def tell(number: int, _frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise Interrupted(number)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, tell) for number in numbers}
    parent = os.getppid()
    _die_with_parent()
    if os.getppid() != parent:  # it died in between
        raise Interrupted(signal.SIGTERM)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
