"""The charts show the numbers of the comparison, in one visual language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.report.charts import figures
from specdec_lab.report.charts.acceptance import constant_chance
from specdec_lab.report.charts.figure import Figure, without_legend
from specdec_lab.report.charts.style import DARK, LIGHT, ModeScale, painted
from specdec_lab.report.source import read


@pytest.fixture(scope="module")
def drawn(results: Path) -> dict[str, Figure]:
    return {figure.name: figure for figure in figures(read(results))}


def values(figure: Figure, panel: int = 0) -> list[dict[str, Any]]:
    """Every inline row of one panel."""
    found: list[dict[str, Any]] = []

    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("values"), list):
                found.extend(row for row in node["values"] if isinstance(row, dict))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(figure.panels[panel].spec)
    return found


def test_every_asked_chart_is_drawn_when_there_is_data(drawn: dict[str, Figure]) -> None:
    assert list(drawn) == [
        "decode_speedup",
        "aggregate_gain",
        "throughput_per_user",
        "first_token",
        "decode_share",
        "acceptance",
        "k_sweep",
        "first_differences",
        "timeline",
    ]


def test_m31_speedup_has_intervals_the_noise_band_and_the_crossover(results: Path, drawn: dict[str, Figure]) -> None:
    comparison = read(results).comparison
    row = next(r for r in comparison.cells if (r.kind, r.load, r.mode) == ("code", "c1", "ngram"))
    assert row.decode is not None
    rows = values(drawn["decode_speedup"])
    point = next(r for r in rows if r.get("mode") == "ngram" and r.get("load") == "1")
    assert (point["ratio"], point["low"], point["high"]) == (row.decode.ratio, row.decode.low, row.decode.high)
    assert point["band_high"] == 1 + (row.decode.floor or 0)
    assert {"load": "16", "label": "no longer pays"} in rows


def test_m29_the_formulas_curve_has_the_measured_length() -> None:
    chance = constant_chance([0.8, 0.64, 0.512, 0.4096])
    assert chance == pytest.approx(0.8, abs=1e-9)
    assert sum(constant_chance([0.9, 0.5, 0.2]) ** place for place in (1, 2, 3)) == pytest.approx(1.6)
    assert constant_chance([0.0, 0.0]) == pytest.approx(0.0, abs=1e-9)
    assert constant_chance([1.0, 1.0]) == pytest.approx(1.0, abs=1e-9)


def test_each_figure_tells_how_to_read_it_and_has_its_numbers(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        assert len(figure.reading) > 40
        assert figure.rows
        assert {len(row) for row in figure.rows} == {len(figure.columns)}


def test_a_mode_keeps_its_colour_and_shape_and_the_baseline_is_grey() -> None:
    scale = ModeScale(["baseline", "a", "b"], ["baseline"])
    assert scale.colours["baseline"] == "var(--baseline)"
    assert scale.colours["a"] != scale.colours["b"]
    assert scale.shapes["a"] != scale.shapes["b"]
    many = ModeScale([f"m{n}" for n in range(9)], [])
    assert len(many.colours) == 9


def test_files_have_real_colours_and_pages_have_variables(drawn: dict[str, Figure]) -> None:
    spec = drawn["decode_speedup"].panels[0].spec
    assert "var(--ink)" in json.dumps(spec)
    for palette in (LIGHT, DARK):
        assert "var(--" not in json.dumps(painted(spec, palette))
    assert LIGHT.keys() == DARK.keys()


def test_a_page_shows_one_legend_for_all_panels(drawn: dict[str, Figure]) -> None:
    for figure in drawn.values():
        for panel in figure.panels:
            assert '"orient": "bottom"' not in json.dumps(without_legend(panel.spec))
