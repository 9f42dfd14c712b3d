"""Cases D1 to D9 and B6, on hand-made result folders, through the same code as real ones."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import decision, tables
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.synthetic import Made, flipped, plain_text, starts
from specdec_lab.records.comparison import CellResult, Comparison

Write = Callable[..., Path]
SPECULATIVE: dict[str, Any] = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted": 1300,
}
"""About 2020 tokens in 720 steps: 2.8 tokens per step."""


def row(comparison: Comparison, mode: str) -> CellResult:
    return next(one for one in comparison.cells if one.mode == mode)


def at_hours(*hours: int) -> list[str]:
    return [f"2026-01-01T{hour:02d}:00:00Z" for hour in hours]


def word(comparison: Comparison, mode: str = "eagle3") -> str:
    verdict = row(comparison, mode).verdict
    assert verdict is not None
    return verdict.word


def codes(one: CellResult) -> set[str]:
    reasons = one.verdict.reasons if one.verdict else []
    return {found.code for found in [*one.findings, *reasons, *(one.identity.reasons if one.identity else [])]}


def test_d1_one_and_no_token_have_no_rate_and_pull_no_median(folder: Write) -> None:
    rows = {"tokens": [1, 0, 50], "ttfts": [0.2, None, 0.1]}
    results = folder([Made("baseline", r, [None, None, 50.0], against=None, **rows) for r in (1, 2)])
    base = row(compare(results), "baseline")
    assert base.p50_decode_tok_s == pytest.approx(50.0)
    assert base.decode_n == 2
    assert "summary_of_few" in codes(base)
    assert base.p50_ttft_s == pytest.approx(0.15)


def test_d3_a_shorter_answer_is_not_a_speedup(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    base = [Made("baseline", r, [50.0] * 20, against=None, tokens=[600] * 20, texts=texts) for r in (1, 2)]
    short = [
        Made("eagle3", r, [41.7] * 20, tokens=[150] * 20, texts=[t[:300] for t in texts], **SPECULATIVE) for r in (1, 2)
    ]
    found = row(compare(folder(base + short)), "eagle3")
    assert found.decode is not None
    assert found.decode.ratio == pytest.approx(41.7 / 50.0)
    assert found.mean_completion_tokens == 150
    assert "unequal_work" in codes(found)
    assert found.identity is not None
    assert found.identity.identical == 0
    assert found.verdict is not None
    assert found.verdict.word == "text differs"


def flips(count: int, at: int, texts: list[str]) -> list[str]:
    return [flipped(text, at + i) if i < count else text for i, text in enumerate(texts)]


def with_texts(folder: Write, second: list[str] | None, candidate: list[str]) -> CellResult:
    texts = [plain_text(i) for i in range(20)]
    base = [Made("baseline", 1, [50.0] * 20, against=None, texts=texts)]
    if second is not None:
        base.append(Made("baseline", 2, [50.2] * 20, against=None, texts=second))
    fast = [Made("eagle3", r, [100.0 + r] * 20, texts=candidate, **SPECULATIVE) for r in (1, 2)]
    return row(compare(folder(base + fast)), "eagle3")


def test_d4a_as_often_as_the_baseline_from_itself_is_its_own_variation(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    found = with_texts(folder, flips(2, 320, texts), flips(2, 400, texts))
    assert found.identity is not None
    assert (found.identity.word, found.identity.identical, found.identity.n) == ("within own variation", 18, 20)
    assert found.identity.control_identical == 18
    assert any("not distinguishable from the baseline's own variation" in one.message for one in found.identity.reasons)
    assert "batched" in codes(found)


def test_d4b_all_texts_part_at_once_is_not_the_same_text(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    found = with_texts(folder, texts, [flipped(text, i % 5) for i, text in enumerate(texts)])
    assert found.identity is not None
    assert found.identity.word == "differs"
    assert found.identity.earliest_at_char == 0
    assert found.verdict is not None
    assert found.verdict.word == "text differs"
    assert any("Do not adopt" in reason.hint for reason in found.verdict.reasons)


def test_d4c_one_late_difference_is_undecided(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    found = with_texts(folder, texts, flips(1, 700, texts))
    assert found.identity is not None
    assert found.identity.word == "undecided"
    assert any("1/20 differs" in one.message and "late: undecided" in one.message for one in found.identity.reasons)


def test_d4d_a_strict_prefix_is_reported_as_truncation(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    found = with_texts(folder, texts, [text[:500] if i < 3 else text for i, text in enumerate(texts)])
    assert found.identity is not None
    assert found.identity.truncated == 3
    assert "truncation" in codes(found)
    assert found.identity.word == "differs"


def test_d4e_without_a_second_baseline_the_verdict_is_limited_and_says_why(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    found = with_texts(folder, None, flips(2, 500, texts))
    assert found.identity is not None
    assert found.identity.word == "undecided"
    assert found.identity.control_n is None
    assert "no_control" in codes(found)


def test_a3_answer_and_reasoning_are_compared_each_on_its_own(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    thoughts = [plain_text(100 + i) for i in range(20)]
    base = [Made("baseline", r, [50.0] * 20, against=None, texts=texts, reasoning=thoughts) for r in (1, 2)]
    fast = [
        Made("eagle3", r, [90.0] * 20, texts=texts, reasoning=flips(4, 600, thoughts), **SPECULATIVE) for r in (1, 2)
    ]
    found = row(compare(folder(base + fast)), "eagle3")
    assert found.identity is not None
    assert (found.identity.reasoning_identical, found.identity.reasoning_n) == (16, 20)
    assert "reasoning_differs" in codes(found)
    assert {one.channel for one in found.identity.differences} == {"reasoning"}


def test_d5_another_sampling_stops_the_comparison(folder: Write) -> None:
    found = row(
        compare(folder(starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], temperature=0.6, **SPECULATIVE))),
        "eagle3",
    )
    assert found.verdict is not None
    assert found.verdict.word == "not comparable"
    assert "work_differs" in codes(found)


def test_m41_above_temperature_0_identity_is_not_judged(folder: Write) -> None:
    hot = {"temperature": 0.7}
    comparison = compare(
        folder(starts("baseline", [50, 50.1], **hot) + starts("eagle3", [90, 91], **hot, **SPECULATIVE))
    )
    identity = row(comparison, "eagle3").identity
    assert identity is not None
    assert identity.word == "not judged"
    assert identity.reasons[0].code == "sampling"


def cached(hits: int, *, plain: bool = False) -> dict[str, object]:
    acceptance: dict[str, object] = {"status": "not_applicable"}
    if not plain:
        acceptance = {"status": "measured", "drafts": 700, "draft_tokens": 2100, "accepted_tokens": 1300}
    return {
        "counters": {
            "source": "metrics",
            "acceptance": acceptance,
            "prefix_cache_hits": hits,
            "prefix_cache_queries": 1000,
        }
    }


def test_d6_cached_prompts_make_no_headline(folder: Write) -> None:
    base = starts("baseline", [50, 50.1], over=cached(900, plain=True))
    found = compare(folder(base + starts("eagle3", [90, 91], **{**SPECULATIVE, "over": cached(900)})))
    assert word(found) == "unreliable"
    assert "warm_cache" in codes(row(found, "eagle3"))
    assert "warm_cache" in codes(row(found, "baseline"))


def test_d6_a_warm_candidate_against_a_cold_baseline_is_invalid(folder: Write) -> None:
    base = starts("baseline", [50, 50.1], over=cached(0, plain=True))
    found = compare(folder(base + starts("eagle3", [90, 91], **{**SPECULATIVE, "over": cached(850)})))
    assert word(found) == "unreliable"
    assert any("85%" in one.message for one in row(found, "eagle3").findings)


def test_d7_a_cold_first_request_is_flagged_and_ttft_not_called_worse(folder: Write) -> None:
    base = starts("baseline", [50, 50.1], ttfts=[0.06] * 20)
    fast = starts("eagle3", [90, 91], ttfts=[1.5, *[0.06] * 19], **SPECULATIVE)
    found = row(compare(folder(base + fast)), "eagle3")
    assert "cold_start" in codes(found)
    assert found.ttft is not None
    assert found.ttft.ratio == pytest.approx(1.0)
    assert any("mean 132 ms" in one.message and "median 60 ms" in one.message for one in found.findings)


def test_d7_a_warm_up_below_the_load_is_flagged(folder: Write) -> None:
    few = {"over": {"cell": {"kind": "chat", "load": {"concurrency": 4}, "warmup": 1}}}
    comparison = compare(
        folder(starts("baseline", [50, 50.1], **few) + starts("eagle3", [90, 91], **few, **SPECULATIVE))
    )
    assert "warmup_missing" in codes(row(comparison, "eagle3"))


def test_d7_a_warm_up_at_another_load_is_flagged(folder: Write) -> None:
    alone = {"over": {"warmup": {"requests": 8, "concurrency": 1}}}
    cells = starts("baseline", [50, 50.1], **alone) + starts("eagle3", [90, 91], **alone, **SPECULATIVE)
    assert "warmup_missing" in codes(row(compare(folder(cells)), "eagle3"))


def test_d4_most_texts_differing_late_is_not_the_same_text_either(folder: Write) -> None:
    texts = [plain_text(i) for i in range(20)]
    found = with_texts(folder, texts, flips(20, 500, texts))
    assert found.identity is not None
    assert found.identity.word == "differs"


def test_d8a_a_gain_inside_the_noise_floor_is_no_difference_shown(folder: Write) -> None:
    comparison = compare(folder(starts("baseline", [48, 50, 53]) + starts("eagle3", [51, 52, 54], **SPECULATIVE)))
    assert word(comparison) == "no difference shown"
    assert row(comparison, "eagle3").decode is not None


@pytest.mark.parametrize("rates", [[50, 50.2], [75, 76], [100, 101]])
def test_d8b_a_placebo_is_never_adopted(folder: Write, rates: list[float]) -> None:
    results = folder(starts("baseline", [50, 50.1]) + starts("twin", rates, placebo=True))
    answer = decision.decide(compare(results)).workloads[0]
    assert answer.mode == "baseline"
    assert not answer.speculative


def test_d8c_a_drift_is_unreliable(folder: Write) -> None:
    base = starts(
        "baseline", [60, 58, 56, 50], times=[f"2026-01-01T0{hour}:00:00Z" for hour in (0, 1, 2, 6)], clocks=[1900]
    )
    slow = starts("eagle3", [54, 52, 50], times=at_hours(3, 4, 5), clocks=[1600], **SPECULATIVE)
    comparison = compare(folder(base + slow))
    assert word(comparison) == "unreliable"
    assert "drift" in codes(row(comparison, "eagle3"))


def test_d8_a_rise_after_the_last_baseline_is_not_a_gain(folder: Write) -> None:
    base = starts("baseline", [50, 51.5, 53], times=at_hours(0, 1, 2))
    late = starts("eagle3", [57, 58, 59], times=at_hours(3, 4, 5), **SPECULATIVE)
    comparison = compare(folder(base + late))
    assert word(comparison) == "unreliable"
    assert {"drift_explains", "not_bracketed"} <= codes(row(comparison, "eagle3"))


@pytest.mark.parametrize(("base", "mode"), [([50], [90, 91]), ([50, 50.1], [90]), ([50], [90])])
def test_d8_one_start_is_never_adopted(folder: Write, base: list[float], mode: list[float]) -> None:
    comparison = compare(folder(starts("baseline", base) + starts("eagle3", mode, **SPECULATIVE)))
    assert word(comparison) == "undecided"
    answer = decision.decide(comparison).workloads[0]
    assert not answer.speculative
    assert "replicates" in answer.next_step
    gain = row(comparison, "eagle3").decode
    assert gain is not None
    assert gain.low is None
    assert gain.refused is not None
    assert "one start" in gain.refused


def test_d8_m25_two_baselines_far_apart_are_named(folder: Write) -> None:
    comparison = compare(folder(starts("baseline", [50, 56]) + starts("eagle3", [60, 61], **SPECULATIVE)))
    assert any(one.code == "noise_high" for one in comparison.findings)
    assert word(comparison) == "unreliable"


def pairs(mode: str, seconds: list[float], **more: object) -> list[Made]:
    against = None if mode == "baseline" else "baseline"
    return [
        Made(
            mode, r, [100 / one for one in seconds], against=against, concurrency=1, ttfts=[0.0] * len(seconds), **more
        )  # type: ignore[arg-type]
        for r in (1, 2)
    ]


def test_d9_each_average_is_named_and_swapping_gives_the_reciprocal(folder: Write) -> None:
    there = row(compare(folder(pairs("baseline", [10, 1]) + pairs("eagle3", [5, 2], **SPECULATIVE))), "eagle3")
    back = row(compare(folder(pairs("baseline", [5, 2]) + pairs("eagle3", [10, 1], **SPECULATIVE))), "eagle3")
    assert there.paired is not None
    assert back.paired is not None
    assert there.paired.geometric == pytest.approx(1.0)
    assert there.paired.total_time == pytest.approx(11 / 7)
    assert (there.paired.slower, there.paired.prompts) == (1, 2)
    assert there.paired.total_time * (back.paired.total_time or 0) == pytest.approx(1.0)
    assert there.aggregate is not None
    assert there.aggregate.ratio == pytest.approx(11 / 7)
    for name in ("decode", "aggregate", "per_prompt"):
        one, other = getattr(there, name).ratio, getattr(back, name).ratio
        assert one * other == pytest.approx(1.0)


def test_b6_zero_drafts_is_not_exercised_however_fast_it_looks(folder: Write) -> None:
    idle = {
        "speculative": {"method": "ngram", "num_speculative_tokens": 5},
        "drafts": 0,
        "draft_tokens": 0,
        "accepted": 0,
    }
    comparison = compare(folder(starts("baseline", [50, 50.1]) + starts("ngram", [100, 101], **idle)))
    assert word(comparison, "ngram") == "not exercised"
    acceptance = row(comparison, "ngram").acceptance
    assert acceptance is not None
    assert acceptance.acceptance_rate is None
    answer = decision.decide(comparison).workloads[0]
    assert not answer.speculative
    assert "NaN" not in comparison.model_dump_json()


def test_b6_absent_counters_of_a_speculative_mode_are_an_error(folder: Write) -> None:
    lost = {"speculative": {"method": "ngram"}, "acceptance_status": "absent"}
    comparison = compare(folder(starts("baseline", [50, 50.1]) + starts("ngram", [100, 101], **lost)))
    assert word(comparison, "ngram") == "not exercised"
    assert "speculation_absent" in codes(row(comparison, "ngram"))


def test_b6_a_baseline_without_counters_is_not_applicable(folder: Write) -> None:
    base = row(compare(folder(starts("baseline", [50, 50.1]))), "baseline")
    assert base.acceptance is not None
    assert base.acceptance.status == "not_applicable"
    assert not base.findings or {one.severity for one in base.findings} <= {"info"}


def test_c2_a_failed_mode_shows_as_failed_and_never_as_0(folder: Write) -> None:
    failure = {
        "mode": "draft",
        "replicate": 1,
        "spec": {"server": {"engine": "vllm", "launcher": "docker"}, "checkpoints": {}, "against": "baseline"},
        "at": "2026-01-01T00:00:00Z",
        "code": "vocabulary",
        "cause": "The draft's vocabulary differs.",
        "place": "server.log",
        "fix": "Take a draft of the same family.",
    }
    results = folder(starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], **SPECULATIVE), failures=[failure])
    comparison = compare(results)
    assert row(comparison, "draft").status == "failed"
    assert row(comparison, "draft").agg_tok_s is None
    tables.write(comparison, results)
    line = next(one for one in (results / "summary.txt").read_text().splitlines() if " draft " in one)
    assert "failed" in line
    assert "0.0" not in line
    with (results / "summary.csv").open() as file:
        entry = next(one for one in csv.DictReader(file) if one["mode"] == "draft")
    assert entry["agg_tok_s"] == ""


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"stack": None}, "no_stack"),
        ({"schema_version": 2}, "schema_differs"),
        ({"digests": {"prompts": "other", "code": "c", "image": "i", "hardware": "h"}}, "prompts_differ"),
        ({"digests": {"prompts": "p", "code": "c", "image": "other", "hardware": "h"}}, "image_differs"),
        ({"digests": {"prompts": "p", "code": "c", "image": "i", "hardware": "other"}}, "hardware_differs"),
    ],
)
def test_m10_what_is_not_like_for_like_is_not_comparable(folder: Write, change: dict[str, object], code: str) -> None:
    comparison = compare(
        folder(starts("baseline", [50, 50.1]) + starts("eagle3", [90, 91], over=change, **SPECULATIVE))
    )
    assert word(comparison) == "not comparable"
    found = row(comparison, "eagle3")
    assert code in codes(found)
    assert found.decode is None
    if code == "no_stack":
        assert found.agg_tok_s is None


def test_m7_a_clear_gain_with_the_same_text_is_deployed(folder: Write) -> None:
    results = folder(starts("baseline", [50, 50.4]) + starts("eagle3", [90, 91], **SPECULATIVE))
    comparison = compare(results)
    assert word(comparison) == "faster"
    tables.write(comparison, results)
    answer = decision.write(results)
    assert answer.workloads[0].sentence.startswith("Deploy eagle3 for chat up to concurrency 4")
    assert json.loads((results / "decision.json").read_text())["workloads"][0]["mode"] == "eagle3"
    assert json.loads((results / "deploy" / "routes.json").read_text())["routes"][0]["mode"] == "eagle3"
    assert "Deploy eagle3 for chat" in (results / "decision.md").read_text()


def test_a_folder_without_sessions_is_a_users_error(tmp_path: Path) -> None:
    from specdec_lab.records.errors import UserError

    with pytest.raises(UserError, match="no measured sessions"):
        compare(tmp_path)


def probed(folder: Write, gaps: list[float]) -> CellResult:
    """Systematic late differences on 4 of 20 prompts, and what a probe found for them."""
    texts = [plain_text(i) for i in range(20)]
    base = [Made("baseline", r, [50.0 + r / 10] * 20, against=None, texts=texts) for r in (1, 2)]
    fast = [Made("eagle3", r, [100.0 + r] * 20, texts=flips(4, 500, texts), **SPECULATIVE) for r in (1, 2)]
    results = folder(base + fast)
    answers = [
        {"mode": "eagle3", "cell": "chat_c4", "id": f"p{i}", "at_char": 500 + i, "gap": gap}
        for i, gap in enumerate(gaps)
    ]
    (results / "probe.json").write_text(json.dumps({"baseline": "baseline", "answers": answers}))
    return row(compare(results), "eagle3")


def test_b2_near_ties_by_the_probe_are_the_baselines_own_variation(folder: Write) -> None:
    found = probed(folder, [0.01, 0.0, 0.12, 0.03])
    assert found.identity is not None
    assert found.identity.word == "within own variation"
    assert all(one.near_tie for one in found.identity.differences)


def test_b2_real_differences_by_the_probe_are_another_text(folder: Write) -> None:
    found = probed(folder, [4.0, 3.0, 5.0, 0.01])
    assert found.identity is not None
    assert found.identity.word == "differs"
    assert found.verdict is not None
    assert found.verdict.word == "text differs"
