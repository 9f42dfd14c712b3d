"""B4: each gate has a fixture that triggers it and one that must not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import plausibility
from specdec_lab.analysis.cells import parse_cell
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.findings import CODES, finding
from specdec_lab.analysis.synthetic import Made, cell, starts
from specdec_lab.records.cell import Acceptance
from specdec_lab.records.comparison import CellResult

Write = Callable[..., Path]
DRAFTED: dict[str, Any] = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted": 1300,
}
MEASURED = {
    "status": "measured",
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted_tokens": 1300,
    "acceptance_rate": 0.62,
    "acceptance_length": 2.86,
}


def counters(**more: Any) -> dict[str, Any]:
    return {"over": {"counters": {"source": "metrics", "acceptance": MEASURED, **more}}}


def judged(folder: Write, mode: list[Made], base: list[Made] | None = None) -> CellResult:
    comparison = compare(folder((base or starts("baseline", [50, 50.2])) + mode))
    return next(row for row in comparison.cells if row.mode == mode[0].mode and row.load == f"c{mode[0].concurrency}")


def codes(row: CellResult) -> set[str]:
    return {found.code for found in row.findings}


def word(row: CellResult) -> str:
    return row.verdict.word if row.verdict else ""


def test_a_sound_gain_passes_every_gate(folder: Write) -> None:
    row = judged(folder, starts("eagle3", [90, 91], **DRAFTED))
    assert word(row) == "faster"
    assert not [found for found in row.findings if found.severity != "info"]


@pytest.mark.parametrize(("rates", "triggered"), [([160, 161], True), ([120, 121], False)])
def test_a_speedup_above_the_acceptance_length_is_impossible(
    folder: Write, rates: list[float], triggered: bool
) -> None:
    row = judged(folder, starts("eagle3", rates, **DRAFTED))
    assert ("above_acceptance" in codes(row)) is triggered
    assert word(row) == ("unreliable" if triggered else "faster")


@pytest.mark.parametrize(
    ("kind", "median", "total", "length", "triggered"),
    [("json c1", 2.11, 1.45, 1.90, False), ("code c16", 2.85, 2.76, 2.04, True), ("no pairs", 2.11, None, 1.90, True)],
)
def test_a_median_request_may_gain_more_than_the_mean_step_gives(
    kind: str, median: float, total: float | None, length: float, triggered: bool
) -> None:
    """Gains of n-gram on one H200: short answers that copy their prompt pull the median above the mean over steps."""
    accepted = round((length - 1) * 1000)
    measured = Acceptance(status="measured", drafts=1000, accepted_tokens=accepted, acceptance_length=length)
    found = plausibility.above_acceptance(median, total, None, measured, floor=0.02, closed_loop=True)
    assert [one.code for one in found] == (["above_acceptance"] if triggered else []), kind


def test_a_high_rate_on_few_drafts_promises_nothing(folder: Write) -> None:
    few = {**DRAFTED, "drafts": 50, "draft_tokens": 150, "accepted": 140}
    row = judged(folder, starts("eagle3", [53, 53.2], **few))
    assert row.theory is not None
    assert row.theory.measured_length == pytest.approx(3.8)
    assert row.theory.tokens_per_step is not None
    assert row.theory.tokens_per_step < 1.1
    assert row.theory.coverage is not None
    assert row.theory.coverage < 0.1
    assert "low_coverage" in {found.code for found in row.theory.diagnosis}
    assert "above_tokens_per_step" not in codes(row)
    assert "above_tokens_per_step" in codes(judged(folder, starts("eagle3", [90, 91], **few)))


@pytest.mark.parametrize(("generated", "triggered"), [(2020, False), (2035, False), (2600, True), (900, True)])
def test_counters_against_usage(folder: Write, generated: int, triggered: bool) -> None:
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, **counters(generation_tokens=generated)}))
    assert ("counters_disagree" in codes(row)) is triggered


def test_a_counter_reset_is_named_and_used_for_nothing(folder: Write) -> None:
    invalid = {
        "source": "metrics",
        "acceptance": {
            "status": "invalid",
            "findings": [{"code": "counter_reset", "severity": "error", "message": "drafts fell from 500 to 30"}],
        },
    }
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, "over": {"counters": invalid}}))
    assert "counter_reset" in codes(row)
    assert word(row) == "unreliable"
    assert row.acceptance is not None
    assert row.acceptance.acceptance_rate is None


@pytest.mark.parametrize(("finished", "triggered"), [(20, False), (23, True)])
def test_foreign_traffic(folder: Write, finished: int, triggered: bool) -> None:
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, **counters(requests_finished=finished)}))
    assert ("foreign_traffic" in codes(row)) is triggered


@pytest.mark.parametrize(("bound", "triggered"), [(True, True), (False, False)])
def test_a_client_at_its_ceiling(folder: Write, bound: bool, triggered: bool) -> None:
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, "over": {"client": {"client_bound": bound}}}))
    assert ("client_bound" in codes(row)) is triggered
    assert (word(row) == "unreliable") is triggered


def test_a_client_at_its_ceiling_in_the_baseline_spoils_every_ratio(folder: Write) -> None:
    base = starts("baseline", [50, 50.2], over={"client": {"client_bound": True}})
    assert word(judged(folder, starts("eagle3", [90, 91], **DRAFTED), base)) == "unreliable"


def test_unequal_work(folder: Write) -> None:
    assert "unequal_work" in codes(judged(folder, starts("eagle3", [90, 91], tokens=[60] * 20, **DRAFTED)))
    assert "unequal_work" not in codes(judged(folder, starts("eagle3", [90, 91], tokens=[100] * 20, **DRAFTED)))


def test_survivors_only(folder: Write) -> None:
    row = judged(folder, starts("eagle3", [90, 91], fail={3: "deadline_total", 5: "http_503"}, **DRAFTED))
    assert word(row) == "unreliable"
    assert any("deadline_total, http_503" in found.message for found in row.findings)


def noisy(mode: str, number: int, seed: int, level: float, **more: Any) -> Made:
    rng = random.Random(seed)
    at = f"2026-01-01T00:{number:02d}:{'00' if mode == 'baseline' else '30'}Z"
    rates = [level * rng.uniform(0.9, 1.1) for _ in range(20)]
    return Made(mode, number, rates, against=None if mode == "baseline" else "baseline", started_at=at, **more)


def test_identical_numbers_for_two_modes_are_a_copied_file(folder: Write) -> None:
    base = [noisy("baseline", 1, 1, 50), noisy("baseline", 2, 2, 50)]
    copied = [noisy("eagle3", 1, 3, 90, **DRAFTED), noisy("eagle3", 2, 3, 90, **DRAFTED)]
    assert word(judged(folder, copied, base)) == "unreliable"
    own = [noisy("draft", 1, 4, 90, **DRAFTED), noisy("draft", 2, 5, 90, **DRAFTED)]
    assert "identical_numbers" not in codes(judged(folder, own, base))


def seen_again(rate: float, method: str) -> list[Made]:
    """The same prompts at concurrency 1 and then 4 in one server; acceptance `rate` in the second cell."""
    cells = []
    for number in (1, 2):
        for order, (concurrency, accepted) in enumerate(((1, 800), (4, int(2100 * rate)))):
            made = starts("suffix", [90, 91], concurrency=concurrency, order=order, **DRAFTED)[number - 1]
            made.speculative, made.accepted = {"method": method, "num_speculative_tokens": 3}, accepted
            cells.append(made)
    return cells


@pytest.mark.parametrize(
    ("rate", "method", "triggered"), [(0.7, "suffix", True), (0.39, "suffix", False), (0.7, "eagle3", False)]
)
def test_a_drafter_that_remembers_earlier_repeats(folder: Write, rate: float, method: str, triggered: bool) -> None:
    base = starts("baseline", [50, 50.2], concurrency=1) + starts("baseline", [50, 50.2], concurrency=4)
    comparison = compare(folder(base + seen_again(rate, method)))
    later = next(row for row in comparison.cells if row.mode == "suffix" and row.load == "c4")
    first = next(row for row in comparison.cells if row.mode == "suffix" and row.load == "c1")
    assert ("remembers_repeats" in codes(later)) is triggered
    assert (word(later) == "unreliable") is triggered
    assert word(first) == "faster"


def test_a_baseline_that_drafts_is_no_baseline(folder: Write) -> None:
    base = starts("baseline", [50, 50.2], over=counters()["over"])
    row = judged(folder, starts("eagle3", [90, 91], **DRAFTED), base)
    assert "baseline_speculates" in codes(row)
    assert word(row) == "not comparable"


def test_clocks_apart_are_said(folder: Write) -> None:
    base = starts("baseline", [50, 50.2], clocks=[1900])
    assert "clocks_differ" in codes(judged(folder, starts("eagle3", [90, 91], clocks=[1700], **DRAFTED), base))
    assert "clocks_differ" not in codes(judged(folder, starts("eagle3", [90, 91], clocks=[1890], **DRAFTED), base))


def test_a_placebo_that_gains_throws_doubt_on_its_whole_cell(folder: Write) -> None:
    twin = starts("twin", [90, 91], placebo=True, times=["2026-01-01T00:01:45Z", "2026-01-01T00:01:50Z"])
    row = judged(folder, starts("eagle3", [90, 91.5], **DRAFTED), starts("baseline", [50, 50.2]) + twin)
    assert "placebo_gains" in codes(row)
    assert word(row) == "unreliable"


def test_a_wide_spread_of_a_placebo_widens_the_noise_floor(folder: Write) -> None:
    twin = starts("twin", [49, 52], placebo=True)
    row = judged(folder, starts("eagle3", [90, 91], **DRAFTED), starts("baseline", [50, 50.2]) + twin)
    assert row.decode is not None
    assert row.decode.floor == pytest.approx(52 / 49 - 1)


def test_the_list_of_codes_is_closed() -> None:
    with pytest.raises(KeyError):
        finding("no_such_code", "")
    assert all(meaning.severity in ("info", "warn", "error") for meaning in CODES.values())


def held(requests: int, concurrency: int) -> list[str]:
    """Codes of a cell of equally long requests in a closed loop of that concurrency."""
    content = cell(Made("baseline", 1, [100.0] * requests, concurrency=concurrency))
    for place, row in enumerate(content["rows"]):
        row["sent_s"] = place // concurrency * row["e2e_s"]
    measured = parse_cell(content, Path("cell.json"), "baseline", 1)
    return [one.code for one in plausibility.gates([measured], [measured], acceptance=None, speculative=False)]


@pytest.mark.parametrize(
    ("requests", "concurrency", "told"), [(64, 64, True), (80, 64, False), (64, 16, False), (2, 1, False)]
)
def test_a_load_that_runs_empty_for_most_of_the_time_is_told(requests: int, concurrency: int, told: bool) -> None:
    assert ("load_not_held" in held(requests, concurrency)) is told
