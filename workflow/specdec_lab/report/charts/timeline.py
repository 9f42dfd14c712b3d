"""When each server ran, and whether the machine drifted meanwhile (M25, B1, case D8)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import altair as alt

from .. import numbers
from ..source import Results
from .figure import Figure, Panel
from .style import INK, ModeScale, configured, inline


def timeline(results: Results, scale: ModeScale) -> Figure | None:
    """Server lifetimes on one time axis, and the lightest cell's speed and the clock of each beside them."""
    spans = _spans(results)
    if not spans:
        return None
    modes = [mode for mode in results.modes if any(span["mode"] == mode for span in spans)]
    panels = [Panel("server lifetimes", _lifetimes(spans, modes, scale))]
    drift = _drift(results, spans)
    if drift:
        panels.append(Panel("speed of each start / its mode's mean", _relative(drift, modes, scale)))
    clocks = [span for span in spans if span["clock"] is not None]
    if clocks:
        panels.append(Panel("median SM clock", _clocks(clocks, modes, scale)))
    table = [
        [
            str(span["mode"]),
            str(span["replicate"]),
            f"{span['begin']:.1f}",
            f"{span['end']:.1f}",
            numbers.MISSING if span["clock"] is None else f"{span['clock']:.0f}",
        ]
        for span in spans
    ]
    return Figure(
        "timeline",
        "Sessions in time",
        "Each bar is one fresh server. Modes are interleaved so that a slow drift of the machine does not pass for a "
        "gain; points that fall from left to right show such a drift.",
        panels,
        ["Mode", "Replicate", "Start, min", "End, min", "SM clock, MHz"],
        table,
    )


def _seconds(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _spans(results: Results) -> list[dict[str, Any]]:
    clocks = {start.server: start.sm_clock_mhz for start in results.comparison.starts}
    found: list[tuple[float, float, str, int, str]] = []
    for session in results.sessions:
        for life in session.lifetimes:
            begin, end = _seconds(life.started_at), _seconds(life.stopped_at or "")
            if begin is not None and end is not None and end >= begin:
                found.append((begin, end, session.mode, session.replicate, life.id))
    if not found:
        return []
    first = min(begin for begin, *_ in found)
    return [
        {
            "mode": mode,
            "replicate": replicate,
            "server": server,
            "begin": (begin - first) / 60,
            "end": (end - first) / 60,
            "clock": clocks.get(server),
        }
        for begin, end, mode, replicate, server in sorted(found)
    ]


def _drift(results: Results, spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """P50 decode of each start / its mode's mean, over the cells that every start of the mode has."""
    by_server: dict[str, dict[tuple[str, str], float]] = {}
    for cell in results.cells:
        if cell.summary.p50_decode_tok_s is not None:
            key = (cell.cell.kind, cell.cell.load.label)
            by_server.setdefault(cell.server, {})[key] = cell.summary.p50_decode_tok_s
    points: list[dict[str, Any]] = []
    for mode in dict.fromkeys(str(span["mode"]) for span in spans):
        own = [span for span in spans if span["mode"] == mode and span["server"] in by_server]
        speeds = [by_server[str(span["server"])] for span in own]
        shared = set.intersection(*(set(speed) for speed in speeds)) if speeds else set()
        if len(own) < 2 or not shared:
            continue
        means = {key: sum(speed[key] for speed in speeds) / len(speeds) for key in shared}
        for span, speed in zip(own, speeds, strict=True):
            value = sum(speed[key] / means[key] for key in shared) / len(shared)
            points.append({**span, "relative": value})
    return points


def _lifetimes(spans: list[dict[str, Any]], modes: list[str], scale: ModeScale) -> dict[str, Any]:
    chart = (
        alt.Chart(inline(spans))
        .mark_bar(height=14, cornerRadius=2)
        .encode(
            x=alt.X("begin:Q", title="minutes"),
            x2="end:Q",
            y=alt.Y("mode:N", sort=modes, title=None),
            color=scale.colour(modes),
            tooltip=[
                alt.Tooltip("mode:N", title="mode"),
                alt.Tooltip("replicate:O", title="replicate"),
                alt.Tooltip("begin:Q", title="start, min", format=".1f"),
                alt.Tooltip("end:Q", title="end, min", format=".1f"),
            ],
        )
    )
    return configured(chart)


def _relative(points: list[dict[str, Any]], modes: list[str], scale: ModeScale) -> dict[str, Any]:
    shown = [mode for mode in modes if any(point["mode"] == mode for point in points)]
    base = alt.Chart(inline(points)).encode(
        x=alt.X("begin:Q", title="minutes"),
        y=alt.Y("relative:Q", title="P50 decode / mode's mean", scale=alt.Scale(zero=False, nice=True)),
        color=scale.colour(shown),
    )
    one = alt.Chart(inline([{"one": 1}])).mark_rule(color=INK).encode(y="one:Q")
    dots = base.mark_point(size=60, filled=True, opacity=1).encode(
        shape=scale.shape(shown),
        tooltip=[
            alt.Tooltip("mode:N", title="mode"),
            alt.Tooltip("replicate:O", title="replicate"),
            alt.Tooltip("relative:Q", title="relative speed", format=".3f"),
        ],
    )
    return configured(alt.layer(one, base.mark_line(strokeWidth=1, opacity=0.5), dots))


def _clocks(spans: list[dict[str, Any]], modes: list[str], scale: ModeScale) -> dict[str, Any]:
    chart = (
        alt.Chart(inline(spans))
        .mark_point(size=60, filled=True, opacity=1)
        .encode(
            x=alt.X("begin:Q", title="minutes"),
            y=alt.Y("clock:Q", title="SM clock, MHz", scale=alt.Scale(zero=False, nice=True)),
            color=scale.colour(modes),
            shape=scale.shape(modes),
            tooltip=[alt.Tooltip("mode:N"), alt.Tooltip("clock:Q", title="MHz", format=".0f")],
        )
    )
    return configured(chart)
