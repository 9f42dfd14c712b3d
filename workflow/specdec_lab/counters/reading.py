"""Two scrapes beside each other: the change of one counter, or why it cannot be told (M4, cases B1 to B5, B8, B9)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..records.base import Finding
from .exposition import BadLine, Exposition, Labels

CLOCK_TOLERANCE_S = 0.01
"""Start times are constants of a process; only their printing may round."""


@dataclass
class Reading:
    """Both ends of the window, and what was remarked while reading them."""

    before: Exposition
    after: Exposition
    findings: list[Finding] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    deltas: dict[str, float] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)
    """Why the change of a counter that is there cannot be told, by name."""

    def remark(self, code: str, message: str, hint: str = "", severity: str = "warn") -> None:
        self.findings.append(Finding(code=code, severity=severity, message=message, hint=hint))

    def bad_lines(self) -> list[BadLine]:
        """Unreadable lines of both scrapes; one that is the same in both is told once."""
        return list({line.text: line for line in self.before.bad_lines + self.after.bad_lines}.values())

    def by_series(self, name: str, beside: tuple[str, ...] = ()) -> dict[Labels, float] | None:
        """Delta of each series of one counter; None when neither scrape has it, or when it cannot be told.

        `beside`: counters that move with it, see `window`'s `_BESIDE`. Resets are noted, not hidden.
        """
        before, after = self.before.counter(name), self.after.counter(name)
        if self.before.forms_differ(name) or self.after.forms_differ(name):
            self.remark(
                "aliases_disagree",
                f"{name} and {name}_total are both there and differ; the one with _total is used.",
                "Two exporters may stand behind this address: read it by hand.",
            )
        lost = next((line for line in self.bad_lines() if line.about(name)), None)
        if lost is not None:
            self.unknown[name] = f"a line of it cannot be read: {lost.text!r}"
            return None
        if not before and not after:
            return None
        if not self.before.scalars:
            form = self.before.written_as
            self.unknown[name] = "the first scrape holds no metrics" + (f"; it is {form}" if form else "")
            return None
        for labels, value in before.items():
            if labels not in after:
                self.restarts.append(f"{_named(name, labels)} is gone from the second scrape")
            elif after[labels] < value:
                self.restarts.append(f"{_named(name, labels)} fell from {value:g} to {after[labels]:g}")
        started = self.before.created(name)
        for labels, since in self.after.created(name).items():
            if labels in started and abs(since - started[labels]) > CLOCK_TOLERANCE_S:
                self.restarts.append(f"{_named(name, labels)} was created anew within the window")
        for labels in after:
            shown = None if labels in before else self._shown_without(labels, before, beside)
            if shown is not None:
                self.unknown[name] = f"the first scrape lacks {_named(name, labels)}, though {shown} is there"
                return None
        return {labels: value - before.get(labels, 0.0) for labels, value in after.items()}

    def _shown_without(self, labels: Labels, own: Iterable[Labels], beside: tuple[str, ...]) -> str | None:
        """A series of the first scrape that cannot be above 0 without the one with these labels; None when none is.

        A server may show a series with its first event only, and 0 is then right. Not so where that server had counted
        already and shows nothing of this counter: then its value was left out, and is unknown.
        """
        for name in beside:
            for theirs, value in self.before.counter(name).items():
                if value and _agree(labels, theirs) and not any(_agree(theirs, mine) for mine in own):
                    return f"{_named(name, theirs)} {value:g}"
        return None

    def delta(self, aliases: tuple[str, ...], beside: tuple[str, ...] = ()) -> float | None:
        """Delta of one quantity, under whichever of its names the server has; aliases are never added up (case B8)."""
        found: dict[str, float] = {}
        for name in aliases:
            series = self.by_series(name, beside)
            if series is not None:
                found[name] = math.fsum(series.values())
        if not found:
            return None
        if len(set(found.values())) > 1:
            listed = ", ".join(f"{name} +{value:g}" for name, value in found.items())
            self.remark(
                "aliases_disagree",
                f"Names of the same counter moved differently: {listed}. The largest is used.",
                "Check which of these names the engine's version still serves.",
            )
        name = max(found, key=lambda n: found[n])
        self.deltas[name] = found[name]
        return found[name]

    def positions(self, aliases: tuple[str, ...], beside: tuple[str, ...]) -> dict[int, float]:
        """Accepted tokens by draft position, summed over engines (case B3); empty when one of them is unknown."""
        best: dict[int, float] = {}
        for name in aliases:
            by_position: dict[int, float] = {}
            for labels, value in (self.by_series(name, beside) or {}).items():
                label = dict(labels).get("position", "")
                if label.isascii() and label.isdigit():
                    by_position[int(label)] = by_position.get(int(label), 0.0) + value
                else:
                    self.unknown[name] = f"{_named(name, labels)} has no numeric position"
                    self.remark("unreadable_line", f"{self.unknown[name]}, so no position is given.")
            if name not in self.unknown and sum(by_position.values()) >= sum(best.values()) and by_position:
                best = by_position
        return best


def _agree(one: Labels, other: Labels) -> bool:
    """Whether two label sets may be one server's: each label that both have says the same."""
    theirs = dict(other)
    return all(theirs.get(key, value) == value for key, value in one)


def _named(name: str, labels: Labels) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels))
    return f"{name}{{{inner}}}" if inner else name
