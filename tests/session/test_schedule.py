"""The order of server starts: interleaved, opened and closed by the baseline, the same everywhere (B1, D8)."""

from __future__ import annotations

import pytest

from specdec_lab.session.schedule import interleaved, priorities

MODES = {"baseline": 2, "ngram": 2, "draft": 2, "eagle3": 2}


def test_every_start_runs_exactly_once() -> None:
    order = interleaved(MODES, baselines=["baseline"], seed=7)
    assert sorted(order) == sorted((mode, start) for mode in MODES for start in (1, 2))


@pytest.mark.parametrize("replicates", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(5))
def test_d8_the_baseline_opens_and_closes(replicates: int, seed: int) -> None:
    order = interleaved(dict.fromkeys(MODES, replicates), baselines=["baseline"], seed=seed)
    assert order[0] == ("baseline", 1)
    assert order[-1] == ("baseline", replicates)


@pytest.mark.parametrize("replicates", [2, 4, 6])
@pytest.mark.parametrize("seed", range(5))
def test_d8_with_even_replicates_every_mode_has_the_same_mean_place(replicates: int, seed: int) -> None:
    order = interleaved(dict.fromkeys(MODES, replicates), baselines=["baseline"], seed=seed)
    means = {mode: sum(place for place, start in enumerate(order) if start[0] == mode) for mode in MODES}
    assert len(set(means.values())) == 1


def test_replicates_of_a_mode_run_in_their_order() -> None:
    order = interleaved({"baseline": 5, "ngram": 3, "draft": 1}, baselines=["baseline"], seed=1)
    for mode in ("baseline", "ngram", "draft"):
        starts = [start for name, start in order if name == mode]
        assert starts == sorted(starts)


def test_a_mode_with_one_start_lies_between_the_two_baselines() -> None:
    order = interleaved({"baseline": 2, "ngram": 1}, baselines=["baseline"], seed=3)
    assert order == [("baseline", 1), ("ngram", 1), ("baseline", 2)]


def test_two_baselines_both_open_and_both_close() -> None:
    order = interleaved({"base-a": 2, "base-b": 2, "ngram": 2}, baselines=["base-a", "base-b"], seed=3)
    assert {mode for mode, _ in order[:2]} == {"base-a", "base-b"}
    assert {mode for mode, _ in order[-2:]} == {"base-a", "base-b"}


def test_a_further_mode_leaves_the_order_of_the_others() -> None:
    before = interleaved(MODES, baselines=["baseline"], seed=7)
    after = interleaved({**MODES, "suffix": 2}, baselines=["baseline"], seed=7)
    assert [start for start in after if start[0] != "suffix"] == before


def test_the_order_of_the_config_does_not_matter_but_the_seed_does() -> None:
    turned = dict(reversed(MODES.items()))
    assert interleaved(MODES, baselines=["baseline"], seed=7) == interleaved(turned, baselines=["baseline"], seed=7)
    orders = {tuple(interleaved(MODES, baselines=["baseline"], seed=seed)) for seed in range(12)}
    assert len(orders) > 3


def test_priorities_fall_along_the_order() -> None:
    order = interleaved(MODES, baselines=["baseline"], seed=7)
    given = priorities(order)
    assert sorted(order, key=lambda start: -given[start]) == order
    assert min(given.values()) == 1


def test_wrong_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="ngram has 0 replicates"):
        interleaved({"baseline": 2, "ngram": 0}, baselines=["baseline"])
    with pytest.raises(ValueError, match="baseline plain"):
        interleaved({"baseline": 2}, baselines=["plain"])
