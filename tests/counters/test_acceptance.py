"""The acceptance formulas and the contradictions that forbid them (case B7)."""

from __future__ import annotations

import pytest

from specdec_lab.counters.acceptance import FORMULAS, Speculation, judge


def test_b7_rate_and_length_each_by_its_own_formula() -> None:
    acceptance = judge(Speculation(drafts=100, draft_tokens=400, accepted_tokens=180))
    assert acceptance.acceptance_rate == pytest.approx(0.45)
    assert acceptance.acceptance_length == pytest.approx(2.8)
    assert set(FORMULAS) == {"acceptance_rate", "acceptance_length", "per_position"}


@pytest.mark.parametrize(
    "spec",
    [
        Speculation(drafts=100, draft_tokens=150, accepted_tokens=180),
        Speculation(drafts=0, draft_tokens=0, accepted_tokens=5),
        Speculation(drafts=100, draft_tokens=50, accepted_tokens=5),
        Speculation(drafts=10, draft_tokens=40, accepted_tokens=20, positions=[20.0]),
        Speculation(drafts=None, draft_tokens=None, accepted_tokens=None, verify_calls=9, generation_tokens=5),
    ],
)
def test_b7_contradicting_counters_give_no_rate(spec: Speculation) -> None:
    acceptance = judge(spec)
    assert acceptance.status == "invalid"
    assert acceptance.acceptance_rate is None
    assert acceptance.acceptance_length is None
    assert "acceptance_inconsistent" in {finding.code for finding in acceptance.findings}
    assert "120" not in acceptance.model_dump_json()


def test_b8_counters_of_an_old_version_without_drafts_give_the_rate_only() -> None:
    acceptance = judge(Speculation(drafts=None, draft_tokens=400, accepted_tokens=180))
    assert acceptance.status == "measured"
    assert acceptance.acceptance_rate == pytest.approx(0.45)
    assert acceptance.acceptance_length is None


def test_b6_nothing_drafted_has_no_rate() -> None:
    acceptance = judge(Speculation(drafts=0, draft_tokens=0, accepted_tokens=0, positions=[0, 0]))
    assert acceptance.status == "not_exercised"
    assert acceptance.acceptance_rate is None


@pytest.mark.parametrize(
    ("positions", "gaps", "word"),
    [
        ([50, 84, 46], frozenset(), "position 1 was accepted more often (0.840) than position 0"),
        ([80, 40, 60], frozenset(), "position 2 was accepted more often (0.600) than position 1"),
        ([0, 80, 54, 46], frozenset({0}), "begin at 1"),
        ([80, 50, 30], frozenset(), "differs from 1 + the sum"),
    ],
)
def test_b3_positions_that_cannot_be_are_not_given(positions: list[float], gaps: frozenset[int], word: str) -> None:
    acceptance = judge(
        Speculation(drafts=100, draft_tokens=400, accepted_tokens=180, positions=positions, gaps=gaps),
    )
    assert (acceptance.status, acceptance.per_position) == ("measured", [])
    assert acceptance.acceptance_length == pytest.approx(2.8)
    (finding,) = acceptance.findings
    assert finding.code == "acceptance_selfcheck"
    assert word in finding.message


def test_b9_a_gap_within_the_positions_is_no_order_of_them() -> None:
    acceptance = judge(
        Speculation(drafts=100, draft_tokens=400, accepted_tokens=180, positions=[90, 60, 0, 30], gaps=frozenset({2})),
    )
    assert acceptance.per_position == pytest.approx([0.9, 0.6, 0, 0.3])
    assert acceptance.findings == []


def test_b6_accepted_tokens_alone_are_not_nothing_drafted() -> None:
    acceptance = judge(Speculation(drafts=None, draft_tokens=None, accepted_tokens=180))
    assert acceptance.status == "measured"
    assert (acceptance.acceptance_rate, acceptance.acceptance_length) == (None, None)
