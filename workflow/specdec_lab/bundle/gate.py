"""`specdec diff --fail-on`: a difference as a gate for continuous integration (M37).

A condition that measures fails only on what is both large enough and shown: the point estimate is beyond the limit and
the interval does not hold 1. Where there is no interval (one start on a side), the point estimate alone decides.
What a condition cannot judge breaks it too, and is named: a gate that saw nothing has not passed anything.
"""

from __future__ import annotations

import re
from collections import defaultdict
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
_OF_ROWS = {
    "slower": "decode",
    "throughput": "throughput",
    "ttft": "ttft",
    "acceptance": "acceptance",
    "identity": "identity",
}
"""Conditions that look at every row, and at which of its quantities."""
_LONGER = frozenset({"ttft"})
"""Conditions on what may grow without end; all others are losses, which end at 100 %."""
_NAMED = 3
"""So many rows are named; the others are counted."""


@dataclass(frozen=True)
class Gate:
    """One condition and its limit, as a share (0.05 = 5 %)."""

    condition: str
    limit: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Gate:
        """`slower:5%`, `decision`; UserError that lists what there is."""
        name, colon, given = text.partition(":")
        number = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(%?)", given.strip())
        if name not in CONDITIONS or bool(colon) == (name in _BARE) or (colon and number is None):
            raise UserError(
                f"{text!r} is no condition.",
                place="--fail-on",
                fix="One of: "
                + "; ".join(f"{one if one in _BARE else one + ':5%'} ({means})" for one, means in CONDITIONS.items()),
                code="fail_on",
            )
        if number is None:
            return cls(name)
        value = float(number[1])
        if "." in number[1] and not number[2]:
            raise UserError(
                f"{text!r} may mean {value:g} % or {value * 100:g} %.",
                place="--fail-on",
                fix=f"Write {name}:{value * 100:g}% for that share, or {name}:{value:g}% for so few per cent.",
                code="fail_on",
            )
        if value >= 100 and name not in _LONGER:
            raise UserError(
                f"{text!r} can never be broken: nothing falls by more than all of it.",
                place="--fail-on",
                fix=f"Give a limit below 100 %, like {name}:5%.",
                code="fail_on",
            )
        return cls(name, value / 100)

    def broken(self, found: Difference) -> Iterator[str]:
        """A sentence for each thing that fails or cannot be judged."""
        if self.condition == "decision":
            yield from _decisions(found)
        elif self.condition == "missing":
            yield from (f"missing in B: {row}" for row in found.only_a)
            if not found.only_a and not found.cells:
                yield "missing cannot be judged: A has no row that was measured"
        elif self.condition == "stack":
            yield from (f"{one.where} {one.fact}: {one.a} -> {one.b}" for one in found.stack)
            yield from (f"stack cannot be judged: {one.message}" for one in found.findings if one.code == "no_stack")
        else:
            yield from self._rows(found)

    def _rows(self, found: Difference) -> Iterator[str]:
        quantity = _OF_ROWS[self.condition]
        unknown: dict[str, list[str]] = defaultdict(list)
        known = False
        for cell in found.cells:
            row = f"{cell.kind} {cell.load} {cell.mode}"
            if quantity in cell.unknown:
                unknown[cell.unknown[quantity]].append(row)
                continue
            known = known or _there(self.condition, cell)
            told = self._cell(cell)
            if told is not None:
                yield f"{row}: {told}"
        for why, rows in unknown.items():
            more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
            yield f"{self.condition} cannot be judged for {', '.join(rows[:_NAMED])}{more}: {why}"
        if not found.cells:
            yield f"{self.condition} cannot be judged: A and B have no row in common"
        elif not known and not unknown:
            yield f"{self.condition} cannot be judged: no row of A or B has it"

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
        a, b = _shares(self.condition, cell)
        if a is not None and b is not None and a - b > self.limit:
            return f"{self.condition} {a:.1%} -> {b:.1%}"
        return None


def _there(condition: str, cell: CellChange) -> bool:
    """Whether a row has what the condition looks at; speeds that are missing stand among the row's unknown."""
    return condition not in ("acceptance", "identity") or None not in _shares(condition, cell)


def _shares(condition: str, cell: CellChange) -> tuple[float | None, float | None]:
    if condition == "acceptance":
        return cell.acceptance_a, cell.acceptance_b
    return cell.identical_a, cell.identical_b


def _decisions(found: Difference) -> Iterator[str]:
    for one in found.decisions:
        if one.changed:
            yield f"decision for {one.kind}: {_answer(one.a, one.range_a)} -> {_answer(one.b, one.range_b)}"
    yield from (f"decision cannot be judged: {one}" for one in found.undecided)


def _answer(mode: str | None, span: str | None) -> str:
    return (mode or "none") + (f" at concurrency {span}" if span else "")


def _lower(name: str, gain: Gain, limit: float) -> str | None:
    if gain.ratio is None or gain.ratio >= 1 - limit or (gain.high is not None and gain.high >= 1):
        return None
    return f"{name} {gain.ratio:.3f}x" + ("" if gain.high is None else f" ({gain.low:.3f}-{gain.high:.3f})")
