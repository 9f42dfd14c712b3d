"""What the first scrape lacks, or what cannot be read in it, is unknown and never 0 (M4, cases B3, B5, B8, B9)."""

from __future__ import annotations

import gzip

import pytest

from specdec_lab.counters import TABLES, window
from specdec_lab.records.base import Finding
from specdec_lab.records.cell import CounterWindow

VLLM = TABLES["vllm"]
SPEC = "vllm:spec_decode_num_"
GENERATED = "vllm:generation_tokens_total"


def vllm(
    drafts: float,
    drafted: float,
    accepted: float,
    generated: float,
    positions: tuple[float, ...],
    *,
    labels: str = 'engine="0",model_name="m"',
    finished: float | None = None,
) -> str:
    lines = [
        f"{SPEC}drafts_total{{{labels}}} {drafts}",
        f"{SPEC}draft_tokens_total{{{labels}}} {drafted}",
        f"{SPEC}accepted_tokens_total{{{labels}}} {accepted}",
        f"{GENERATED}{{{labels}}} {generated}",
    ]
    if finished is not None:
        lines.append(f'vllm:request_success_total{{finished_reason="stop",{labels}}} {finished}')
    for place, value in enumerate(positions):
        lines.append(f'{SPEC}accepted_tokens_per_pos_total{{{labels},position="{place}"}} {value}')
    return "\n".join(lines) + "\n"


BEFORE = vllm(10, 30, 20, 100, (10, 6, 4), finished=2)
AFTER = vllm(110, 330, 200, 500, (90, 60, 50), finished=12)


def read(before: str, after: str, *, speculative: bool = True, engine: str = "vllm") -> CounterWindow:
    return window(before, after, TABLES[engine], speculative=speculative)


def without(text: str, word: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if word not in line)


def of(found: list[Finding], code: str) -> list[Finding]:
    return [one for one in found if one.code == code]


def rates(made: CounterWindow) -> tuple[float | None, float | None, list[float]]:
    one = made.acceptance
    return one.acceptance_rate, one.acceptance_length, one.per_position


SOUND = (pytest.approx(0.6), pytest.approx(2.8), pytest.approx([0.8, 0.54, 0.46]))


def test_a_sound_window_for_comparison() -> None:
    made = read(BEFORE, AFTER)
    assert rates(made) == SOUND
    assert (made.generation_tokens, made.requests_finished) == (400, 10)
    assert made.acceptance.findings == []


@pytest.mark.parametrize("value", ["NaN", "+Inf", "1,000"])
@pytest.mark.parametrize("end", ["first", "second"])
def test_b9_a_count_that_cannot_be_read_at_either_end_has_no_change(value: str, end: str) -> None:
    before, after = BEFORE, AFTER
    if end == "first":
        before = before.replace('engine="0",model_name="m"} 100', f'engine="0",model_name="m"}} {value}')
    else:
        after = after.replace('engine="0",model_name="m"} 500', f'engine="0",model_name="m"}} {value}')
    made = read(before, after)
    assert made.generation_tokens is None
    assert "vllm:generation_tokens" not in made.deltas
    assert rates(made) == SOUND
    assert of(made.findings, "unreadable_line")
    (missing,) = [one for one in of(made.findings, "metric_missing") if "generation tokens" in one.message]
    assert "cannot be read" in missing.message


def test_b9_of_several_engines_one_that_cannot_be_read_leaves_the_sum_unknown() -> None:
    other = vllm(0, 0, 0, 7, (0, 0, 0), labels='engine="1",model_name="m"')
    made = read(BEFORE + other.replace("} 7", "} NaN"), AFTER + other)
    assert made.generation_tokens is None


@pytest.mark.parametrize("end", ["first", "second"])
def test_b9_a_position_that_cannot_be_read_leaves_the_positions_unknown_and_nothing_else(end: str) -> None:
    before, after = BEFORE, AFTER
    if end == "first":
        before = before.replace('position="0"} 10', 'position="0"} NaN')
    else:
        after = after.replace('position="2"} 50', 'position="2"} NaN')
    made = read(before, after)
    assert rates(made) == (SOUND[0], SOUND[1], [])
    (missing,) = of(made.acceptance.findings, "metric_missing")
    assert "accepted per position" in missing.message
    assert made.generation_tokens == 400


def test_b9_a_position_that_is_no_number_leaves_the_positions_unknown() -> None:
    before, after = (text.replace('position="0"', 'position="0.0"') for text in (BEFORE, AFTER))
    made = read(before, after)
    assert rates(made) == (SOUND[0], SOUND[1], [])
    assert of(made.acceptance.findings, "unreadable_line")


@pytest.mark.parametrize(
    ("word", "expected", "looked"),
    [
        ("num_drafts_total", (SOUND[0], None, []), "num_drafts"),
        ("draft_tokens_total", (None, SOUND[1], SOUND[2]), "num_draft_tokens"),
        ("num_accepted_tokens_total", (None, None, SOUND[2]), "num_accepted_tokens"),
        ("per_pos", (SOUND[0], SOUND[1], []), "per_pos"),
    ],
)
def test_b5_a_counter_missing_from_the_first_scrape_beside_its_siblings_is_unknown(
    word: str, expected: tuple[object, object, object], looked: str
) -> None:
    made = read(without(BEFORE, word), AFTER)
    assert made.acceptance.status == "measured"
    assert rates(made) == expected
    (missing,) = of(made.acceptance.findings, "metric_missing")
    assert missing.severity == "warn"
    assert looked in missing.message
    assert "the first scrape lacks" in missing.message


