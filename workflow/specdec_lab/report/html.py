"""`report.html`: one file that opens by double click, without a network; and the charts as files for slides."""

from __future__ import annotations

import json
import logging
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from .. import __version__
from ..analysis.sentences import headline
from ..records.base import plain_text, write_text_atomic
from . import sections, texts
from .charts import figures
from .charts.figure import Figure, svg, without_legend, write_files, write_placeholder
from .charts.style import BASELINE_SHAPE, DARK, LIGHT, ModeScale, css
from .files import CHARTS
from .glossary import TERMS, WORDS
from .published import published
from .source import Results, read

_LOG = logging.getLogger(__name__)


def write(results_dir: Path, out: Path) -> None:
    """Write the report of a results folder to `out`, and its charts as SVG and PNG to `charts/` beside it.

    UserError when the comparison or the decision is not there. The page holds everything: styles, scripts, charts,
    texts; a content security policy in it forbids any connection.
    """
    results = read(results_dir)
    drawn = figures(results)
    write_text_atomic(out, render(results, drawn))
    folder = out.parent / "charts"
    for figure in drawn:
        write_files(figure, folder)
    for name in CHARTS.keys() - {figure.name for figure in drawn}:
        write_placeholder(name, CHARTS[name], folder)
    _LOG.info("report with %d figures written to %s", len(drawn), out)


def render(results: Results, drawn: list[Figure]) -> str:
    """The page as text."""
    import vl_convert
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["json"] = _json
    assets = files(__package__) / "assets"
    page = environment.from_string((assets / "page.html").read_text(encoding="utf-8"))
    scale = ModeScale(results.modes, results.baselines)
    found = sections.remarks(results)
    rows = sections.table(results)
    text = page.render(
        name=results.comparison.name,
        version=__version__,
        css=(assets / "page.css").read_text(encoding="utf-8"),
        js=(assets / "page.js").read_text(encoding="utf-8"),
        library=_inert(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")),
        light=css(LIGHT),
        dark=css(DARK),
        rules=results.decision.rules,
        headline=headline(results.decision),
        answers=sections.answers(results),
        routes=sections.routes(results),
        dynamic_k=results.decision.dynamic_k,
        commands=sections.commands(results),
        floors=sections.floors(results),
        problems=[remark for remark in found if remark.severity != "info"],
        notes=[remark for remark in found if remark.severity == "info"],
        failed=sections.failed(results),
        unreadable=results.unreadable,
        rows=rows,
        costed=any(row["cost"] for row in rows),
        metered=any(row["energy"] for row in rows),
        kinds=results.kinds,
        modes=results.modes,
        legend=[(mode, scale.colours[mode], scale.shapes[mode]) for mode in results.modes],
        figures=[_figure(figure) for figure in drawn],
        theory=sections.theory(results),
        diagnoses=sections.diagnoses(results),
        baseline_shape=BASELINE_SHAPE,
        expectations=sections.expectations(results),
        published=published(results),
        confounders=results.comparison.confounders,
        identity=sections.identity(results),
        texts=texts.side_by_side(results),
        stack=sections.stack(results),
        packages=results.comparison.stack.engine.packages if results.comparison.stack else {},
        terms=TERMS,
        words=WORDS,
    )
    return plain_text(text)


def _figure(figure: Figure) -> dict[str, Any]:
    panels = []
    for number, panel in enumerate(figure.panels):
        spec = without_legend(panel.spec)
        panels.append({"title": panel.title, "spec": spec, "svg": _scoped(svg(spec), f"{figure.name}-{number}")})
    return {
        "id": sections.slug("figure", figure.name),
        "name": figure.name,
        "title": figure.title,
        "reading": figure.reading,
        "panels": panels,
        "columns": figure.columns,
        "rows": figure.rows,
    }


def _scoped(drawing: str, name: str) -> str:
    """The drawing with ids of its own, so that two drawings on one page do not clip each other; scaled by its box."""
    drawing = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', drawing)
    drawing = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", drawing)
    return re.sub(r"<svg ", '<svg aria-hidden="true" focusable="false" ', drawing, count=1)


def _json(value: Any) -> Any:
    """JSON for a script element: nothing in it can end the element."""
    from markupsafe import Markup

    return Markup(json.dumps(value, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"))


def _inert(script: str) -> str:
    """A script that can stand inside a script element."""
    return re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE).replace("<!--", "<\\!--")
