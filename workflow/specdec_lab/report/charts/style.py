"""One visual language for every chart: colours by mode, the baseline grey, the noise band always the same tint.

Specs name colours as CSS variables, so a page can switch between light and dark without drawing again; `painted` puts a
palette's values in their place for files. Series colours are told apart with colour-blind eyes (after Okabe and Ito),
and modes differ in shape as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import altair as alt

INK = "var(--ink)"
MUTED = "var(--muted)"
GRID = "var(--grid)"
BAND = "var(--band)"
BASELINE = "var(--baseline)"
SERIES = tuple(f"var(--s{number})" for number in range(7))
BASELINE_SHAPE = "M-1.2,-0.3H1.2V0.3H-1.2Z"
"""A short bar, as an SVG path."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")

LIGHT = {
    "ink": "#1c2430", "muted": "#5a6675", "grid": "#e3e7ec", "band": "#9aa7b6", "baseline": "#7a8594",
    "s0": "#0072b2", "s1": "#c4500a", "s2": "#00805c", "s3": "#a3527f", "s4": "#8a6d00",
    "s5": "#3d7fb8", "s6": "#5b4bb5",
}  # fmt: skip
DARK = {
    "ink": "#e6ebf1", "muted": "#a3afbd", "grid": "#333d4a", "band": "#66758a", "baseline": "#98a4b3",
    "s0": "#5cb3f0", "s1": "#f39355", "s2": "#3fc79c", "s3": "#e09bc3", "s4": "#e3c44f",
    "s5": "#9ecbf0", "s6": "#a99df0",
}  # fmt: skip

WIDTH = 300
HEIGHT = 240


def css(palette: Mapping[str, str]) -> str:
    """The palette as CSS declarations."""
    return "".join(f"--{name}:{value};" for name, value in palette.items())


def painted(spec: dict[str, Any], palette: Mapping[str, str]) -> dict[str, Any]:
    """The spec with real colours in place of CSS variables, for files and for renderers without CSS."""
    text = json.dumps(spec)
    for name, value in palette.items():
        text = text.replace(f"var(--{name})", value)
    result: dict[str, Any] = json.loads(text)
    return result


class ModeScale:
    """Which colour and shape each mode has, the same in every chart of one report."""

    def __init__(self, modes: list[str], baselines: list[str]) -> None:
        others = [mode for mode in modes if mode not in baselines]
        self.colours = dict.fromkeys(baselines, BASELINE)
        self.shapes = dict.fromkeys(baselines, BASELINE_SHAPE)
        for number, mode in enumerate(others):
            self.colours[mode] = SERIES[number % len(SERIES)]
            self.shapes[mode] = SHAPES[(number + number // len(SERIES)) % len(SHAPES)]

    def colour(self, modes: list[str]) -> alt.Color:
        """Colour by mode, for the modes that a chart shows."""
        scale = alt.Scale(domain=modes, range=[self.colours[mode] for mode in modes])
        return alt.Color("mode:N", scale=scale, title=None, legend=alt.Legend(orient="bottom", columns=3))

    def shape(self, modes: list[str]) -> alt.Shape:
        """Shape by mode, beside the colour."""
        scale = alt.Scale(domain=modes, range=[self.shapes[mode] for mode in modes])
        return alt.Shape("mode:N", scale=scale, title=None, legend=alt.Legend(orient="bottom", columns=3))


def inline(values: list[dict[str, Any]]) -> alt.Data:
    """Rows that travel inside the spec."""
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def configured(chart: Any, *, height: int = HEIGHT) -> dict[str, Any]:
    """The chart as a Vega-Lite spec with the lab's look; `height` in pixels, axes included."""
    styled = (
        chart.properties(width=WIDTH, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding"))
        .configure(background="transparent", font="system-ui, 'DejaVu Sans', sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED,
            titleColor=MUTED,
            tickColor=GRID,
            domainColor=MUTED,
            gridColor=GRID,
            titleFontWeight="normal",
            titleFontSize=12,
            labelFontSize=11,
        )
        .configure_legend(labelColor=INK, titleColor=MUTED, labelFontSize=12, symbolSize=90)
        .configure_title(color=INK, fontSize=13, anchor="start", fontWeight="bold")
        .configure_text(color=INK, fontSize=11)
    )
    spec: dict[str, Any] = styled.to_dict()
    return spec