def test_b5_generated_tokens_missing_from_the_first_scrape_are_unknown() -> None:
    made = read(without(BEFORE, "generation"), AFTER)
    assert made.generation_tokens is None
    assert rates(made) == SOUND
    assert any("the first scrape lacks vllm:generation_tokens" in one.message for one in made.findings)


def test_b5_a_cut_off_engine_is_unknown_though_another_is_whole() -> None:
    other = 'engine="1",model_name="m"'
    before = BEFORE + without(vllm(10, 30, 20, 100, (10, 6, 4), labels=other), "num_drafts_total")
    made = read(before, AFTER + vllm(110, 330, 200, 500, (90, 60, 50), labels=other))
    assert rates(made) == (pytest.approx(0.6), None, [])


def test_b5_hits_missing_beside_their_queries_are_unknown() -> None:
    queries, hits = "vllm:prefix_cache_queries_total {}\n", "vllm:prefix_cache_hits_total {}\n"
    made = read(queries.format(1000), queries.format(2000) + hits.format(900), speculative=False)
    assert (made.prefix_cache_queries, made.prefix_cache_hits) == (1000, None)


@pytest.mark.parametrize("speculative", [True, False])
def test_b5_an_empty_first_scrape_gives_no_lifetime_values(speculative: bool) -> None:
    made = read("", AFTER, speculative=speculative)
    assert (made.generation_tokens, made.requests_finished, made.deltas) == (None, None, {})
    assert made.acceptance.acceptance_rate is None


def test_b5_a_server_that_shows_its_counters_with_the_first_draft_began_at_0() -> None:
    made = read(GENERATED + '{engine="0",model_name="m"} 7\n', AFTER)
    assert rates(made) == (
        pytest.approx(200 / 330),
        pytest.approx(1 + 200 / 110),
        pytest.approx([90 / 110, 6 / 11, 5 / 11]),
    )


def test_b5_a_fresh_server_that_shows_some_at_0_began_at_0() -> None:
    fresh = without(vllm(0, 0, 0, 0, (), finished=0), "accepted")
    made = read(fresh, vllm(100, 300, 180, 400, (80, 54, 46), finished=10))
    assert rates(made) == SOUND
    assert made.acceptance.findings == []


def test_b5_a_new_kind_of_a_counter_that_is_there_began_at_0() -> None:
    longer = 'vllm:request_success_total{finished_reason="length",engine="0",model_name="m"} 3\n'
    lora = vllm(100, 300, 180, 400, (80, 54, 46), labels='engine="0",model_name="lora"')
    made = read(BEFORE, AFTER + longer + lora)
    assert (made.requests_finished, made.generation_tokens) == (13, 800)
    assert rates(made) == SOUND


def test_sglang_counters_that_come_with_their_first_event_began_at_0() -> None:
    before = 'sglang:prompt_tokens_total{model_name="m"} 50\nsglang:generation_tokens_total{model_name="m"} 50\n'
    after = before.replace(" 50", " 650") + 'sglang:spec_verify_calls_total{model_name="m"} 200\n'
    after += 'sglang:num_retracted_requests_total{model_name="m"} 3\n'
    made = read(before, after, engine="sglang")
    assert (made.acceptance.acceptance_length, made.preemptions) == (pytest.approx(3.0), 3)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("num_drafts_total", (SOUND[0], None, [])),
        ("draft_tokens_total", (None, SOUND[1], SOUND[2])),
        ("num_accepted_tokens_total", (None, None, SOUND[2])),
    ],
)
def test_b8_a_missing_speculation_counter_is_named_with_what_it_costs(
    word: str, expected: tuple[object, object, object]
) -> None:
    made = read(without(BEFORE, word), without(AFTER, word))
    assert rates(made) == expected
    (missing,) = of(made.acceptance.findings, "metric_missing")
    assert "looked for vllm:spec_decode_num_" in missing.message
    assert "is given" in missing.message


def test_b3_positions_that_begin_at_1_are_not_shifted_into_a_0() -> None:
    def shifted(text: str) -> str:
        for place in (2, 1, 0):
            text = text.replace(f'position="{place}"', f'position="{place + 1}"')
        return text

    made = read(shifted(BEFORE), shifted(AFTER))
    assert rates(made) == (SOUND[0], SOUND[1], [])
    assert of(made.acceptance.findings, "acceptance_selfcheck")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f'{SPEC}drafts{{engine="0",model_name="m"}} 999\n'),
        (f'{SPEC}drafts{{engine="1",model_name="m"}} 0\n', f'{SPEC}drafts{{engine="1",model_name="m"}} 100\n'),
    ],
)
def test_b1_both_forms_of_a_name_that_differ_are_remarked(before: str, after: str) -> None:
    made = read(BEFORE + before, AFTER + after)
    assert rates(made) == SOUND
    (remark,) = of(made.acceptance.findings, "aliases_disagree")
    assert "_total is used" in remark.message


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("UTF-16", AFTER.encode("utf-16")),
        ("UTF-16", AFTER.encode("utf-16-le")),
        ("UTF-16", AFTER.encode("utf-16-be")),
        ("gzip", gzip.compress(AFTER.encode())),
    ],
)
@pytest.mark.parametrize("end", ["first", "second"])
def test_b9_a_scrape_in_another_encoding_is_named(name: str, data: bytes, end: str) -> None:
    text = data.decode("utf-8", errors="replace")
    made = read(text, AFTER) if end == "first" else read(BEFORE, text)
    (empty,) = of(made.acceptance.findings, "scrape_empty")
    assert f"It is {name}" in empty.message
    assert made.generation_tokens is None
    if end == "first":
        assert any(f"it is {name}" in one.message for one in read(text, AFTER, speculative=False).findings)
    both = read(text, text, speculative=False)
    assert any(name in one.message for one in of(both.findings, "no_engine_metrics"))
