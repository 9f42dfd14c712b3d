"""A study with acceptance that was set says what a step costs, and never what to deploy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import compare, decision
from specdec_lab.analysis.synthetic import Made
from specdec_lab.records.decision import Decision

Write = Callable[..., Path]
SET = {"method": "eagle3", "num_speculative_tokens": 3, "rejection_sample_method": "synthetic"}


def decided(folder: Write, options: dict[str, Any], *, lossy: bool, rate: float = 100.0) -> Decision:
    base = [Made("baseline", r, [50.0] * 20, concurrency=c, against=None) for r in (1, 2) for c in (1, 8)]
    mode = [
        Made("head", r, [rate / (1 if c == 1 else 2)] * 20, concurrency=c, speculative=options, lossy=lossy,
             drafts=700, draft_tokens=2100, accepted=1400)
        for r in (1, 2) for c in (1, 8)
    ]  # fmt: skip
    results = folder([*base, *mode])
    return decision.decide(compare.compare(results))


def test_only_set_acceptance_is_a_study_of_costs(folder: Write) -> None:
    (one,) = decided(folder, SET, lossy=True).workloads
    assert one.ceiling
    assert not one.speculative
    assert one.sentence == "A ceiling study on chat: acceptance was set, not earned, so nothing here is to be deployed."
    # 3 tokens a step and 2.00x (1.00x): a step costs 1.5 (3) plain ones.
    said = one.why.replace("At concurrency ", "").split(" these acceptance lengths break even: ")
    assert said[0] == "1"
    assert said[1].startswith("head 1.")
    assert "(2.00x with 3.00)" in said[1]
    assert said[1].endswith("8")
    assert said[2].startswith("head ")
    assert "(1.00x with 3.00)" in said[2]
    assert "acceptance length that your traffic reaches" in one.next_step


@pytest.mark.parametrize("lossy", [True, False])
def test_earned_acceptance_is_not(folder: Write, lossy: bool) -> None:
    earned = {key: value for key, value in SET.items() if key != "rejection_sample_method"}
    (one,) = decided(folder, earned, lossy=lossy).workloads
    assert not one.ceiling
    assert "ceiling" not in one.sentence


def test_the_headline_names_the_study(folder: Write) -> None:
    from specdec_lab.analysis.sentences import headline

    assert headline(decided(folder, SET, lossy=True)) == "Nothing to deploy from the ceiling study on chat."
