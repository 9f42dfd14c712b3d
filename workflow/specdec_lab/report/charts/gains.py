"""Speedup against concurrency, with intervals, the noise band and the crossover (M2, M25, M31)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import altair as alt

from ...records.comparison import CellResult, Gain
from ...records.decision import WorkloadDecision
from .. import numbers
from ..source import Results, load_title, load_words
from .figure import Figure, Panel
from .style import BAND, INK, MUTED, ModeScale, configured, inline

Pick = Callable[[CellResult], Gain | None]


def decode_speedup(results: Results, scale: ModeScale) -> Figure | None:
    """P50 decode, mode / baseline: what one user feels."""
    return _figure(
        results,
        scale,
        lambda row: row.decode,
        name="decode_speedup",
        title="Decode speedup against concurrency",
        unit="speedup of P50 decode",
        reading=(
            "How much faster one user's tokens come. Above 1 is faster. Bars are intervals over server starts; the "
            "grey band is the noise floor: a point inside it shows no difference. A dashed "
            "line marks the concurrency from which speculation no longer pays."
        ),
        mark_crossover=True,
    )


def aggregate_gain(results: Results, scale: ModeScale) -> Figure | None:
    """Tokens per second of the whole cell, mode / baseline: what a busy server completes."""
    return _figure(
        results,
        scale,
        lambda row: row.aggregate,
        name="aggregate_gain",
        title="Throughput gain against concurrency",
        unit="gain in tokens/s",
        reading=(
            "How much more the whole server completes. A method may help one user and cost a busy server: compare with "
            "the figure above."
        ),
        mark_crossover=False,
    )


def _figure(
    results: Results,
    scale: ModeScale,
    pick: Pick,
    *,
    name: str,
    title: str,
    unit: str,
    reading: str,
    mark_crossover: bool,
) -> Figure | None:
    panels: list[Panel] = []
    table: list[list[str]] = []
    decisions = {workload.kind: workload for workload in results.decision.workloads}
    for kind in results.kinds:
        points = []
        for row in results.rows(kind):
            gain = pick(row)
            if row.against is None or gain is None or gain.ratio is None:
                continue
            points.append(_point(row, gain))
            table.append(
                [
                    kind,
                    load_words(row),
                    row.mode,
                    numbers.ratio(gain.ratio),
                    numbers.interval(gain.low, gain.high),
                    numbers.share(gain.floor, digits=1),
                ]
            )
        if points:
            panels.append(
                Panel(
                    kind,
                    _panel(points, scale, (load_title(results), unit), decisions.get(kind) if mark_crossover else None),
                )
            )
    if not panels:
        return None
    columns = ["Kind", "Concurrency", "Mode", "Ratio", "Interval", "Noise floor"]
    return Figure(name, title, reading, panels, columns, table)


def _point(row: CellResult, gain: Gain) -> dict[str, Any]:
    return {
        "mode": row.mode,
        "load": load_words(row),
        "ratio": gain.ratio,
        "low": gain.low,
        "high": gain.high,
        "band_low": None if gain.floor is None else 1 / (1 + gain.floor),
        "band_high": None if gain.floor is None else 1 + gain.floor,
        "text": f"{numbers.ratio(gain.ratio)} ({numbers.interval(gain.low, gain.high)})",
    }


def _panel(
    points: list[dict[str, Any]], scale: ModeScale, titles: tuple[str, str], decision: WorkloadDecision | None
) -> dict[str, Any]:
    loads = list(dict.fromkeys(str(point["load"]) for point in points))
    modes = list(dict.fromkeys(str(point["mode"]) for point in points))
    x = alt.X("load:O", sort=loads, title=titles[0], axis=alt.Axis(labelAngle=0, grid=False))
    offset = alt.XOffset("mode:N", sort=modes, scale=alt.Scale(paddingOuter=0.6))
    y_scale = alt.Scale(zero=False, nice=True)
    base = alt.Chart(inline(points))
    floors = list({point["load"]: point for point in points if point["band_high"] is not None}.values())
    ranges = [point for point in points if point["low"] is not None and point["high"] is not None]
    band = (
        alt.Chart(inline(floors))
        .mark_bar(color=BAND, opacity=0.35)
        .encode(
            x=alt.X("load:O", sort=loads, title=titles[0], scale=alt.Scale(paddingInner=0.06)),
            y=alt.Y("band_low:Q", title=titles[1], scale=y_scale),
            y2="band_high:Q",
        )
    )
    one = alt.Chart(inline([{"one": 1}])).mark_rule(color=INK, strokeWidth=1).encode(y=alt.Y("one:Q", title=titles[1]))
    bars = (
        alt.Chart(inline(ranges))
        .mark_rule(strokeWidth=2)
        .encode(
            x=x,
            xOffset=offset,
            y=alt.Y("low:Q", title=titles[1], scale=y_scale),
            y2="high:Q",
            color=scale.colour(modes),
        )
    )
    dots = base.mark_point(size=70, filled=True, opacity=1).encode(
        x=x,
        xOffset=offset,
        y=alt.Y("ratio:Q", title=titles[1], scale=y_scale),
        color=scale.colour(modes),
        shape=scale.shape(modes),
        tooltip=[
            alt.Tooltip("mode:N", title="mode"),
            alt.Tooltip("load:O", title="concurrency"),
            alt.Tooltip("text:N", title="ratio (interval)"),
        ],
    )
    layers = [*([band] if floors else []), one, *([bars] if ranges else []), dots]
    if decision is not None and decision.crossover is not None and str(decision.crossover) in loads:
        crossing = [{"load": str(decision.crossover), "label": "no longer pays"}]
        here = alt.Chart(inline(crossing)).encode(x=alt.X("load:O", sort=loads, title=titles[0]))
        layers.append(here.mark_rule(color=MUTED, strokeDash=[4, 3], strokeWidth=1.5))
        layers.append(
            here.mark_text(align="right", dx=-5, baseline="top", color=MUTED).encode(y=alt.value(2), text="label:N")
        )
    return configured(alt.layer(*layers))
