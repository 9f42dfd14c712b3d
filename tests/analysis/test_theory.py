"""Acceptance theory beside the measurement (M4, M29, M30)."""

from __future__ import annotations

import pytest

from specdec_lab.analysis.theory import added, ceiling, diagnosis, expected_length, theory
from specdec_lab.records.cell import Acceptance


def test_m29_expected_tokens_per_target_pass() -> None:
    assert expected_length(0.8, 4) == pytest.approx(3.3616)
    assert expected_length(0.5, 4) == pytest.approx(1.9375)
    assert expected_length(1.0, 4) == 5.0
    assert expected_length(0.0, 4) == 1.0
    assert ceiling(0.8, 4) == pytest.approx(2.401, abs=1e-3)


def acceptance(drafts: int, drafted: int, accepted: int) -> Acceptance:
    return Acceptance(
        status="measured",
        drafts=drafts,
        draft_tokens=drafted,
        accepted_tokens=accepted,
        acceptance_rate=accepted / drafted,
        acceptance_length=1 + accepted / drafts,
    )


def test_b7_rate_and_length_keep_their_own_denominators() -> None:
    found = added([acceptance(50, 200, 90), acceptance(50, 200, 90)])
    assert found is not None
    assert found.acceptance_rate == pytest.approx(0.45)
    assert found.acceptance_length == pytest.approx(2.8)


def test_m4_step_cost_ratio_and_coverage() -> None:
    found = theory(acceptance(100, 400, 200), k=4, method="eagle3", completion_tokens=400, speedup=1.6)
    assert found is not None
    assert found.tokens_per_step == pytest.approx(2.0)
    assert found.coverage == pytest.approx(0.5)
    assert found.step_cost_ratio == pytest.approx(1.25)
    assert found.break_even_length == pytest.approx(1.25)


def test_the_gravest_status_of_several_starts_wins() -> None:
    found = added([acceptance(50, 200, 90), Acceptance(status="invalid")])
    assert found is not None
    assert found.status == "invalid"
    assert found.acceptance_rate is None


@pytest.mark.parametrize(
    ("rate", "speedup", "method", "code"),
    [
        (0.3, 1.0, "ngram", "poor_fit"),
        (0.8, 1.05, "draft_model", "overhead"),
        (0.02, 0.9, "eagle3", "wrong_head"),
        (0.8, 1.9, "eagle3", None),
    ],
)
def test_m30_diagnosis(rate: float, speedup: float, method: str, code: str | None) -> None:
    found = diagnosis(rate, speedup=speedup, coverage=0.9, method=method)
    assert [one.code for one in found] == ([code] if code else [])


def test_a_ceiling_run_is_called_so() -> None:
    found = theory(acceptance(100, 400, 300), k=4, method="eagle3", completion_tokens=400, speedup=2.0, made_up=True)
    assert found is not None
    assert [one.code for one in found.diagnosis] == ["ceiling_run"]
