"""D8, M25: a drift is as grave as what it can change: an error where it could turn a verdict, else a warning."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import decision
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.synthetic import Made, starts
from specdec_lab.records.comparison import CellResult, Comparison

Write = Callable[..., Path]
DRAFTED: dict[str, Any] = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 600,
    "draft_tokens": 1800,
    "accepted": 1400,
}
TIMES = [f"2026-01-01T{hour:02d}:00:00Z" for hour in (0, 2, 4)]
BETWEEN = [f"2026-01-01T{hour:02d}:30:00Z" for hour in (0, 1, 3)]
DRIFTING = [60.0, 57.0, 53.0]
"""About -12 % from the first to the last start, which is more than the noise limit of 10 %."""


def baseline(rates: list[float]) -> list[Made]:
    return starts("baseline", rates, times=TIMES)


def mode(name: str, ratio: float, **more: Any) -> list[Made]:
    return starts(name, [ratio * rate for rate in (59.0, 57.5, 55.0)], times=BETWEEN, **{**DRAFTED, **more})


def row(comparison: Comparison, name: str) -> CellResult:
    return next(one for one in comparison.cells if one.mode == name)


def severities(comparison: Comparison, name: str) -> list[str]:
    return [one.severity for one in row(comparison, name).findings if one.code == "drift"]


def deployed(comparison: Comparison) -> str | None:
    return decision.decide(comparison).workloads[0].mode


def test_a_drift_that_is_small_beside_every_gain_is_a_warning_everywhere(folder: Write) -> None:
    comparison = compare(folder(baseline(DRIFTING) + mode("eagle3", 2.0)))
    assert deployed(comparison) == "eagle3"
    assert severities(comparison, "baseline") == ["warn"]
    assert severities(comparison, "eagle3") == ["warn"]
    (said,) = [one for one in comparison.floors[0].findings if one.code == "drift"]
    assert said.severity == "warn"
    assert "verdict stands" in said.hint
    assert "repeat" in said.hint


def test_a_drift_that_could_make_the_gain_is_an_error_everywhere(folder: Write) -> None:
    comparison = compare(folder(baseline(DRIFTING) + mode("eagle3", 1.15)))
    assert deployed(comparison) == "baseline"
    assert severities(comparison, "baseline") == ["error"]
    assert severities(comparison, "eagle3") == ["error"]
    verdict = row(comparison, "eagle3").verdict
    assert verdict is not None
    assert verdict.word == "unreliable"


def test_a_mode_far_behind_the_one_that_is_deployed_does_not_make_the_drift_graver(folder: Write) -> None:
    comparison = compare(folder(baseline(DRIFTING) + mode("eagle3", 2.0) + mode("ngram", 1.1)))
    assert deployed(comparison) == "eagle3"
    assert severities(comparison, "ngram") == ["error"]
    assert severities(comparison, "baseline") == ["warn"]


def test_a_mode_that_the_drift_could_lift_above_the_one_that_is_deployed_does(folder: Write) -> None:
    comparison = compare(folder(baseline(DRIFTING) + mode("eagle3", 1.36) + mode("ngram", 1.2)))
    assert severities(comparison, "eagle3") == ["warn"]
    assert severities(comparison, "ngram") == ["error"]
    assert severities(comparison, "baseline") == ["error"]


def test_a_clear_loss_is_not_turned_by_a_drift_either(folder: Write) -> None:
    comparison = compare(folder(baseline(DRIFTING) + mode("eagle3", 0.6)))
    assert severities(comparison, "baseline") == ["warn"]
    assert deployed(comparison) == "baseline"


@pytest.mark.parametrize("more", [[], mode("twin", 2.0, placebo=True, speculative=None, drafts=None)])
def test_without_a_mode_that_could_be_deployed_a_drift_stays_an_error(folder: Write, more: list[Made]) -> None:
    assert severities(compare(folder(baseline(DRIFTING) + more)), "baseline") == ["error"]


def test_a_machine_that_keeps_still_has_no_drift_to_tell(folder: Write) -> None:
    comparison = compare(folder(baseline([57.0, 57.2, 57.1]) + mode("eagle3", 2.0)))
    assert severities(comparison, "baseline") == severities(comparison, "eagle3") == []


@pytest.mark.parametrize(
    ("clocks", "said"),
    [
        ([1980, 1980, 1980], "not the card's clock (1980 MHz), so rather other work on the CPUs, or too short a cell"),
        ([1980, 1965, 1980], "not the card's clock (1965 to 1980 MHz)"),
        ([1980, 1980, 1700], "the card's clock was 1700 MHz in the slowest and 1980 MHz in the fastest"),
        ([1700, 1980, 1980], "not the card's clock (1700 to 1980 MHz)"),
        ([1980, 1980, 1910], "not the card's clock (1910 to 1980 MHz)"),
        ([1980, None, 1980], "other work, throttling, or settling clocks"),
    ],
)
def test_a_noise_is_told_with_what_the_cards_clocks_leave_as_its_cause(
    folder: Write, clocks: list[int | None], said: str
) -> None:
    made = baseline(DRIFTING)
    for one, clock in zip(made, clocks, strict=True):
        one.clocks = [clock] if clock else []
    comparison = compare(folder(made + mode("eagle3", 2.0)))
    (message,) = [one.message for one in comparison.floors[0].findings if one.code == "noise_high"]
    assert said in message


def test_d8_a_gain_that_the_trend_takes_back_is_told_in_figures_that_differ(folder: Write) -> None:
    ours = starts("eagle3", [53.56, 53.56, 53.56], times=BETWEEN, **DRAFTED)
    comparison = compare(folder(baseline([52.0, 51.0, 50.0]) + ours))
    (message,) = [one.message for one in row(comparison, "eagle3").findings if one.code == "drift_explains"]
    gain, against, needed = re.findall(r"\d\.\d{3}", message)
    assert float(against) < float(needed) <= float(gain)


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        (["2026-01-03T00:00:00Z", "2026-01-03T00:30:00Z", "2026-01-03T01:00:00Z"], "45 hours away from it"),
        (["2026-03-01T00:00:00Z", "2026-03-01T00:30:00Z", "2026-03-01T01:00:00Z"], "59 days away from it"),
        ([BETWEEN[0], BETWEEN[1], "2026-01-01T14:00:00Z"], "10 hours away from it"),
        (["2025-12-30T00:00:00Z", BETWEEN[1], BETWEEN[2]], "2 days away from it"),
    ],
)
def test_d8_a_start_that_is_far_from_the_baselines_cannot_be_told_from_a_changed_machine(
    folder: Write, ours: list[str], said: str
) -> None:
    late = starts("eagle3", [100.0, 101.0, 102.0], times=ours, **DRAFTED)
    comparison = compare(folder(baseline([57.0, 57.2, 57.1]) + late))
    found = row(comparison, "eagle3")
    assert found.verdict is not None
    assert found.verdict.word == "unreliable"
    (told,) = [one for one in found.findings if one.code == "not_bracketed"]
    assert said in told.message
    assert "Raise replicates by one" in told.hint


def test_d8_a_start_soon_after_the_closing_baseline_is_judged_against_its_trend(folder: Write) -> None:
    late = starts("eagle3", [100.0, 101.0, 102.0], times=[*BETWEEN[:2], "2026-01-01T05:00:00Z"], **DRAFTED)
    found = row(compare(folder(baseline([57.0, 57.2, 57.1]) + late)), "eagle3")
    assert found.verdict is not None
    assert found.verdict.word == "faster"
    assert [one.severity for one in found.findings if one.code == "not_bracketed"] == ["warn"]
