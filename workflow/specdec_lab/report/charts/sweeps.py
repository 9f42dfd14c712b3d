"""Curves of the sweeps: draft length, context, arrival rate (M15, M34)."""

from __future__ import annotations

from typing import Any

import altair as alt

from ...records.comparison import Curve
from .. import numbers
from ..source import Results
from .figure import Figure, Panel
from .style import INK, SERIES, configured, inline

_AXES = {
    "k": ("draft length K", "Draft length sweep", "k_sweep"),
    "context": ("context tokens", "Context length sweep", "context_sweep"),
    "rate": ("requests per second", "Arrival rate sweep", "rate_sweep"),
}


def sweeps(results: Results) -> list[Figure]:
    """One figure for each axis that was swept."""
    figures = []
    for axis, (x_title, title, name) in _AXES.items():
        curves = [curve for curve in results.comparison.curves if curve.axis == axis and curve.points]
        if curves:
            figures.append(_figure(curves, axis, x_title, title, name))
    return figures


def _figure(curves: list[Curve], axis: str, x_title: str, title: str, name: str) -> Figure:
    panels: list[Panel] = []
    table: list[list[str]] = []
    kinds = list(dict.fromkeys(curve.kind or "all kinds" for curve in curves))
    for kind in kinds:
        points: list[dict[str, Any]] = []
        for curve in curves:
            if (curve.kind or "all kinds") != kind:
                continue
            line = curve.method if curve.load is None else f"{curve.method}, {curve.load}"
            for point in curve.points:
                value = point.p50_decode_tok_s if axis == "k" else point.decode_speedup
                if value is None:
                    continue
                points.append({"line": line, "x": point.x, "y": value, "best": curve.best_x == point.x})
                table.append(
                    [
                        kind,
                        line,
                        f"{point.x:g}",
                        numbers.rate(point.p50_decode_tok_s),
                        numbers.ratio(point.decode_speedup),
                        numbers.plain(point.acceptance_length),
                    ]
                )
        if points:
            panels.append(Panel(kind, _panel(points, x_title, axis)))
    reading = (
        "P50 decode against the draft length. A ring marks the smallest K within the noise of the best."
        if axis == "k"
        else "Decode speedup along the sweep; above 1 speculation pays."
    )
    columns = ["Kind", "Method", x_title, "P50 decode tok/s", "Speedup", "Acceptance length"]
    return Figure(name, title, reading, panels, columns, table)


def _panel(points: list[dict[str, Any]], x_title: str, axis: str) -> dict[str, Any]:
    lines = list(dict.fromkeys(str(point["line"]) for point in points))
    colour = alt.Color(
        "line:N",
        scale=alt.Scale(domain=lines, range=[SERIES[n % len(SERIES)] for n in range(len(lines))]),
        title=None,
        legend=alt.Legend(orient="bottom", columns=2),
    )
    y_title = "P50 decode, tokens/s" if axis == "k" else "decode speedup"
    base = alt.Chart(inline(points)).encode(
        x=alt.X("x:Q", title=x_title, scale=alt.Scale(type="linear" if axis == "k" else "log", nice=False, padding=12)),
        y=alt.Y("y:Q", title=y_title, scale=alt.Scale(zero=False, nice=True)),
        color=colour,
    )
    tooltip = [
        alt.Tooltip("line:N", title="method"),
        alt.Tooltip("x:Q", title=x_title),
        alt.Tooltip("y:Q", title=y_title, format=".2f"),
    ]
    layers = [base.mark_line(strokeWidth=2), base.mark_point(size=55, filled=True, opacity=1).encode(tooltip=tooltip)]
    layers.append(
        base.transform_filter("datum.best").mark_point(size=190, filled=False, strokeWidth=1.5, opacity=1, color=INK)
    )
    if axis != "k":
        layers.insert(0, alt.Chart(inline([{"one": 1}])).mark_rule(color=INK).encode(y="one:Q"))
    return configured(alt.layer(*layers))
