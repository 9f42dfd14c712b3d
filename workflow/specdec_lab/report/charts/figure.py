"""A figure: panels that are drawn side by side, the numbers they are drawn from, and the files for slides."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...records.base import write_text_atomic
from .style import LIGHT, painted

PNG_SCALE = 2.0
_COLUMNS = 3


@dataclass(frozen=True)
class Panel:
    """One small chart; its title says what is special about it, mostly the workload kind."""

    title: str
    spec: dict[str, Any]


@dataclass(frozen=True)
class Figure:
    """One figure of the report. `reading` tells how to read it and is its text for a screen reader."""

    name: str
    title: str
    reading: str
    panels: list[Panel]
    columns: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    """The numbers of the figure as a table."""


def without_legend(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec without legends, for a page that shows one legend for all panels."""
    spec = copy.deepcopy(spec)
    _drop_legends(spec)
    return spec


def svg(spec: dict[str, Any]) -> str:
    """The spec drawn as SVG, without a browser and without a network."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(spec)
    return drawn


def write_files(figure: Figure, folder: Path) -> list[Path]:
    """Write `NAME.svg` and `NAME.png`, all panels with one legend, for slides; gives the paths."""
    import vl_convert

    spec = painted(_together(figure), {**LIGHT})
    spec["background"] = "white"
    svg_path, png_path = folder / f"{figure.name}.svg", folder / f"{figure.name}.png"
    write_text_atomic(svg_path, svg(spec))
    png_path.write_bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))
    return [svg_path, png_path]


def write_placeholder(name: str, title: str, folder: Path) -> Path:
    """A chart that says that there is nothing to draw, where one is expected."""
    from html import escape

    text = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="420" height="120" viewBox="0 0 420 120" role="img">'
        f'<title>{escape(title)}: no data</title><rect width="420" height="120" fill="white"/>'
        f'<text x="16" y="48" font-family="sans-serif" font-size="16" fill="{LIGHT["ink"]}">{escape(title)}</text>'
        f'<text x="16" y="80" font-family="sans-serif" font-size="13" fill="{LIGHT["muted"]}">'
        "No data in this run; the report says why.</text></svg>\n"
    )
    write_text_atomic(folder / f"{name}.svg", text)
    return folder / f"{name}.svg"


def _together(figure: Figure) -> dict[str, Any]:
    parts = []
    config: dict[str, Any] = {}
    for panel in figure.panels:
        part = copy.deepcopy(panel.spec)
        config = part.pop("config", config)
        part.pop("$schema", None)
        part["title"] = panel.title
        parts.append(part)
    return {
        "$schema": figure.panels[0].spec["$schema"],
        "title": {"text": figure.title, "fontSize": 16, "offset": 12},
        "config": config,
        "concat": parts,
        "columns": _COLUMNS,
        "spacing": 28,
    }


def _drop_legends(node: Any) -> None:
    if isinstance(node, dict):
        for channel in ("color", "shape", "strokeDash", "opacity"):
            value = node.get(channel)
            if isinstance(value, dict) and "field" in value:
                value["legend"] = None
        for value in node.values():
            _drop_legends(value)
    elif isinstance(node, list):
        for value in node:
            _drop_legends(value)
