"""Published results beside what was measured: a line for each method, every row behind it (M39)."""

from __future__ import annotations

from typing import Any

from ..analysis.outlook import family
from ..records.comparison import Reference, ReferenceMatch
from . import numbers
from .source import Results, load_words

COLUMNS = ["Mode", "Kind", "Conc.", "Here", "Published", "Here it is", "Model", "Hardware", "Source"]


def published(results: Results) -> dict[str, Any]:
    """`lines`: per method what was measured, what is nearest to it, and how many rows look like it; `rows`: all."""
    matches = results.comparison.references
    methods = list(dict.fromkeys(family(match.reference.method) or "" for match in matches))
    return {
        "lines": [
            _line(method, [match for match in matches if family(match.reference.method) == method])
            for method in methods
        ],
        "columns": COLUMNS,
        "rows": [_row(results, match) for match in matches],
    }


def _line(method: str, matches: list[ReferenceMatch]) -> tuple[str, str]:
    """The nearest setting of a row stands first among its matches; of those the result that most rows share is told."""
    first = list({(match.mode, match.kind, match.load): match for match in reversed(matches)}.values())
    sources = [match.reference for match in first]
    nearest = max(reversed(sources), key=sources.count)
    low, high = min(first, key=lambda one: one.measured), max(first, key=lambda one: one.measured)
    here = numbers.ratio(low.measured)
    if low is not high:
        here += f" ({low.mode}, {low.kind}) to {numbers.ratio(high.measured)} ({high.mode}, {high.kind})"
    alike = sum(match.looks_alike for match in first)
    return method, (
        f"{here} here; nearest published: {gain(nearest)} with {nearest.model} on {nearest.hardware} "
        f"({nearest.source}). {alike} of {len(first)} rows are near what is published for them."
    )


def gain(one: Reference) -> str:
    """A published speedup, which may be a range."""
    low, high = numbers.ratio(one.speedup_low), numbers.ratio(one.speedup_high)
    return low if low == high else f"{low} to {high}"


def _row(results: Results, match: ReferenceMatch) -> list[str]:
    one = match.reference
    row = next((r for r in results.rows(match.kind) if (r.mode, r.load) == (match.mode, match.load)), None)
    place = "like it" if match.looks_alike else "above it" if match.measured > one.speedup_high else "below it"
    load = load_words(row) if row is not None else match.load
    here = [match.mode, match.kind, load, numbers.ratio(match.measured)]
    return [*here, gain(one), place, one.model, one.hardware, one.source]
