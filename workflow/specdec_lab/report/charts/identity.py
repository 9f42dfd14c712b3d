"""Where texts first differ from the baseline's (M5, M33)."""

from __future__ import annotations

from typing import Any

import altair as alt

from .. import numbers
from ..source import Results, load_words
from .figure import Figure, Panel
from .style import ModeScale, configured, inline


def first_differences(results: Results, scale: ModeScale) -> Figure | None:
    """One mark a prompt; early on most prompts is a fault, a few late ones are rounding."""
    panels: list[Panel] = []
    table: list[list[str]] = []
    for kind in results.kinds:
        points: list[dict[str, Any]] = []
        for row in results.rows(kind):
            identity = row.identity
            if identity is None:
                continue
            table.append(
                [
                    kind,
                    load_words(row),
                    row.mode,
                    identity.word,
                    numbers.count(identity.identical, identity.n),
                    numbers.count(identity.control_identical, identity.control_n),
                    numbers.plain(identity.median_at_char, 0),
                ]
            )
            points += [
                {
                    "mode": row.mode,
                    "load": load_words(row),
                    "prompt": difference.id,
                    "at": difference.at_char,
                    "kind_of": "one is the beginning of the other" if difference.prefix else "differs",
                }
                for difference in identity.differences
            ]
        if points:
            panels.append(Panel(kind, _panel(points, scale)))
    if not panels:
        return None
    return Figure(
        "first_differences",
        "Where texts first differ",
        "Each mark is a prompt whose text is not the baseline's, at the character of the first difference (at most 20 "
        "a row of the table, the earliest first). Late marks on a few prompts are rounding; early ones on most prompts "
        "are a fault in the set-up.",
        panels,
        ["Kind", "Concurrency", "Mode", "Judgement", "Identical", "Baseline with itself", "Median first difference"],
        table,
    )


def _panel(points: list[dict[str, Any]], scale: ModeScale) -> dict[str, Any]:
    last = max(10, *(int(point["at"]) for point in points))
    modes = list(dict.fromkeys(str(point["mode"]) for point in points))
    chart = (
        alt.Chart(inline(points))
        .mark_point(size=50, filled=True, opacity=0.75)
        .encode(
            x=alt.X(
                "at:Q",
                title="character of the first difference",
                scale=alt.Scale(domainMin=0, domainMax=last, nice=True),
            ),
            y=alt.Y("mode:N", sort=modes, title=None),
            yOffset=alt.YOffset("load:O"),
            color=scale.colour(modes),
            shape=scale.shape(modes),
            tooltip=[
                alt.Tooltip("prompt:N", title="prompt"),
                alt.Tooltip("mode:N", title="mode"),
                alt.Tooltip("load:O", title="concurrency"),
                alt.Tooltip("at:Q", title="character"),
                alt.Tooltip("kind_of:N", title="how"),
            ],
        )
    )
    return configured(chart, height=90 + 45 * len(modes))
