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
from specdec_lab.analysis.theory import added
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


NO_COUNTERS: dict[str, Any] = {"over": {"counters": {"source": "none", "acceptance": {"status": "absent"}}}}
THREE = {"method": "eagle3", "num_speculative_tokens": 3}


def found(row: CellResult, code: str) -> list[str]:
    """The messages of a row's errors of one code."""
    return [one.message for one in row.findings if one.code == code and one.severity == "error"]


@pytest.mark.parametrize(("rates", "triggered"), [([2000, 2010], True), ([225, 226], True), ([190, 191], False)])
def test_without_counters_a_step_still_gives_no_more_than_its_drafts_and_one(
    folder: Write, rates: list[float], triggered: bool
) -> None:
    row = judged(folder, starts("eagle3", rates, speculative=THREE, **NO_COUNTERS))
    assert bool(found(row, "above_acceptance")) is triggered
    assert word(row) == ("unreliable" if triggered else "faster")
    assert all("3 drafted tokens" in message for message in found(row, "above_acceptance"))


@pytest.mark.parametrize(
    "speculative",
    [
        {"method": "eagle3"},
        {"method": "eagle3", "num_speculative_tokens": 3, "speculative_token_tree": "[(0,)]"},
        {"method": "ngram", "num_speculative_tokens": 3, "num_speculative_tokens_per_batch_size": [[1, 4, 50]]},
        {"method": "EAGLE3", "num-steps": 3, "num-draft-tokens": 64},
    ],
)
def test_where_k_is_not_known_or_means_something_else_it_bounds_nothing(
    folder: Write, speculative: dict[str, Any]
) -> None:
    row = judged(folder, starts("eagle3", [2000, 2010], speculative=speculative, **NO_COUNTERS))
    assert "above_acceptance" not in codes(row)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"drafts": 200, "draft_tokens": 1600, "accepted": 800}, ["8.00 tokens per draft", "length of 5.00"]),
        ({"drafts": 700, "draft_tokens": 2200, "accepted": 1300}, ["3.14 tokens per draft"]),
        ({"drafts": 600, "draft_tokens": 1800, "accepted": 1800}, []),
        ({"drafts": 700, "draft_tokens": 2103, "accepted": 1300}, []),
    ],
)
def test_counters_that_hold_more_than_k_tokens_a_draft_contradict_the_configuration(
    folder: Write, counts: dict[str, int], said: list[str]
) -> None:
    """The third is exactly K of K accepted; the fourth a draft that lay across the window's end."""
    row = judged(folder, starts("eagle3", [90, 91], speculative=THREE, **counts))
    told = " ".join(found(row, "acceptance_inconsistent"))
    assert bool(told) is bool(said)
    assert all(part in told for part in said)
    assert word(row) == ("unreliable" if said else "faster")


def test_an_acceptance_length_above_k_is_no_leave_for_a_speedup_above_it() -> None:
    measured = Acceptance(status="measured", acceptance_length=9.0)
    bound = {"floor": 0.0, "closed_loop": True, "most": 3}
    assert plausibility.above_acceptance(6.0, None, None, measured, **bound)[0].severity == "error"
    assert plausibility.above_acceptance(4.2, None, None, measured, **bound) == []
    assert plausibility.above_acceptance(6.0, 3.0, None, None, **bound) == []
    assert plausibility.above_acceptance(6.0, None, None, None, **{**bound, "most": None}) == []


@pytest.mark.parametrize(("finished", "triggered"), [(20, False), (19, True), (10, True), (0, True)])
def test_fewer_requests_by_the_counters_than_were_sent_are_another_servers(
    folder: Write, finished: int, triggered: bool
) -> None:
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, **counters(requests_finished=finished)}))
    assert bool(found(row, "counters_disagree")) is triggered
    assert word(row) == ("unreliable" if triggered else "faster")


def test_requests_that_failed_need_not_be_among_those_that_the_server_finished(folder: Write) -> None:
    made = starts("eagle3", [90, 91], fail={3: "http_503"}, **{**DRAFTED, **counters(requests_finished=19)})
    assert "counters_disagree" not in codes(judged(folder, made))


def test_counters_that_had_not_come_to_rest_may_lack_the_last_request(folder: Write) -> None:
    moving = counters(requests_finished=19, settled=False)
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, **moving}))
    assert "counters_disagree" in codes(row)
    assert found(row, "counters_disagree") == []


def cached(hits: int | None, queries: int | None = 1000) -> dict[str, Any]:
    return counters(**({} if hits is None else {"prefix_cache_hits": hits, "prefix_cache_queries": queries}))


@pytest.mark.parametrize(
    ("base", "mode", "severity"),
    [
        (cached(0), cached(None), "warn"),
        (cached(None), cached(0), None),
        (cached(400), cached(None), "error"),
        (cached(None), cached(400), "error"),
        (cached(0), cached(0), None),
        (cached(0), cached(0, queries=0), None),
        (cached(None), cached(None), None),
    ],
)
def test_a_share_of_cached_prompts_that_only_one_side_knows_is_remarked(
    folder: Write, base: dict[str, Any], mode: dict[str, Any], severity: str | None
) -> None:
    """No query at all is a cache that is switched off. A baseline that may be warm makes no gain look larger."""
    base["over"]["counters"]["acceptance"] = {"status": "not_applicable"}
    row = judged(folder, starts("eagle3", [90, 91], **{**DRAFTED, **mode}), starts("baseline", [50, 50.2], **base))
    assert [one.severity for one in row.findings if one.code == "warm_cache"] == ([severity] if severity else [])


def test_a_prompt_that_was_sent_twice_is_other_work(folder: Write) -> None:
    made = starts("eagle3", [90, 91], **DRAFTED)
    for one in made:
        one.over = {"rows": [*cell(one)["rows"], {**cell(one)["rows"][0], "decode_tok_s": 500.0}]}
    row = judged(folder, made)
    assert found(row, "work_differs")[0] == "eagle3 r1: 1 of 20 prompts were answered more than once (p0)."
    assert word(row) == "not comparable"


def test_answers_whose_counts_contradict_each_other_are_told(folder: Write) -> None:
    def noted(note: str) -> list[Made]:
        mode = starts("eagle3", [90, 91], **DRAFTED)
        rows = cell(mode[0])["rows"]
        rows[3]["notes"] = [note]
        mode[0].over = {"rows": rows}
        return mode

    row = judged(folder, noted("usage_above_cap"))
    (said,) = [one.message for one in row.findings if one.code == "counts_contradict"]
    assert said.startswith(f"1 of {2 * len(cell(starts('eagle3', [90])[0])['rows'])} answers: the server counted more")
    assert "counts_contradict" not in codes(judged(folder, noted("buffered")))


def test_positions_that_one_start_lacks_are_not_taken_for_zero() -> None:
    known = Acceptance.model_validate({**MEASURED, "per_position": [0.8, 0.5, 0.4]})
    assert added([known, Acceptance.model_validate({**MEASURED, "per_position": []})]).per_position == []
    assert added([known, known]).per_position == pytest.approx([0.8, 0.5, 0.4])
