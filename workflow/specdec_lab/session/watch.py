"""What one sees while a session runs: a line per cell, and how far the cell is; GPU readings beside it."""

from __future__ import annotations

import contextlib
import io
import select
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from ..records.cell import Cell, GpuSample
from .progress import Progress

TERMINAL_S = 1.0
"""Shortest time between two drawings of the line on a terminal."""

PLAIN_S = 15.0
"""Shortest time between two lines of a running cell where there is no terminal."""


@dataclass
class Samples:
    """Readings of the held GPUs during one cell, and the energy that they used."""

    readings: list[GpuSample] = field(default_factory=list)
    energy_j: float | None = None


class Watch:
    """Progress of one session for a person."""

    def __init__(self, mode: str, replicate: int, *, total: int, say: Callable[[str], None]) -> None:
        self._progress = Progress(f"{mode} r{replicate}", total)
        self._say = say

    def cell(self, name: str) -> Callable[[int, int, int], None]:
        """A cell begins: what `live` gives for it."""
        return live(self._progress, name, self._say)

    def done(self, cell: Cell) -> None:
        """The line of a finished cell."""
        self._progress.finished(cell.summary.agg_tok_s)
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        s = cell.summary
        self._say(
            f"  {self._progress.name}  [{self._progress.done}/{self._progress.total}] {cell.cell.name:<12} "
            f"{_number(s.agg_tok_s, 'tok/s')}  p50 decode {_number(s.p50_decode_tok_s, 'tok/s')}  "
            f"p50 TTFT {_number(None if s.p50_ttft_s is None else s.p50_ttft_s * 1e3, 'ms')}  "
            f"{s.requests - s.failed}/{s.requests} ok"
        )

    @contextmanager
    def gpu(self, devices: Sequence[str]) -> Iterator[Samples]:
        """Readings of these GPUs while the block runs; none on a CPU."""
        samples = Samples()
        if not devices:
            yield samples
            return
        from ..gpu.sampler import sampling

        with sampling(devices) as (readings, energy):
            yield samples
        samples.readings = readings
        samples.energy_j = energy()


def live(progress: Progress, name: str, say: Callable[[str], None]) -> Callable[[int, int, int], None]:
    """Begin a cell and give what shows it: on a terminal one line kept up to date, else a plain line now and then.

    What it gives takes requests ended, all of them, and the tokens of those that ended. It is called from the loop that
    measures, so most calls only compare two times, and nothing is written that would have to wait (a terminal that was
    stopped with Ctrl-S, a full pipe).
    """
    progress.begin()
    stream, clock = sys.stderr, progress.clock
    terminal = stream.isatty()
    period = TERMINAL_S if terminal else PLAIN_S
    due = clock() + (0 if terminal else period)
    drawn = False

    def show(ended: int, of: int, tokens: int) -> None:
        nonlocal due, drawn
        now = clock()
        if ended == of:
            if drawn and _takes(stream):
                stream.write("\r\033[K")
                stream.flush()
                drawn = False
            return
        if now < due or not _takes(stream):
            return
        due = now + period
        line = f"  {progress.line(name, ended, of, tokens)}"
        if terminal:
            stream.write(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}")
            stream.flush()
            drawn = True
        else:
            say(line)

    return show


def _takes(stream: TextIO) -> bool:
    """Whether the stream would take a line now, without waiting for whoever reads it."""
    with contextlib.suppress(io.UnsupportedOperation, OSError, ValueError):
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLOUT)
        return bool(poll.poll(0))
    return True


def _number(value: float | None, unit: str) -> str:
    return f"{value:7.1f} {unit}" if value is not None else f"    n/a {unit}"
