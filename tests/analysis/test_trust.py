"""The judge on servers whose truth is known, with few trials; `make trust` runs many (B1, D4, D8)."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_lab.analysis import trust
from specdec_lab.analysis.trust import ALL, TWIN, Truth, World, bars, run


@pytest.mark.parametrize("variation", [0.005, 0.02, 0.05, 0.10])
def test_d8_an_unmarked_placebo_is_not_adopted_at_any_variation(variation: float) -> None:
    assert run(World("", variation, 2, (TWIN,)), 40, seed=1).adopted["twin"] == 0


def test_b1_a_true_gain_of_10_percent_is_found_with_four_starts() -> None:
    found = run(World("", 0.02, 4, (TWIN, Truth("gain10", 0.10))), 40, seed=2)
    assert found.adopted["gain10"] >= 37
    assert found.adopted["twin"] == 0


def test_d4_spoilt_texts_are_not_adopted_however_fast() -> None:
    found = run(World("", 0.02, 2, ALL), 25, seed=3).adopted
    assert [found[name] for name in ("spoilt_early", "spoilt_some", "spoilt_cut")] == [0, 0, 0]
    assert found["gain50"] >= 23


@pytest.mark.parametrize("interleaved", [True, False])
def test_d8_a_drift_is_never_turned_into_a_gain(interleaved: bool) -> None:
    world = World("", 0.01, 4, (TWIN,), drift=0.2, interleaved=interleaved)
    assert run(world, 30, seed=4).adopted["twin"] == 0


def test_a_missed_bar_is_said(tmp_path: Path) -> None:
    world = World("loud", 0.02, 4, (TWIN, Truth("gain10", 0.10)))
    told = bars([(world, trust.Count(200, {"twin": 5, "gain10": 100}))])
    assert len(told) == 2
    assert "twin adopted 5 times" in told[0]
