"""Acceptance by draft position, with the curve that the formula assumes (M4, M29)."""

from __future__ import annotations

from typing import Any

import altair as alt

from .. import numbers
from ..source import Results, load_words
from .figure import Figure, Panel
from .style import ModeScale, configured, inline


def by_position(results: Results, scale: ModeScale) -> Figure | None:
    """Marks: measured. Dashed: a^i, which the expected length (1 - a^(k+1)) / (1 - a) adds up."""
    panels: list[Panel] = []
    table: list[list[str]] = []
    for kind in results.kinds:
        points: list[dict[str, Any]] = []
        seen: set[str] = set()
        for row in results.rows(kind):
            measured = row.acceptance
            if measured is None or not measured.per_position or row.mode in seen:
                continue
            seen.add(row.mode)  # the lightest load stands for the mode: acceptance hardly depends on load
            rate = measured.acceptance_rate
            points += [
                {
                    "mode": row.mode,
                    "position": place,
                    "accepted": value,
                    "formula": None if rate is None else rate**place,
                }
                for place, value in enumerate(measured.per_position, start=1)
            ]
            table.append(
                [
                    kind,
                    row.mode,
                    load_words(row),
                    numbers.share(rate),
                    numbers.plain(measured.acceptance_length),
                    ", ".join(numbers.plain(value) for value in measured.per_position),
                ]
            )
        if points:
            panels.append(Panel(kind, _panel(points, scale)))
    if not panels:
        return None
    return Figure(
        "acceptance",
        "Acceptance by draft position",
        "Of all drafts, how many had this position accepted, from the server's own counters. The dashed line is what "
        "the textbook formula assumes, a chance a for every token alike; where the marks fall below it, the last "
        "positions of a draft are mostly wasted and a smaller K may do as well.",
        panels,
        ["Kind", "Mode", "Concurrency", "Acceptance rate a", "Acceptance length", "By position"],
        table,
    )


def _panel(points: list[dict[str, Any]], scale: ModeScale) -> dict[str, Any]:
    modes = list(dict.fromkeys(str(point["mode"]) for point in points))
    last = max(int(str(point["position"])) for point in points)
    x = alt.X(
        "position:Q",
        title="draft position",
        axis=alt.Axis(tickMinStep=1, format="d", grid=False),
        scale=alt.Scale(domain=[0.7, last + 0.3], nice=False),
    )
    y_scale = alt.Scale(domain=[0, 1])
    base = alt.Chart(inline(points)).encode(x=x, color=scale.colour(modes))
    curve = base.mark_line(strokeDash=[3, 3], strokeWidth=1.5, opacity=0.8).encode(
        y=alt.Y("formula:Q", title="accepted / drafts", scale=y_scale, axis=alt.Axis(format="%"))
    )
    line = base.mark_line(strokeWidth=2).encode(y=alt.Y("accepted:Q", scale=y_scale))
    dots = base.mark_point(size=55, filled=True, opacity=1).encode(
        y="accepted:Q",
        shape=scale.shape(modes),
        tooltip=[
            alt.Tooltip("mode:N", title="mode"),
            alt.Tooltip("position:Q", title="position"),
            alt.Tooltip("accepted:Q", title="accepted", format=".0%"),
            alt.Tooltip("formula:Q", title="formula", format=".0%"),
        ],
    )
    return configured(alt.layer(curve, line, dots))
