"""Metrics text (Prometheus text format 0.0.4) as named series, with what could not be read named beside them.

The parsing is prometheus-client's. It gives up on the first bad line, so on such a text the bad lines are found one by
one, reported, and the rest is read (case B9: an unreadable line is reported, never swallowed).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Series = Mapping[Labels, float]

_DISTRIBUTIONS = frozenset({"histogram", "gaugehistogram", "summary"})


@dataclass(frozen=True)
class BadLine:
    """A line that says nothing: its number from 1, its text, and why."""

    number: int
    text: str
    why: str

    def about(self, name: str) -> bool:
        """Whether it is a line of this counter, under either form of its name, and not of one whose name is longer."""
        return re.match(rf"{re.escape(name.removesuffix('_total'))}(_total)?(?![\w:])", self.text) is not None


@dataclass(frozen=True)
class Exposition:
    """One scrape. `scalars` holds counters, gauges and untyped samples by sample name, then by label set."""

    scalars: Mapping[str, Series]
    bad_lines: tuple[BadLine, ...] = ()
    conflicts: tuple[str, ...] = field(default=())
    """Sample names for which the same label set came twice with different values."""
    written_as: str | None = None
    """`gzip` or `UTF-16` when the text is that and so holds nothing that can be read."""

    def counter(self, name: str) -> dict[Labels, float]:
        """The counter's series under either form of its name; `x_total` wins where both are there (case B1)."""
        base = name.removesuffix("_total")
        return dict(self.scalars.get(f"{base}_total") or self.scalars.get(base, {}))

    def forms_differ(self, name: str) -> bool:
        """Whether `x` and `x_total` are both there and do not say the same."""
        base = name.removesuffix("_total")
        bare, full = self.scalars.get(base), self.scalars.get(f"{base}_total")
        return bare is not None and full is not None and bare != full

    def created(self, name: str) -> Series:
        """When each series of the counter began, as Unix time; empty when the server does not say (case B2)."""
        return self.scalars.get(f"{name.removesuffix('_total')}_created", {})


def parse(text: str) -> Exposition:
    """Read one scrape. Never raises: what cannot be read is in `bad_lines`.

    Histograms and summaries are left out, so that nothing of them can pass for a counter (case B1). A sample that is
    not a finite number counts as unreadable.
    """
    families, bad = _families(text)
    scalars: dict[str, dict[Labels, float]] = {}
    conflicts: list[str] = []
    for family in families:
        if family.type in _DISTRIBUTIONS:
            continue
        for sample in family.samples:
            if not math.isfinite(sample.value):
                bad.append(_locate(text, sample.name, f"the value {sample.value} is not a number"))
                continue
            series = scalars.setdefault(sample.name, {})
            labels = frozenset(sample.labels.items())
            if series.get(labels, sample.value) != sample.value:
                conflicts.append(sample.name)
            series[labels] = max(sample.value, series.get(labels, sample.value))
    return Exposition(
        scalars, tuple(sorted(bad, key=lambda line: line.number)), tuple(dict.fromkeys(conflicts)), _written_as(text)
    )


def _families(text: str) -> tuple[list[Metric], list[BadLine]]:
    try:
        return list(text_string_to_metric_families(text)), []
    except (ValueError, IndexError, KeyError):
        return _families_by_line(text)


def _families_by_line(text: str) -> tuple[list[Metric], list[BadLine]]:
    good: list[str] = []
    bad: list[BadLine] = []
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            list(text_string_to_metric_families(line + "\n"))
        except (ValueError, IndexError, KeyError) as error:
            bad.append(BadLine(number, line.strip()[:200], str(error)[:200] or "not metrics text"))
        else:
            good.append(line)
    try:
        return list(text_string_to_metric_families("\n".join(good) + "\n")), bad
    except (ValueError, IndexError, KeyError) as error:
        bad.append(BadLine(0, "(the whole text)", str(error)[:200]))
        return [], bad


def _locate(text: str, name: str, why: str) -> BadLine:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith((f"{name}{{", f"{name} ", f"{name}\t")) and line.rstrip().lower().endswith(("nan", "inf")):
            return BadLine(number, line.strip()[:200], why)
    return BadLine(0, name, why)


def _written_as(text: str) -> str | None:
    """What a text that holds no metrics is instead, if it is one of the two that a saved scrape may be; else None."""
    if text.startswith(("\x1f\x8b", "\x1f\ufffd")):
        return "gzip"
    return "UTF-16" if text.count("\x00") > len(text) // 4 else None


def total(series: Series) -> float | None:
    """The sum over all label sets (case B3); None when there is none, never 0."""
    return math.fsum(series.values()) if series else None


def names_of(texts: Iterable[Exposition]) -> list[str]:
    """Every sample name that was read, sorted."""
    return sorted({name for exposition in texts for name in exposition.scalars})
