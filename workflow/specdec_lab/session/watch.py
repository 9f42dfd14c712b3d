"""What one sees while a session runs: a line per cell, and how far the cell is; GPU readings beside it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..records.cell import Cell, GpuSample
from .progress import Progress


@dataclass
class Samples:
    """Readings of the held GPUs during one cell, and the energy that they used."""

    readings: list[GpuSample] = field(default_factory=list)
    energy_j: float | None = None


class Watch:
    """Progress of one session for a person: quiet and line by line where there is no terminal."""

    def __init__(self, mode: str, replicate: int, *, total: int, say: Callable[[str], None]) -> None:
        self._progress = Progress(f"{mode} r{replicate}", total)
        self._say = say

    def cell(self, name: str) -> Callable[[int, int], None]:
        """A callback for one cell; on a terminal it keeps one line up to date."""
        self._progress.begin()
        terminal = sys.stderr.isatty()

        def show(ended: int, of: int) -> None:
            if terminal:
                width = shutil.get_terminal_size().columns
                sys.stderr.write(f"\r\033[K  {self._progress.line(name, ended, of)}"[: width + 3])
                sys.stderr.flush()

        return show

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


def _number(value: float | None, unit: str) -> str:
    return f"{value:7.1f} {unit}" if value is not None else f"    n/a {unit}"
