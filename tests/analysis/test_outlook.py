"""Published results, claims, expectations and sweeps beside what was measured (M34, M39, M40)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.outlook import expectations, published
from specdec_lab.analysis.synthetic import starts
from specdec_lab.records.decision import Claim, Plan, PlannedMode, Sweep
from specdec_lab.records.spec import CellSpec, Load

Write = Callable[..., Path]
DRAFTED: dict[str, Any] = {"drafts": 700, "draft_tokens": 2100, "accepted": 1300}


def speculative(method: str, k: int = 3) -> dict[str, Any]:
    return {**DRAFTED, "speculative": {"method": method, "num_speculative_tokens": k}}


def plan(modes: list[PlannedMode], **more: Any) -> Plan:
    base = PlannedMode(name="baseline", against=None)
    cells = [CellSpec(kind="chat", load=Load(concurrency=4), warmup=4)]
    return Plan(name="made", modes=[base, *modes], cells=cells, **more)


def test_m39_every_published_result_names_its_source_and_none_is_of_a_disputed_baseline() -> None:
    assert len(published()) > 20
    assert all(one.source and 0 < one.speedup_low <= one.speedup_high < 5 for one in published())
    assert not any("scout" in one.model.lower() for one in published())


def test_m39_a_measured_result_is_held_against_the_nearest_published_ones(folder: Write) -> None:
    cells = starts("baseline", [50, 50.1], concurrency=1) + starts(
        "eagle3", [85, 86], concurrency=1, **speculative("eagle3")
    )
    found = compare(folder(cells)).references
    assert found
    assert found[0].reference.method == "eagle3"
    assert "published" in found[0].remark
    assert "another model" in found[0].remark


def test_m39_a_claim_stands_beside_the_measurement_and_decides_nothing(folder: Write) -> None:
    claims = [Claim(mode="eagle3", text="up to 3x", speedup=3.0, source="a vendor's page")]
    given = plan([PlannedMode(name="eagle3", against="baseline", method="eagle3", k=3)], claims=claims)
    cells = starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], **speculative("eagle3"))
    (match,) = compare(folder(cells, plan=given)).claims
    assert match.measured_best is not None
    assert 1.7 < match.measured_best < 1.9
    assert "Less than claimed" in match.remark


def test_m40_lookup_that_wins_on_open_chat_is_pointed_out(folder: Write) -> None:
    cells = starts("baseline", [50, 50.1]) + starts("ngram", [90, 91], **speculative("ngram"))
    (surprise,) = compare(folder(cells)).surprises
    assert "not expected" in surprise.message
    assert "repetitive" in surprise.hint


def test_m40_an_expected_win_is_no_surprise(folder: Write) -> None:
    cells = starts("baseline", [50, 50.1], kind="code") + starts("ngram", [90, 91], kind="code", **speculative("ngram"))
    assert compare(folder(cells)).surprises == []
    assert {one.kind for one in expectations()} >= {"code", "chat", "json"}


def test_m34_a_sweep_of_k_names_the_smallest_k_within_the_noise_of_the_best(folder: Write) -> None:
    speeds = {2: [80, 80.4], 3: [90, 90.5], 4: [90.2, 90.6], 6: [85, 85.3]}
    modes = [PlannedMode(name=f"k{k}", against="baseline", method="eagle3", k=k) for k in speeds]
    sweep = Sweep(axis="k", method="eagle3", points={f"k{k}": k for k in speeds})
    cells = starts("baseline", [50, 50.2])
    for k, rates in speeds.items():
        cells += starts(f"k{k}", rates, **speculative("eagle3", k))
    (curve,) = compare(folder(cells, plan=plan(modes, sweeps=[sweep]))).curves
    assert [point.x for point in curve.points] == [2, 3, 4, 6]
    assert curve.best_x == 3
