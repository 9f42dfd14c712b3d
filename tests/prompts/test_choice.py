"""Every prompt of a run, and those of one cell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from specdec_lab import prompts
from specdec_lab.records.errors import UserError
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import CellSpec, Load


def own(folder: Path) -> Path:
    rows = [
        Prompt(id=f"{kind}{n}", kind=kind, messages=[Message(role="user", content=f"{kind} {n}")], max_tokens=50)
        for n in range(3)
        for kind in ("a", "b")
    ]
    prompts.write(folder / "own.jsonl", rows)
    return folder / "own.jsonl"


def cell(kind: str, requests: int | None = None, max_tokens: int | None = None) -> CellSpec:
    return CellSpec(kind=kind, load=Load(concurrency=2), requests=requests, warmup=2, max_tokens=max_tokens)


def test_m15_each_kind_comes_again_at_every_context_length() -> None:
    rows = prompts.workload(kinds=["chat", "json"], context_tokens=[1000, 4000])
    assert Counter(row.kind for row in rows) == {
        "chat": 40,
        "json": 36,
        "chat@1000": 40,
        "json@1000": 36,
        "chat@4000": 40,
        "json@4000": 36,
    }


def test_m14_own_prompts_keep_their_order_and_can_be_lengthened(tmp_path: Path) -> None:
    rows = prompts.workload(own(tmp_path), kinds=["b"], context_tokens=[500])
    assert [row.id for row in rows] == ["b0", "b1", "b2", "b0@500", "b1@500", "b2@500"]
    assert rows[3].messages[-1].content.endswith("b 0")


def test_m14_a_kind_that_the_file_lacks_is_refused_with_those_it_has(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'c'") as caught:
        prompts.workload(own(tmp_path), kinds=["c"])
    assert "a, b" in caught.value.fix


def test_a_cell_sends_the_first_prompts_of_its_kind_with_its_cap() -> None:
    rows = prompts.generate(7)
    assert prompts.select(rows, cell("json")) == [row for row in rows if row.kind == "json"]
    few = prompts.select(rows, cell("code", requests=5, max_tokens=100))
    assert [row.id for row in few] == [row.id for row in rows[:5]]
    assert {row.max_tokens for row in few} == {100}
    assert {row.max_tokens for row in prompts.select(rows, cell("json", max_tokens=999))} == {120}
    assert prompts.select(rows, cell("nothing")) == []
