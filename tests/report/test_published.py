"""What others publish, beside what was measured: a line for each method, and every row behind it (M39)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdec_lab.records.comparison import Reference, ReferenceMatch
from specdec_lab.report import source
from specdec_lab.report.published import COLUMNS, published


def match(mode: str, kind: str, measured: float, **more: object) -> ReferenceMatch:
    told = {"model": "Vicuna-7B", "engine": "x", "hardware": "A100", "workload": "any", "source": "a page"}
    one = Reference(**{**told, "method": "ngram", "speedup_low": 1.5, "speedup_high": 1.5, **more})
    low, high = one.speedup_low * 0.8, one.speedup_high * 1.2
    alike = low <= measured <= high
    return ReferenceMatch(
        mode=mode, kind=kind, load="c1", measured=measured, reference=one, looks_alike=alike, remark=""
    )


@pytest.fixture
def results(results: Path) -> source.Results:
    return source.read(results)


def with_matches(results: source.Results, matches: list[ReferenceMatch]) -> source.Results:
    return replace(results, comparison=results.comparison.model_copy(update={"references": matches}))


def test_a_method_has_one_line_however_many_rows_it_has(results: source.Results) -> None:
    other = {"model": "Qwen3-8B", "speedup_low": 1.2, "speedup_high": 1.3}
    matches = []
    for mode in ("ngram", "draft_k2"):
        for kind, measured in (("code", 1.6), ("chat", 0.9)):
            matches += [match(mode, kind, measured), match(mode, kind, measured, **other)]
    matches.append(match("draft_k4", "code", 0.5, method="draft_model", speedup_low=1.8, speedup_high=1.9))
    made = published(with_matches(results, matches))
    assert made["lines"] == [
        (
            "ngram",
            "0.90× (draft_k2, chat) to 1.60× (draft_k2, code) here; nearest published: 1.50× with Vicuna-7B on A100 "
            "(a page). 2 of 4 rows are near what is published for them.",
        ),
        (
            "draft_model",
            "0.50× here; nearest published: 1.80× to 1.90× with Vicuna-7B on A100 (a page). "
            "0 of 1 rows are near what is published for them.",
        ),
    ]
    assert len(made["rows"]) == len(matches)
    assert made["rows"][0] == ["ngram", "code", "1", "1.60×", "1.50×", "like it", "Vicuna-7B", "A100", "a page"]
    assert made["rows"][1][5] == "above it"
    assert made["rows"][-1][5] == "below it"
    assert {len(row) for row in made["rows"]} == {len(COLUMNS)}


def test_nothing_published_is_no_section(results: source.Results) -> None:
    assert published(with_matches(results, []))["lines"] == []
