"""Acceptance by draft position, with the curve that the formula assumes (M4, M29)."""

from __future__ import annotations

from typing import Any

import altair as alt

from .. import numbers
from ..source import Results, load_words
from .figure import Figure, Panel
from .style import ModeScale, configured, inline


def by_position(results: Results, scale: ModeScale) -> Figure | None:
    """Marks: measured. Dashed: a^i with the a whose expected length (1 - a^(k+1)) / (1 - a) is the measured one."""
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
            chance = constant_chance(measured.per_position)
            points += [
                {
                    "mode": row.mode,
                    "position": place,
                    "accepted": value,
                    "formula": chance**place,
                }
                for place, value in enumerate(measured.per_position, start=1)
            ]
            table.append(
                [
                    kind,
                    row.mode,
                    load_words(row),
                    numbers.share(measured.acceptance_rate),
                    numbers.plain(chance),
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
        "Of all drafts, how many had this position accepted, from the server's own counters. The dashed line is the "
        "textbook formula at the same acceptance length: every token has one and the same chance a. Marks that start "
        "above it and end below mean that the last positions of a draft are mostly wasted; a smaller K may do as well.",
        panels,
        ["Kind", "Mode", "Concurrency", "Acceptance rate", "Chance a", "Acceptance length", "By position"],
        table,
    )


def constant_chance(per_position: list[float]) -> float:
    """The a for which a + a^2 + ... + a^k is the measured sum over k positions: one chance for every token (M29)."""
    wanted = sum(per_position)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if sum(middle**place for place in range(1, len(per_position) + 1)) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


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
