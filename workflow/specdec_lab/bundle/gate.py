"""`specdec diff --fail-on`: a difference as a gate for continuous integration (M37).

A condition that measures fails only on what is both large enough and shown: the point estimate is beyond the limit and
the interval does not hold 1. Where there is no interval (one start on a side), the point estimate alone decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..records.comparison import Gain
from ..records.errors import UserError
from .difference import CellChange, Difference

CONDITIONS = {
    "slower": "P50 decode of a row lower in B by more than the share",
    "throughput": "tokens per second of a row lower in B by more than the share",
    "ttft": "P50 time to first token of a row longer in B by more than the share",
    "acceptance": "acceptance rate of a row lower in B by more than so many points",
    "identity": "share of texts equal to the baseline's lower in B by more than so many points",
    "decision": "another mode, or another range, is to be deployed",
    "missing": "a row of A is missing in B",
    "stack": "the two do not stand on the same stack",
}
_BARE = frozenset({"decision", "missing", "stack"})


@dataclass(frozen=True)
class Gate:
    """One condition and its limit, as a share (0.05 = 5 %)."""

    condition: str
    limit: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Gate:
        """`slower:5%`, `decision`; UserError that lists what there is."""
        name, colon, limit = text.partition(":")
        number = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", limit.strip())
        if name not in CONDITIONS or bool(colon) == (name in _BARE) or (colon and number is None):
            raise UserError(
                f"{text!r} is no condition.",
                place="--fail-on",
                fix="One of: "
                + "; ".join(f"{one if one in _BARE else one + ':5%'} ({means})" for one, means in CONDITIONS.items()),
                code="fail_on",
            )
        return cls(name, float(number[1]) / 100 if number else 0.0)

    def broken(self, found: Difference) -> Iterator[str]:
        """A sentence for each thing that fails."""
        if self.condition == "decision":
            for one in found.decisions:
                if one.changed:
                    yield f"decision for {one.kind}: {one.a or 'none'} -> {one.b or 'none'}"
        elif self.condition == "missing":
            yield from (f"missing in B: {row}" for row in found.only_a)
        elif self.condition == "stack":
            yield from (f"{one.where} {one.fact}: {one.a} -> {one.b}" for one in found.stack)
        else:
            for cell in found.cells:
                told = self._cell(cell)
                if told is not None:
                    yield f"{cell.kind} {cell.load} {cell.mode}: {told}"

    def _cell(self, cell: CellChange) -> str | None:
        if self.condition == "slower":
            return _lower("P50 decode", cell.decode, self.limit)
        if self.condition == "throughput":
            return _lower("tokens per second", cell.aggregate, self.limit)
        if self.condition == "ttft":
            gain = cell.ttft
            if gain.ratio is not None and gain.ratio > 1 + self.limit and (gain.low is None or gain.low > 1):
                return f"P50 TTFT {gain.ratio:.2f}x"
            return None
        pair = (
            (cell.acceptance_a, cell.acceptance_b)
            if self.condition == "acceptance"
            else (cell.identical_a, cell.identical_b)
        )
        if pair[0] is not None and pair[1] is not None and pair[0] - pair[1] > self.limit:
            return f"{self.condition} {pair[0]:.1%} -> {pair[1]:.1%}"
        return None


def _lower(name: str, gain: Gain, limit: float) -> str | None:
    if gain.ratio is None or gain.ratio >= 1 - limit or (gain.high is not None and gain.high >= 1):
        return None
    return f"{name} {gain.ratio:.3f}x" + ("" if gain.high is None else f" ({gain.low:.3f}-{gain.high:.3f})")
