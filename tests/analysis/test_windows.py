"""B4: every remark on a window of counters reaches the comparison, and an acceptance that rests on it is marked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specdec_lab.counters
from specdec_lab.analysis import tables, windows
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.findings import CODES
from specdec_lab.analysis.synthetic import plain_text, starts
from specdec_lab.counters import TABLES, Settled, between, window
from specdec_lab.records.base import Finding
from specdec_lab.records.cell import CounterWindow
from specdec_lab.records.comparison import CellResult, Comparison

Write = Callable[..., Path]
P = "vllm:spec_decode_num_"
TEXTS = [plain_text(number) for number in range(20)]
LABELS = '{engine="0"}'
QUERIES, HITS = "vllm:prefix_cache_queries_total", "vllm:prefix_cache_hits_total"


def metrics(drafts: int, *more: str, generated: int | None = None) -> str:
    """What a vLLM server shows after so many drafts of three tokens, of which two are accepted each time."""
    lines = [
        f"{P}drafts_total{LABELS} {drafts}",
        f"{P}draft_tokens_total{LABELS} {3 * drafts}",
        f"{P}accepted_tokens_total{LABELS} {2 * drafts}",
        *(f'{P}accepted_tokens_per_pos_total{{engine="0",position="{at}"}} {drafts}' for at in (0, 1)),
        f"vllm:generation_tokens_total {3 * drafts if generated is None else generated}",
        "vllm:prompt_tokens_total 5",
        f'vllm:request_success_total{{finished_reason="stop"}} {20 if drafts else 0}',
        f"{QUERIES} 5",
        f"{HITS} 0",
        *more,
    ]
    return "".join(f"{line}\n" for line in lines)


START, END = metrics(0), metrics(673)
SOUND = (START, END)


def dump(made: CounterWindow) -> dict[str, Any]:
    counters: dict[str, Any] = json.loads(made.model_dump_json())
    return counters


def judged(folder: Write, counters: dict[str, Any], *, base: dict[str, Any] | None = None) -> Comparison:
    plain = {"over": {"counters": base}} if base is not None else {}
    cells = starts("baseline", [50, 50.2], texts=TEXTS, **plain)
    cells += starts(
        "eagle3",
        [90, 91],
        texts=TEXTS,
        speculative={"method": "eagle3", "num_speculative_tokens": 3},
        over={"counters": counters},
    )
    return compare(folder(cells))


def row(comparison: Comparison, mode: str = "eagle3") -> CellResult:
    return next(one for one in comparison.cells if one.mode == mode)


def of(found: list[Finding], code: str) -> list[Finding]:
    return [one for one in found if one.code == code]


@pytest.mark.parametrize(
    ("code", "before", "after", "severity", "doubted", "word"),
    [
        ("acceptance_selfcheck", START, END.replace('position="1"} 673', 'position="1"} 500'), "warn", True, "faster"),
        ("duplicate_series", START, END + f"{P}drafts_total{LABELS} 600\n", "warn", True, "faster"),
        ("duplicate_series", START, END + f"{QUERIES} 6\n", "warn", False, "faster"),
        ("unreadable_line", START, END + "vllm:oops{ 5\n", "warn", False, "faster"),
        (
            "unreadable_line",
            START,
            END + f'{P}accepted_tokens_per_pos_total{{engine="0",position="x"}} 5\n',
            "warn",
            True,
            "faster",
        ),
        ("aliases_disagree", START, END + "vllm:gpu_prefix_cache_queries_total 3\n", "warn", False, "faster"),
        ("prefix_cache_inconsistent", START, END.replace(f"{HITS} 0", f"{HITS} 9"), "warn", False, "faster"),
        (
            "metric_missing",
            START.replace("vllm:prompt", "vllm:fast"),
            END.replace("vllm:prompt", "vllm:fast"),
            "info",
            False,
            "faster",
        ),
        (
            "acceptance_inconsistent",
            START,
            END.replace(f"{P}accepted_tokens_total{LABELS} 1346", f"{P}accepted_tokens_total{LABELS} 9999"),
            "error",
            False,
            "unreliable",
        ),
        ("scrape_empty", "", END, "error", False, "unreliable"),
        ("counter_unreadable", START, END + f'{P}drafts_total{{engine="1"}} many\n', "error", False, "unreliable"),
        ("counter_reset", END, START, "error", False, "unreliable"),
    ],
)
def test_each_remark_on_a_window_is_a_finding_with_what_to_do(
    folder: Write, code: str, before: str, after: str, severity: str, doubted: bool, word: str
) -> None:
    comparison = judged(folder, dump(window(before, after, TABLES["vllm"], speculative=True)))
    found = row(comparison)
    (said, *_) = of(found.findings, code)
    assert said.severity == severity
    assert said.hint
    assert "eagle3 r1, r2: " in said.message
    assert found.acceptance_doubts == ([code] if doubted else [])
    assert ("67%?" in tables.summary_text(comparison)) is doubted
    assert found.verdict is not None
    assert found.verdict.word == word
    if severity != "info":
        assert code in {one.code for one in found.verdict.reasons}
    assert code not in {one.code for one in row(comparison, "baseline").findings}


def test_a_sound_window_says_nothing_and_marks_nothing(folder: Write) -> None:
    comparison = judged(folder, dump(window(*SOUND, TABLES["vllm"], speculative=True)))
    found = row(comparison)
    assert not [one for one in found.findings if one.severity != "info"]
    assert found.acceptance_doubts == []
    text = tables.summary_text(comparison)
    assert "67%" in text
    assert "67%?" not in text


RESTLESS = Finding(code="counters_not_settled", message="After 20 s the counters still moved.")


@pytest.mark.parametrize("end", [0, 1])
def test_b5_counters_that_did_not_settle_at_either_end_are_told_and_mark_the_acceptance(
    folder: Write, end: int
) -> None:
    ends = [Settled(text, place != end, 1.0, [RESTLESS] * (place == end)) for place, text in enumerate(SOUND)]
    made = between(*ends, TABLES["vllm"], speculative=True)
    assert made.settled is False
    comparison = judged(folder, dump(made))
    (said,) = of(row(comparison).findings, "counters_not_settled")
    assert ("opening" in said.message) is (end == 0)
    assert row(comparison).acceptance_doubts == ["counters_not_settled"]
    assert "acceptance_doubts" in tables.summary_csv(comparison).splitlines()[0]
    assert "67%?" in tables.summary_text(comparison)


def test_b5_a_window_that_says_only_that_it_did_not_settle_is_told_too(folder: Write) -> None:
    made = dump(window(*SOUND, TABLES["vllm"], speculative=True))
    assert of(row(judged(folder, {**made, "settled": False})).findings, "counters_not_settled")
    assert not of(row(judged(folder, {**made, "settled": True})).findings, "counters_not_settled")


def test_other_traffic_in_the_window_marks_the_acceptance(folder: Write) -> None:
    made = {**dump(window(*SOUND, TABLES["vllm"], speculative=True)), "requests_finished": 33}
    assert row(judged(folder, made)).acceptance_doubts == ["foreign_traffic"]


def test_b6_a_baseline_with_counters_that_stand_still_is_told_and_one_whose_passes_move_is_none(folder: Write) -> None:
    sound = dump(window(*SOUND, TABLES["vllm"], speculative=True))
    still = dump(window(START, metrics(0, generated=2020), TABLES["vllm"], speculative=False))
    base = row(judged(folder, sound, base=still), "baseline")
    assert [one.severity for one in of(base.findings, "speculation_in_baseline")] == ["warn"]
    text = "sglang:spec_verify_calls_total {}\nsglang:generation_tokens_total {}\nsglang:prompt_tokens_total 5\n"
    moved = dump(window(text.format(0, 0), text.format(700, 2020), TABLES["sglang"], speculative=False))
    found = row(judged(folder, sound, base=moved))
    assert of(found.findings, "baseline_speculates")
    assert found.verdict is not None
    assert found.verdict.word == "not comparable"


def test_an_endpoint_that_shows_none_of_its_counters_is_told_what_to_do(folder: Write) -> None:
    sound = dump(window(*SOUND, TABLES["vllm"], speculative=True))
    bare = dump(window("python_info 1\n", "python_info 1\n", TABLES["vllm"], speculative=False))
    (said,) = of(row(judged(folder, sound, base=bare), "baseline").findings, "no_engine_metrics")
    assert "--disable-log-stats" in said.hint


def test_a_remark_of_another_version_is_told_as_it_is(folder: Write) -> None:
    made = dump(window(*SOUND, TABLES["vllm"], speculative=True))
    made["findings"] = [{"code": "something_new", "severity": "warn", "message": "Something new was seen."}]
    (said,) = of(row(judged(folder, made)).findings, "counters_remark")
    assert "Something new was seen." in said.message
    assert "something_new" in said.message


def test_every_code_that_a_window_can_have_is_known_to_the_comparison() -> None:
    folder = Path(specdec_lab.counters.__file__).parent
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    made = set(re.findall(r'Finding\(\s*code="(\w+)"', sources))
    made |= set(re.findall(r'(?:remark|_invalid)\(\s*"(\w+)"', sources))
    assert {"counters_not_settled", "aliases_disagree", "scrape_empty", "acceptance_selfcheck"} <= made
    assert made <= windows.TOLD | windows.SAID_ELSEWHERE | windows.RESTARTED
    assert CODES.keys() >= windows.TOLD
