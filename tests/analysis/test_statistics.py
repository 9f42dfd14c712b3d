"""The formulas of gains, floors and levels, against values worked out by hand (B1, M25)."""

from __future__ import annotations

import math

import pytest

from specdec_lab.analysis.statistics import (
    PRIOR_DEGREES,
    PRIOR_SD,
    Spread,
    fisher_more,
    gain,
    geometric_mean,
    level_for,
    logs,
    noise_floor,
    pooled,
    shown,
    standard_error,
    start_spread,
    starts_needed,
)


def test_the_gain_is_a_ratio_of_geometric_means_and_swaps_to_its_reciprocal() -> None:
    spread = pooled([logs([100, 121]), logs([50, 50])])
    there = gain([100, 121], [50, 50], spread=spread, floor=0.0, margin=0.05, confidence=0.95)
    back = gain([50, 50], [100, 121], spread=spread, floor=0.0, margin=0.05, confidence=0.95)
    assert there.ratio == pytest.approx(2.2)
    assert there.ratio * back.ratio == pytest.approx(1.0)  # type: ignore[operator]
    assert there.low == pytest.approx(1 / back.high)  # type: ignore[operator]


def test_the_interval_is_refused_with_one_start_on_either_side() -> None:
    spread = pooled([logs([50, 51])])
    for mode, base in (([90], [50, 51]), ([90, 91], [50]), ([], [50, 51])):
        found = gain(mode, base, spread=spread, floor=None, margin=0.05, confidence=0.95)
        assert found.low is None
        assert found.refused


def test_the_floor_of_two_starts_is_their_gap_and_does_not_grow_with_their_number() -> None:
    assert noise_floor([50, 55]) == pytest.approx(0.10)
    assert start_spread([50, 55, 52]) == pytest.approx(0.10)
    assert noise_floor([50, 55] * 10) == pytest.approx(math.exp(math.sqrt(2 * 20 / 19) * math.log(1.1) / 2) - 1)
    assert noise_floor([50]) is None
    assert noise_floor([None, 50, 55]) == pytest.approx(0.10)


def test_the_variance_is_pooled_over_modes_and_moderated_by_the_prior() -> None:
    spread = pooled([[0.0, 0.02], [1.0, 1.04], [5.0]])
    assert spread.degrees == 2
    assert spread.sd == pytest.approx(math.sqrt((0.0002 + 0.0008) / 2))
    expected = (PRIOR_DEGREES * PRIOR_SD**2 + 0.001) / (PRIOR_DEGREES + 2)
    assert spread.moderated == pytest.approx(math.sqrt(expected))
    assert standard_error(2, 4, spread) == pytest.approx(spread.moderated * math.sqrt(0.75))
    assert pooled([[1.0]]).sd is None


def test_two_starts_that_agree_by_luck_do_not_claim_certainty() -> None:
    mode, base = [55.0, 55.001], [50.0, 50.001]
    spread = pooled([logs(mode), logs(base)])
    measured = gain(mode, base, spread=spread, floor=noise_floor(base), margin=0.05, confidence=0.95)
    assert not shown(measured, mode, base, spread)
    assert starts_needed(1.1, spread, 2) is not None


def test_a_start_below_the_baselines_best_is_not_shown_whatever_the_mean() -> None:
    mode, base = [200.0, 49.0], [50.0, 50.1]
    spread = Spread(sd=0.001, degrees=20)
    measured = gain(mode, base, spread=spread, floor=0.0, margin=0.05, confidence=0.95)
    assert not shown(measured, mode, base, spread)


def test_the_level_is_stricter_with_few_starts_and_much_noise() -> None:
    quiet, loud = Spread(0.01, 6), Spread(0.08, 6)
    assert level_for(2, quiet) < level_for(4, quiet)
    assert level_for(4, loud) < level_for(2, quiet)


def test_missing_and_zero_are_no_speeds() -> None:
    assert logs([None, 0.0, math.e]) == [1.0]
    assert geometric_mean([None, 4.0, 9.0]) == pytest.approx(6.0)
    assert geometric_mean([None]) is None


def test_fisher_against_known_values() -> None:
    scipy_stats = pytest.importorskip("scipy.stats")
    for table in ((20, 20, 0, 20), (2, 20, 2, 20), (5, 24, 1, 24), (0, 10, 3, 10)):
        ours, n, theirs, m = table
        known = scipy_stats.fisher_exact([[ours, n - ours], [theirs, m - theirs]], alternative="greater").pvalue
        assert fisher_more(*table) == pytest.approx(known)
    assert fisher_more(0, 0, 0, 0) == 1.0


def test_sums_do_not_depend_on_the_version_of_python():
    # Python's own sum() rounds otherwise since 3.12; ten times 0.1 is where it shows.
    tenth = math.exp(0.1)
    assert geometric_mean([tenth] * 10) == math.exp(math.fsum([math.log(tenth)] * 10) / 10)
    assert geometric_mean([tenth] * 10) == tenth
