"""Throughput against per-user speed: the trade that a server's operator makes (M1, M2, M31)."""

from __future__ import annotations

from typing import Any

import altair as alt

from .. import numbers
from ..source import Results, load_order, load_words
from .figure import Figure, Panel
from .style import ModeScale, configured, inline


def tradeoff(results: Results, scale: ModeScale) -> Figure | None:
    """One line a mode, one point a load; up and to the right is better."""
    panels: list[Panel] = []
    table: list[list[str]] = []
    for kind in results.kinds:
        rows = [row for row in results.rows(kind) if row.p50_decode_tok_s is not None and row.agg_tok_s is not None]
        if not rows:
            continue
        points = [
            {
                "mode": row.mode,
                "load": load_words(row),
                "order": load_order(row)[0] * 1e9 + load_order(row)[1],
                "user": row.p50_decode_tok_s,
                "server": row.agg_tok_s,
            }
            for row in rows
        ]
        table += [
            [kind, load_words(row), row.mode, numbers.rate(row.p50_decode_tok_s), numbers.rate(row.agg_tok_s)]
            for row in rows
        ]
        panels.append(Panel(kind, _panel(points, scale)))
    if not panels:
        return None
    return Figure(
        "throughput_per_user",
        "Throughput against per-user speed",
        "Each line is a mode, each point a concurrency (the number beside it). To the right is faster for one user, "
        "upwards is more for the whole server. A mode whose line lies above and to the right of another is better at "
        "every load.",
        panels,
        ["Kind", "Concurrency", "Mode", "P50 decode tok/s", "Aggregate tok/s"],
        table,
    )


def _panel(points: list[dict[str, Any]], scale: ModeScale) -> dict[str, Any]:
    modes = list(dict.fromkeys(str(point["mode"]) for point in points))
    base = alt.Chart(inline(points)).encode(
        x=alt.X("user:Q", title="P50 decode, tokens/s per user", scale=alt.Scale(zero=False, nice=True, padding=18)),
        y=alt.Y("server:Q", title="aggregate tokens/s", scale=alt.Scale(zero=False, nice=True, padding=14)),
        color=scale.colour(modes),
    )
    line = base.mark_line(strokeWidth=1.5, opacity=0.7).encode(order="order:Q")
    dots = base.mark_point(size=60, filled=True, opacity=1).encode(
        shape=scale.shape(modes),
        tooltip=[
            alt.Tooltip("mode:N", title="mode"),
            alt.Tooltip("load:O", title="concurrency"),
            alt.Tooltip("user:Q", title="P50 decode tok/s", format=".1f"),
            alt.Tooltip("server:Q", title="aggregate tok/s", format=".1f"),
        ],
    )
    words = base.mark_text(dy=-10).encode(text="load:N")
    return configured(alt.layer(line, dots, words))
