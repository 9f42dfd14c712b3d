"""Time to first token and the share of time that decoding takes (M3, M35)."""

from __future__ import annotations

from typing import Any

import altair as alt

from .. import numbers
from ..source import Results, load_title, load_words
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
            panels.append(Panel(kind, _ttft(points, scale, load_title(results))))
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


def _ttft(points: list[dict[str, Any]], scale: ModeScale, title: str) -> dict[str, Any]:
    loads = list(dict.fromkeys(str(point["load"]) for point in points))
    modes = list(dict.fromkeys(str(point["mode"]) for point in points))
    base = alt.Chart(inline(points)).encode(
        x=alt.X("load:O", sort=loads, title=title, axis=alt.Axis(labelAngle=0, grid=False)),
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
    """How much of a request's time speculation can touch at all; one panel for each baseline."""
    panels: list[Panel] = []
    table: list[list[str]] = []
    limit = results.decision.rules.decode_share
    for baseline in results.baselines:
        points = [
            {"kind": kind, "load": load_words(row), "share": row.decode_share, "mode": row.mode}
            for kind in results.kinds
            for row in results.rows(kind)
            if row.mode == baseline and row.decode_share is not None
        ]
        table += [[str(p["kind"]), str(p["load"]), baseline, numbers.share(_number(p["share"]))] for p in points]
        if points:
            panels.append(Panel(f"{baseline}, by kind and load", _shares(points, limit, scale.colours[baseline])))
    if not panels:
        return None
    return Figure(
        "decode_share",
        "Share of time spent decoding (baseline)",
        f"Speculation speeds up decoding only. Below the dashed line ({numbers.share(limit)}) there is little left to "
        "save. The number on each bar is the concurrency.",
        panels,
        ["Kind", "Concurrency", "Mode", "Decode share"],
        table,
    )


def _number(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _shares(points: list[dict[str, Any]], limit: float, colour: str) -> dict[str, Any]:
    loads = list(dict.fromkeys(str(point["load"]) for point in points))
    kinds = list(dict.fromkeys(str(point["kind"]) for point in points))
    base = alt.Chart(inline(points)).encode(
        x=alt.X("kind:N", sort=kinds, title=None, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("load:O", sort=loads),
        y=alt.Y(
            "share:Q", title="decode time / request time", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")
        ),
    )
    bars = base.mark_bar(opacity=0.85, color=colour).encode(
        tooltip=[
            alt.Tooltip("kind:N"),
            alt.Tooltip("load:O", title="concurrency"),
            alt.Tooltip("share:Q", title="decode share", format=".0%"),
        ]
    )
    words = base.mark_text(dy=-6, color=MUTED).encode(text="load:N")
    rule = alt.Chart(inline([{"limit": limit}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(y="limit:Q")
    return configured(alt.layer(bars, words, rule))
