"""What an undecided gain says: how much the starts could have shown, and only where that is what it lacks."""

from __future__ import annotations

import pytest

from specdec_lab.analysis.verdicts import verdict
from specdec_lab.records.comparison import Gain
from specdec_lab.records.decision import DecisionRules
from specdec_lab.records.verdict import Verdict


def told(judged: Gain) -> Verdict:
    decode = Gain(ratio=1.7, low=1.3, high=2.2, confidence=0.95, floor=0.05, starts=3, baseline_starts=3)
    return verdict(
        decode=decode,
        per_prompt=None,
        is_shown=False,
        judged=judged,
        starts_needed=6,
        identity=None,
        findings=[],
        noise=(0.05, 0.05),
        rules=DecisionRules(),
    )


@pytest.mark.parametrize(
    ("ratio", "least", "said"),
    [
        (1.57, 2.18, "with 3 starts: they lie so far apart that 2.18x or more was needed. About 6 starts"),
        (1.57, 1.40, "with 3 starts. About 6 starts"),
        (None, None, "with 3 starts. About 6 starts"),
    ],
)
def test_an_undecided_gain_says_what_could_have_been_shown(ratio, least, said) -> None:
    found = told(Gain(ratio=ratio, smallest_adoptable=least, starts=3, baseline_starts=3))
    assert found.word == "undecided"
    assert said in found.reasons[0].message
