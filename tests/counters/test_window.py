"""The change of counters between two scrapes: names, series, restarts, missing things (cases B1-B4, B6, B8, B9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_lab.counters import TABLES, unavailable, window
from specdec_lab.counters.names import MetricNames
from specdec_lab.records.base import strict_dumps
from specdec_lab.records.cell import CounterWindow

VLLM = TABLES["vllm"]
FIXTURES = Path(__file__).parent.parent / "fixtures" / "metrics"
LABELS = '{engine="0",model_name="m"}'
HISTOGRAM = """# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine="0",le="8"} 3
vllm:iteration_tokens_total_bucket{engine="0",le="+Inf"} 7
vllm:iteration_tokens_total_count{engine="0"} 7
vllm:iteration_tokens_total_sum{engine="0"} 99
"""


def codes(result: CounterWindow) -> set[str]:
    return {finding.code for finding in [*result.findings, *result.acceptance.findings]}


def counter(name: str, value: float, labels: str = LABELS, *, typed: bool = True) -> str:
    head = f"# TYPE {name} counter\n" if typed else ""
    return f"{head}{name}{labels} {value}\n"


def vllm(
    drafts: float, drafted: float, accepted: float, positions: list[float] | None = None, engine: str = "0"
) -> str:
    labels = f'engine="{engine}",model_name="m"'
    text = counter("vllm:spec_decode_num_drafts_total", drafts, f"{{{labels}}}", typed=False)
    text += counter("vllm:spec_decode_num_draft_tokens_total", drafted, f"{{{labels}}}", typed=False)
    text += counter("vllm:spec_decode_num_accepted_tokens_total", accepted, f"{{{labels}}}", typed=False)
    for place, value in enumerate(positions or []):
        text += f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position="{place}"}} {value}\n'
    return text


ZERO = vllm(0, 0, 0)

B1_FORMS = {
    "with TYPE": counter("vllm:spec_decode_num_drafts_total", 10),
    "without TYPE": counter("vllm:spec_decode_num_drafts_total", 10, typed=False),
    "without _total": counter("vllm:spec_decode_num_drafts", 10, typed=False),
    "TYPE of the family, sample with _total": "# TYPE vllm:spec_decode_num_drafts counter\n"
    + counter("vllm:spec_decode_num_drafts_total", 10, typed=False),
    "both forms": counter("vllm:spec_decode_num_drafts_total", 10)
    + counter("vllm:spec_decode_num_drafts", 10, typed=False),
    "both forms typed": counter("vllm:spec_decode_num_drafts_total", 10) + counter("vllm:spec_decode_num_drafts", 10),
}


@pytest.mark.parametrize("form", B1_FORMS)
def test_b1_drafts_read_the_same_under_every_form_of_the_name(form: str) -> None:
    drafted = "vllm:spec_decode_num_draft_tokens_total"
    before = B1_FORMS[form].replace(" 10\n", " 0\n") + counter(drafted, 0) + HISTOGRAM
    after = B1_FORMS[form] + counter(drafted, 40) + HISTOGRAM
    assert window(before, after, VLLM, speculative=True).acceptance.drafts == 10


def test_b1_another_engine_has_its_own_names() -> None:
    before = counter("llamacpp:spec_decode_num_drafts", 0, "")
    after = counter("llamacpp:spec_decode_num_drafts", 10, "") + counter(
        "llamacpp:spec_decode_num_draft_tokens", 20, ""
    )
    assert window(before, after, TABLES["llama_cpp"], speculative=True).acceptance.drafts == 10
    assert window(before, after, VLLM, speculative=True).acceptance.status == "absent"


@pytest.mark.parametrize("typed", [True, False])
def test_b1_a_histogram_is_never_read_as_a_counter(typed: bool) -> None:
    names = MetricNames(generation_tokens=("vllm:iteration_tokens",))
    text = HISTOGRAM if typed else "\n".join(line for line in HISTOGRAM.splitlines() if line[0] != "#") + "\n"
    assert window(HISTOGRAM, text, names, speculative=False).generation_tokens is None


def test_b1_a_summary_is_never_read_as_a_counter() -> None:
    names = MetricNames(generation_tokens=("x:tokens",))
    text = '# TYPE x:tokens summary\nx:tokens{quantile="0.5"} 7\nx:tokens_sum 9\nx:tokens_count 2\n'
    assert window(text, text, names, speculative=False).generation_tokens is None


def test_b2_created_times_are_not_added_to_the_counter() -> None:
    created = 'vllm:spec_decode_num_drafts_created{engine="0",model_name="m"} 1.7567367987e+09\n'
    after = vllm(10, 40, 20) + created
    assert window(ZERO + created, after, VLLM, speculative=True).acceptance.drafts == 10


@pytest.mark.parametrize("reverse", [False, True])
def test_b3_series_of_several_engines_are_summed_position_by_position(reverse: bool) -> None:
    lines = (vllm(40, 120, 60, [30, 20, 10], "0") + vllm(60, 180, 90, [45, 30, 15], "1")).splitlines(keepends=True)
    after = "".join(reversed(lines) if reverse else lines)
    before = vllm(0, 0, 0, [0, 0, 0], "0") + vllm(0, 0, 0, [0, 0, 0], "1")
    result = window(before, after, VLLM, speculative=True)
    acceptance = result.acceptance
    assert (acceptance.drafts, acceptance.accepted_tokens) == (100, 150)
    assert acceptance.per_position == pytest.approx([0.75, 0.50, 0.25])
    assert acceptance.acceptance_length == pytest.approx(2.5)
    assert codes(result).isdisjoint({"acceptance_selfcheck", "server_restarted"})


def test_b3_eleven_engines_are_summed() -> None:
    after = "".join(vllm(4, 12, 6, [3, 2, 1], str(engine)) for engine in range(11))
    before = "".join(vllm(0, 0, 0, [0, 0, 0], str(engine)) for engine in range(11))
    acceptance = window(before, after, VLLM, speculative=True).acceptance
    assert (acceptance.drafts, acceptance.accepted_tokens) == (44, 66)
    assert acceptance.per_position == pytest.approx([0.75, 0.5, 0.25])


def test_b3_a_violated_selfcheck_is_reported() -> None:
    result = window(vllm(0, 0, 0, [0, 0, 0]), vllm(100, 300, 150, [75, 50, 5]), VLLM, speculative=True)
    assert result.acceptance.status == "measured"
    assert "acceptance_selfcheck" in codes(result)


def test_b4_a_counter_that_fell_invalidates_the_window() -> None:
    result = window(vllm(200, 800, 500), vllm(20, 60, 30), VLLM, speculative=True)
    assert result.acceptance.status == "invalid"
    assert result.acceptance.accepted_tokens is None
    assert result.acceptance.acceptance_rate is None
    assert result.deltas == {}
    assert "server_restarted" in codes(result)


RESTART_SIGNS = {
    "process start": "process_start_time_seconds {}\n",
    "created": 'vllm:spec_decode_num_accepted_tokens_created{{engine="0",model_name="m"}} {}\n',
    "created of another counter": 'vllm:generation_tokens_created{{engine="0"}} {}\n',
}


@pytest.mark.parametrize("sign", RESTART_SIGNS)
def test_b4_a_younger_process_invalidates_the_window_although_counters_rose(sign: str) -> None:
    line = RESTART_SIGNS[sign]
    tokens = 'vllm:generation_tokens_total{engine="0"} 9\n'
    result = window(
        vllm(2, 10, 5) + tokens + line.format("1.7567367987e+09"),
        vllm(200, 800, 400) + tokens + line.format("1.7567368987e+09"),
        VLLM,
        speculative=True,
    )
    assert result.acceptance.status == "invalid"
    assert result.acceptance.accepted_tokens is None
    assert result.generation_tokens is None
    assert "server_restarted" in codes(result)


def test_b4_a_restart_is_flagged_for_a_baseline_too() -> None:
    result = window("vllm:generation_tokens_total 50\n", "vllm:generation_tokens_total 7\n", VLLM, speculative=False)
    assert result.generation_tokens is None
    assert [f.severity for f in result.findings if f.code == "server_restarted"] == ["error"]


def test_b4_an_engine_that_vanished_invalidates_the_window() -> None:
    before = vllm(5, 20, 10, engine="0") + vllm(5, 20, 10, engine="1")
    assert window(before, vllm(50, 200, 100, engine="0"), VLLM, speculative=True).acceptance.status == "invalid"


def test_b5_the_window_counts_only_what_lies_between_its_ends() -> None:
    acceptance = window(vllm(375, 1500, 450), vllm(625, 2500, 1050), VLLM, speculative=True).acceptance
    assert (acceptance.accepted_tokens, acceptance.draft_tokens) == (600, 1000)
    assert acceptance.acceptance_rate == pytest.approx(0.60)


def test_b6_a_baseline_without_speculation_counters_is_not_applicable_and_silent() -> None:
    text = "vllm:generation_tokens_total 5\nvllm:prompt_tokens_total 5\n"
    result = window(text, text, VLLM, speculative=False)
    assert result.acceptance.status == "not_applicable"
    assert not [finding for finding in result.findings if finding.severity != "info"]


def test_b6_counters_that_did_not_move_mean_not_exercised_with_null_rates() -> None:
    result = window(vllm(7, 28, 9, [5, 4]), vllm(7, 28, 9, [5, 4]), VLLM, speculative=True)
    acceptance = result.acceptance
    assert acceptance.status == "not_exercised"
    assert acceptance.acceptance_rate is None
    assert acceptance.acceptance_length is None
    assert acceptance.per_position == []
    json.loads(strict_dumps(result))


def test_b6_a_speculative_mode_without_the_counters_is_an_error() -> None:
    text = "vllm:generation_tokens_total 5\n"
    acceptance = window(text, text, VLLM, speculative=True).acceptance
    assert acceptance.status == "absent"
    assert acceptance.drafts is None
    assert [f.severity for f in acceptance.findings] == ["error"]
    assert "seems not enabled" in acceptance.findings[0].message


def test_b6_an_empty_scrape_is_no_window() -> None:
    assert window("", vllm(7, 28, 9), VLLM, speculative=True).acceptance.status == "invalid"
    assert window(vllm(7, 28, 9), "", VLLM, speculative=True).acceptance.status == "invalid"


def test_m19_a_baseline_that_drafts_is_an_error() -> None:
    result = window(ZERO, vllm(5, 20, 10), VLLM, speculative=False)
    assert [f.severity for f in result.findings if f.code == "speculation_in_baseline"] == ["error"]
    quiet = window(ZERO, ZERO, VLLM, speculative=False)
    assert [f.severity for f in quiet.findings if f.code == "speculation_in_baseline"] == ["warn"]


def prefix(names: list[str], hits: float, queries: float) -> str:
    return "".join(
        counter(f"vllm:{name}_hits_total", hits) + counter(f"vllm:{name}_queries_total", queries) for name in names
    )


@pytest.mark.parametrize("names", [["gpu_prefix_cache"], ["prefix_cache"], ["gpu_prefix_cache", "prefix_cache"]])
def test_b8_old_and_new_names_give_the_same_hits_and_are_never_doubled(names: list[str]) -> None:
    result = window(prefix(names, 100, 200), prefix(names, 1000, 1200), VLLM, speculative=False)
    assert (result.prefix_cache_hits, result.prefix_cache_queries) == (900, 1000)
    assert "aliases_disagree" not in codes(result)


def test_b8_missing_names_are_null_and_near_matches_are_named() -> None:
    text = "vllm:generation_tokens_total 5\nvllm:kv_prefix_cache_hits_total 3\nvllm:kv_prefix_cache_queries_total 9\n"
    result = window(text, text, VLLM, speculative=False)
    assert result.prefix_cache_hits is None
    message = next(f.message for f in result.findings if "prefix cache hits" in f.message)
    assert "vllm:gpu_prefix_cache_hits" in message
    assert "vllm:kv_prefix_cache_hits" in message


def test_b8_a_server_without_any_of_the_names_gets_one_remark_and_the_fix() -> None:
    result = window("python_info 1\n", "python_info 1\n", VLLM, speculative=False)
    assert [finding.code for finding in result.findings] == ["no_engine_metrics"]
    assert "--disable-log-stats" in result.findings[0].hint


def test_b8_aliases_that_disagree_are_reported() -> None:
    before = prefix(["gpu_prefix_cache", "prefix_cache"], 0, 0)
    after = prefix(["gpu_prefix_cache"], 0, 0) + prefix(["prefix_cache"], 5, 10)
    result = window(before, after, VLLM, speculative=False)
    assert (result.prefix_cache_hits, result.prefix_cache_queries) == (5, 10)
    assert "aliases_disagree" in codes(result)


def b9(scale: float) -> str:
    model = 'model_name="a \\"q\\" \\\\ {b}, c=1"'
    lines = [
        f"vllm:spec_decode_num_drafts_total{{{model}}} {1200 * scale:e} 1700000000000",
        f"vllm:spec_decode_num_draft_tokens_total{{{model}}} {14400 * scale:e}",
        f"vllm:spec_decode_num_accepted_tokens_total{{{model}}} {(sum(range(1, 13)) - 5) * 100 * scale}",
    ]
    for place in range(12):
        if place == 7:
            continue
        label = f'position="{place}"'
        both = f"{label},{model}" if place % 2 else f"{model},{label}"
        value = (12 - place) * 100 * scale
        lines.append(f"vllm:spec_decode_num_accepted_tokens_per_pos_total{{{both}}} {value} 1700000000000")
    return "\n".join(reversed(lines)) + "\n"


def test_b9_positions_come_in_numeric_order_whatever_the_labels_look_like() -> None:
    result = window(b9(0), b9(1), VLLM, speculative=True)
    expected = [(12 - place) / 12 if place != 7 else 0.0 for place in range(12)]
    assert result.acceptance.per_position == pytest.approx(expected)
    assert result.acceptance.drafts == 1200
    assert "acceptance_selfcheck" not in codes(result)


def test_b9_an_unreadable_line_is_reported_and_the_rest_is_read() -> None:
    result = window(b9(0), b9(1) + 'vllm:oops{position="7" 5\n', VLLM, speculative=True)
    assert result.acceptance.drafts == 1200
    (finding,) = [f for f in result.findings if f.code == "unreadable_line"]
    assert 'vllm:oops{position="7" 5' in finding.message


@pytest.mark.parametrize("value", ["NaN", "+Inf", "abc", ""])
def test_b9_an_unreadable_speculation_counter_invalidates_the_acceptance(value: str) -> None:
    after = vllm(10, 40, 20) + f'vllm:spec_decode_num_accepted_tokens_total{{engine="1"}} {value}\n'
    result = window(ZERO, after, VLLM, speculative=True)
    assert result.acceptance.status == "invalid"
    assert "unreadable_line" in codes(result)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300), st.booleans())
def test_b9_no_text_makes_the_window_fail(text: str, speculative: bool) -> None:
    result = window(text, text, VLLM, speculative=speculative)
    assert result.acceptance.acceptance_rate is None


def test_an_endpoint_without_metrics_knows_nothing() -> None:
    assert unavailable(speculative=False).acceptance.status == "not_applicable"
    assert unavailable(speculative=True).acceptance.status == "absent"
    assert unavailable(speculative=True).source == "none"


def test_real_vllm_metrics_are_read() -> None:
    text = (FIXTURES / "vllm_0.32_ngram.prom").read_text()
    zeroed = "\n".join(
        line.rsplit(" ", 1)[0] + " 0" if line.startswith("vllm:") and "_created" not in line else line
        for line in text.splitlines()
    )
    result = window(zeroed, text, VLLM, speculative=True)
    acceptance = result.acceptance
    assert (acceptance.drafts, acceptance.draft_tokens, acceptance.accepted_tokens) == (113, 564, 274)
    assert acceptance.acceptance_length == pytest.approx(1 + 274 / 113)
    assert acceptance.per_position == pytest.approx([80 / 113, 74 / 113, 42 / 113, 42 / 113, 36 / 113])
    assert (result.requests_finished, result.generation_tokens, result.prefix_cache_queries) == (5, 770, 530)
    assert not [f for f in result.findings if f.severity != "info"]


def test_real_vllm_baseline_is_silent() -> None:
    text = (FIXTURES / "vllm_0.32_base.prom").read_text()
    result = window(text, text, VLLM, speculative=False)
    assert result.acceptance.status == "not_applicable"
    assert result.findings == []


@pytest.mark.parametrize(("mode", "status"), [("ngram", "measured"), ("baseline", "not_exercised")])
def test_real_llama_cpp_metrics_are_read(mode: str, status: str) -> None:
    before, after = ((FIXTURES / f"llama_cpp_{mode}_{end}.prom").read_text() for end in ("before", "after"))
    result = window(before, after, TABLES["llama_cpp"], speculative=True)
    assert result.acceptance.status == status
    assert result.generation_tokens == 22
    if mode == "ngram":
        assert (result.acceptance.drafts, result.acceptance.accepted_tokens) == (4, 6)
        assert result.acceptance.per_position == [1.0, 0.5, 0, 0, 0, 0, 0, 0]
    else:
        assert window(before, after, TABLES["llama_cpp"], speculative=False).findings == []


def test_sglang_length_is_generated_tokens_by_verification_passes() -> None:
    text = 'sglang:spec_verify_calls_total{{tp="0"}} {}\nsglang:generation_tokens_total{{tp="0"}} {}\n'
    acceptance = window(text.format(100, 50), text.format(300, 650), TABLES["sglang"], speculative=True).acceptance
    assert acceptance.status == "measured"
    assert acceptance.acceptance_length == pytest.approx(3.0)
    assert acceptance.acceptance_rate is None
    idle = window(text.format(100, 50), text.format(100, 650), TABLES["sglang"], speculative=True).acceptance
    assert idle.status == "not_exercised"


def test_nim_reads_whichever_engine_it_is_built_on() -> None:
    assert window(ZERO, vllm(10, 40, 20), TABLES["nim"], speculative=True).acceptance.acceptance_rate == 0.5
    text = "sglang:spec_verify_calls_total {}\nsglang:generation_tokens_total {}\n"
    acceptance = window(text.format(0, 0), text.format(10, 30), TABLES["nim"], speculative=True).acceptance
    assert acceptance.acceptance_length == pytest.approx(3.0)
