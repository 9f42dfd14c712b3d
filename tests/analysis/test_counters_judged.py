"""What the counters' windows say reaches the verdict: missing stays missing, and nothing odd is passed over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.synthetic import Made, cell, plain_text, starts
from specdec_lab.analysis.theory import added
from specdec_lab.counters import TABLES, window
from specdec_lab.records.base import strict_dumps
from specdec_lab.records.comparison import CellResult

TEXTS = [plain_text(number) for number in range(20)]
DRAFTED = {
    "speculative": {"method": "eagle3", "num_speculative_tokens": 3},
    "drafts": 700,
    "draft_tokens": 2100,
    "accepted": 1300,
}
P = "vllm:spec_decode_num_"


def metrics(drafts: int, generated: int, *, without: str = "") -> str:
    lines = {
        "drafts": f"{P}drafts_total {drafts}",
        "drafted": f"{P}draft_tokens_total {3 * drafts}",
        "accepted": f"{P}accepted_tokens_total {2 * drafts}",
        "tokens": f"vllm:generation_tokens_total {generated}",
        "prompt": "vllm:prompt_tokens_total 5",
    }
    return "".join(f"{line}\n" for name, line in lines.items() if name != without)


def dumped(before: str, after: str, *, speculative: bool, engine: str = "vllm") -> Any:
    return json.loads(window(before, after, TABLES[engine], speculative=speculative).model_dump_json())


def judged(folder: Path, cells: list[Made]) -> CellResult:
    for made in cells:
        path = folder / "sessions" / made.mode / f"r{made.replicate}" / f"{made.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(strict_dumps(cell(made)), encoding="utf-8")
    (row,) = [one for one in compare(folder).cells if one.mode == "eagle3"]
    return row


def baseline(**more: Any) -> list[Made]:
    return starts("baseline", (50, 50.2, 50.1), texts=TEXTS, **more)


def eagle3(**more: Any) -> list[Made]:
    return starts("eagle3", (80, 80.3, 80.1), texts=TEXTS, **{**DRAFTED, **more})


def codes(row: CellResult) -> set[str]:
    return {found.code for found in row.findings}


def test_b6_a_baseline_whose_counters_moved_is_no_baseline(tmp_path: Path) -> None:
    counters = dumped(metrics(0, 0), metrics(700, 2020), speculative=False)
    row = judged(tmp_path, baseline(over={"counters": counters}) + eagle3())
    assert "baseline_speculates" in codes(row)
    assert row.verdict is not None
    assert row.verdict.word == "not comparable"


def test_b4_a_baseline_that_restarted_inside_a_cell_is_not_used(tmp_path: Path) -> None:
    plain = "vllm:generation_tokens_total {}\nvllm:prompt_tokens_total 5\n"
    counters = dumped(plain.format(500), plain.format(30), speculative=False)
    row = judged(tmp_path, baseline(over={"counters": counters}) + eagle3())
    assert "counter_reset" in codes(row)
    assert row.verdict is not None
    assert row.verdict.word == "unreliable"


def test_b7_a_length_that_the_engine_gives_alone_stays_its_own(tmp_path: Path) -> None:
    text = "sglang:spec_verify_calls_total {}\nsglang:generation_tokens_total {}\nsglang:prompt_tokens_total 5\n"
    before, after = text.format(0, 0), text.format(720, 2020)
    total = added([window(before, after, TABLES["sglang"], speculative=True).acceptance] * 2)
    assert total is not None
    assert total.acceptance_length == pytest.approx(2020 / 720, rel=0.01)
    assert (total.accepted_tokens, total.acceptance_rate) == (None, None)
    row = judged(
        tmp_path, baseline() + eagle3(over={"counters": dumped(before, after, speculative=True, engine="sglang")})
    )
    assert "above_acceptance" not in codes(row)


@pytest.mark.parametrize(("without", "rate"), [("accepted", None), ("drafts", 2 / 3)])
def test_b8_a_counter_that_is_missing_is_not_zero(tmp_path: Path, without: str, rate: float | None) -> None:
    counters = dumped(metrics(0, 0, without=without), metrics(700, 2100, without=without), speculative=True)
    row = judged(tmp_path, baseline() + eagle3(over={"counters": counters}))
    assert row.acceptance is not None
    assert row.acceptance.acceptance_rate == (None if rate is None else pytest.approx(rate))
    assert row.acceptance.acceptance_length is None
    assert not codes(row) & {"above_acceptance", "not_exercised"}


def test_b6_one_start_that_never_drafted_is_told(tmp_path: Path) -> None:
    idle: dict[str, Any] = {"drafts": None, "draft_tokens": None, "accepted": None}
    cells = [
        Made(
            "eagle3",
            number,
            [80 + number / 10] * 20,
            texts=TEXTS,
            started_at=f"2026-01-01T00:01:2{number}Z",
            **{**DRAFTED, **(idle if number == 1 else {})},
        )
        for number in (1, 2, 3)
    ]
    row = judged(tmp_path, baseline() + cells)
    assert "not_exercised" in codes(row)


def test_b1_both_forms_of_a_counter_are_one_counter_whatever_their_labels() -> None:
    text = '{p}drafts_total{{engine="0",model_name="m"}} {n}\n{p}drafts{{model_name="m"}} {n}\n'
    text += "{p}draft_tokens_total {d}\n{p}accepted_tokens_total {n}\nvllm:generation_tokens_total {d}\n"
    got = window(
        text.format(p=P, n=0, d=0), text.format(p=P, n=100, d=300), TABLES["vllm"], speculative=True
    ).acceptance
    assert (got.drafts, got.draft_tokens) == (100, 300)


@pytest.mark.parametrize("prompts", [2, 3])
def test_d4_few_prompts_that_all_part_at_once_in_every_start_differ(tmp_path: Path, prompts: int) -> None:
    texts = TEXTS[:prompts]
    other = ["~" + text[1:][::-1] for text in texts]
    plain = [
        Made("baseline", n, [50 + n / 10] * prompts, against=None, texts=texts, started_at=f"2026-01-01T00:0{n}:00Z")
        for n in (1, 2, 3)
    ]
    mode = [
        Made(
            "eagle3",
            n,
            [80 + n / 10] * prompts,
            texts=other,
            started_at=f"2026-01-01T00:01:2{n}Z",
            speculative=DRAFTED["speculative"],
            drafts=35 * prompts,
            draft_tokens=105 * prompts,
            accepted=65 * prompts,
        )
        for n in (1, 2, 3)
    ]
    row = judged(tmp_path, plain + mode)
    assert row.identity is not None
    assert row.identity.word == "differs"
