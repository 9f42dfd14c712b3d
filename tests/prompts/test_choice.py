"""Every prompt of a run, and those of one cell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from specdec_lab import prompts
from specdec_lab.records.errors import UserError
from specdec_lab.records.prompt import Message, Prompt


def own(folder: Path, kinds: tuple[str, ...] = ("a", "b")) -> str:
    rows = [
        Prompt(id=f"{kind}{n}", kind=kind, messages=[Message(role="user", content=f"{kind} {n}")], max_tokens=50)
        for n in range(3)
        for kind in kinds
    ]
    prompts.write(folder / "own.jsonl", rows)
    return str(folder / "own.jsonl")


def test_m15_each_kind_comes_again_at_every_context_length() -> None:
    rows = prompts.workload(prompts=None, seed=7, kinds=["chat", "json"], context_tokens=[1000, 4000])
    plain = {"chat": 40, "json": 36}
    longer = {f"{kind}_ctx{tokens}": n for tokens in (1000, 4000) for kind, n in plain.items()}
    assert Counter(row.kind for row in rows) == plain | longer
    named = prompts.kinds_of(prompts=None, seed=7, kinds=["chat", "json"], context_tokens=[1000, 4000])
    assert set(named) == set(plain | longer)


def test_m14_own_prompts_keep_their_order_and_their_kinds(tmp_path: Path) -> None:
    rows = prompts.workload(prompts=own(tmp_path), seed=7, kinds=["b"], context_tokens=[])
    assert [row.id for row in rows] == ["b0", "b1", "b2"]


def test_m14_a_kind_that_cannot_be_a_file_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        prompts.workload(prompts=own(tmp_path, ("a/b",)), seed=7, kinds=None, context_tokens=[])
    assert caught.value.code == "bad_kind"


def test_a_cell_sends_the_first_prompts_of_its_kind() -> None:
    rows = prompts.generate(7)
    assert prompts.select(rows, "json", None) == [row for row in rows if row.kind == "json"]
    assert [row.id for row in prompts.select(rows, "code", 5)] == [row.id for row in rows[:5]]
    assert prompts.select(rows, "nothing", 3) == []
