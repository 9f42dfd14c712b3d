"""How far a session is, and how long it will take: estimates for the line that a terminal shows while a cell runs.

Drawing must cost the measuring loop next to nothing, so this is one short text and no live display with a thread of its
own; `watch` makes it once a second at most, and much more rarely where there is no terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

_FIRST_ESTIMATE = 2
"""Requests that must have ended before a cell's remaining time is guessed from its own pace."""


@dataclass
class Progress:
    """One session of `total` cells. Times come from `clock` (seconds, monotonic)."""

    name: str
    total: int
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    last_rate: float | None = None
    """Tokens per second of the last finished cell, for comparison while the next one runs."""
    _took: list[float] = field(default_factory=list)
    _begun: float = 0.0

    def begin(self) -> None:
        """A cell starts to send."""
        self._begun = self.clock()

    def finished(self, agg_tok_s: float | None) -> None:
        """The cell that was begun is complete."""
        self.done += 1
        self._took.append(self.clock() - self._begun)
        self.last_rate = agg_tok_s

    def cell_left_s(self, ended: int, of: int) -> float | None:
        """Seconds that the running cell still needs at its own pace; None before there is a pace."""
        if ended < min(_FIRST_ESTIMATE, of) or ended == 0:
            return None
        return (self.clock() - self._begun) / ended * (of - ended)

    def session_left_s(self, ended: int, of: int) -> float | None:
        """Seconds that the session still needs: this cell, and each later one as long as the mean of those known."""
        here = self.cell_left_s(ended, of)
        known = list(self._took)
        if here is not None:
            known.append(self.clock() - self._begun + here)
        later = self.total - self.done - 1
        if here is None or (later and not known):
            return None
        return here + later * sum(known) / len(known) if later else here

    def line(self, cell: str, ended: int, of: int, tokens: int = 0) -> str:
        """`ngram r1  [3/9] chat_c4  12/32 requests  152.1 tok/s so far  0:21, about 0:35 left in this cell, 4:10 in
        this session`. `tokens`: those of the requests that have ended; 0 when they are not known yet."""
        parts = [f"{self.name}  [{self.done + 1}/{self.total}] {cell}  {ended}/{of} requests"]
        elapsed = self.clock() - self._begun
        if tokens and elapsed > 0:
            parts.append(f"{tokens / elapsed:.1f} tok/s so far")
        timing = minutes(elapsed)
        here, all_of_it = self.cell_left_s(ended, of), self.session_left_s(ended, of)
        if here is not None and ended < of:
            timing += f", about {minutes(here)} left in this cell"
            if all_of_it is not None and self.total > self.done + 1:
                timing += f", {minutes(all_of_it)} in this session"
        parts.append(timing)
        if self.last_rate is not None:
            parts.append(f"last cell {self.last_rate:.1f} tok/s")
        return "  ".join(parts)


def minutes(seconds: float) -> str:
    """Seconds as 1:05, or 1:02:05 from an hour on."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    if hours:
        return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    return f"{rest // 60}:{rest % 60:02d}"
