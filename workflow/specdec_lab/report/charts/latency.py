"""Time to first token and the share of time that decoding takes (M3, M35)."""

from __future__ import annotations

from typing import Any

import altair as alt

from .. import numbers
from ..source import Results, load_words
from .figure import Figure, Panel
from .style import INK, MUTED, ModeScale, configured, inline


def first_token(results: Results, scale: ModeScale) -> Figure | None:
    """P50 as a mark, P95 as the end of the line."""
    panels: list[Panel] = []
    table: list[list[str]] = []
    for kind in results.kinds:
        rows = results.rows(kind)
        points = [
            {
                "mode": row.mode,
                "load": load_words(row),
                "p50": 1000 * row.p50_ttft_s,
                "p95": 1000 * (row.p50_ttft_s if row.p95_ttft_s is None else row.p95_ttft_s),
            }
            for row in rows
            if row.p50_ttft_s is not None
        ]
        table += [
            [
                kind,
                load_words(row),
                row.mode,
                numbers.milliseconds(row.p50_ttft_s),
                numbers.milliseconds(row.p95_ttft_s),
            ]
            for row in rows
        ]
        if points:
            panels.append(Panel(kind, _ttft(points, scale)))
    if not panels:
        return None
    return Figure(
        "first_token",
        "Time to first token",
        "The mark is the median, the line ends at the 95th percentile. Speculation should barely move it; a draft "
        "model that must read the prompt as well may.",
        panels,
        ["Kind", "Concurrency", "Mode", "P50 TTFT", "P95 TTFT"],
        table,
    )


def _ttft(points: list[dict[str, Any]], scale: ModeScale) -> dict[str, Any]:
    loads = list(dict.fromkeys(str(point["load"]) for point in points))
    modes = list(dict.fromkeys(str(point["mode"]) for point in points))
    base = alt.Chart(inline(points)).encode(
        x=alt.X("load:O", sort=loads, title="concurrency", axis=alt.Axis(labelAngle=0, grid=False)),
        xOffset=alt.XOffset("mode:N", sort=modes, scale=alt.Scale(paddingOuter=0.6)),
        color=scale.colour(modes),
    )
    lines = base.mark_rule(strokeWidth=2).encode(y=alt.Y("p50:Q", title="TTFT, ms"), y2="p95:Q")
    dots = base.mark_point(size=60, filled=True, opacity=1).encode(
        y="p50:Q",
        shape=scale.shape(modes),
        tooltip=[
            alt.Tooltip("mode:N", title="mode"),
            alt.Tooltip("load:O", title="concurrency"),
            alt.Tooltip("p50:Q", title="P50, ms", format=".1f"),
            alt.Tooltip("p95:Q", title="P95, ms", format=".1f"),
        ],
    )
    return configured(alt.layer(lines, dots))


def decode_share(results: Results, scale: ModeScale) -> Figure | None:
    """How much of a request's time speculation can touch at all."""
    points: list[dict[str, Any]] = []
    table: list[list[str]] = []
    for kind in results.kinds:
        for row in results.rows(kind):
            if row.decode_share is None or row.against is not None:
                continue
            points.append({"kind": kind, "load": load_words(row), "share": row.decode_share, "mode": row.mode})
            table.append([kind, load_words(row), row.mode, numbers.share(row.decode_share)])
    if not points:
        return None
    limit = results.decision.rules.decode_share
    loads = list(dict.fromkeys(str(point["load"]) for point in points))
    kinds = list(dict.fromkeys(str(point["kind"]) for point in points))
    bars = (
        alt.Chart(inline(points))
        .mark_bar(opacity=0.85, color="var(--baseline)")
        .encode(
            x=alt.X("kind:N", sort=kinds, title=None, axis=alt.Axis(labelAngle=0)),
            xOffset=alt.XOffset("load:O", sort=loads),
            y=alt.Y(
                "share:Q", title="decode time / request time", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")
            ),
            tooltip=[
                alt.Tooltip("kind:N"),
                alt.Tooltip("load:O", title="concurrency"),
                alt.Tooltip("share:Q", title="decode share", format=".0%"),
            ],
        )
    )
    words = (
        alt.Chart(inline(points))
        .mark_text(dy=-6, color=MUTED)
        .encode(x=alt.X("kind:N", sort=kinds), xOffset=alt.XOffset("load:O", sort=loads), y="share:Q", text="load:N")
    )
    rule = alt.Chart(inline([{"limit": limit}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="limit:Q")
    return Figure(
        "decode_share",
        "Share of time spent decoding (baseline)",
        f"Speculation speeds up decoding only. Below the dashed line ({numbers.share(limit)}) there is little left to "
        "save. The number on each bar is the concurrency.",
        [Panel("baseline, by kind and concurrency", configured(alt.layer(bars, words, rule)))],
        ["Kind", "Concurrency", "Mode", "Decode share"],
        table,
    )
