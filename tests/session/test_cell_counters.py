"""What is seen at either end of a cell's window of counters is kept in the cell (B4, B5)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.session.making import CELL, SPEC, a_server

from specdec_lab.client.scripted import DONE, Script, ScriptedServer, Seen, delta, paced, sse, usage
from specdec_lab.counters import TABLES, Settled
from specdec_lab.records.base import Finding
from specdec_lab.records.cell import Cell
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.session import measure
from specdec_lab.session.guard import Guard
from specdec_lab.session.measure import CellJob, Target, measure_cell
from specdec_lab.session.watch import Watch

PROMPTS = [
    Prompt(id="p", kind="code", messages=[Message(role="user", content="Say something new.")], max_tokens=20),
]
METRICS = "llamacpp:prompt_tokens_total 5\nllamacpp:tokens_predicted_total {}\n"
RESTLESS = Finding(code="counters_not_settled", message="After 20 s the counters still moved.")


def answer(_: Seen) -> Script:
    return paced([sse(delta(content="a")), sse(delta(content="b", finish="stop")), sse(usage(2)), DONE], gap_s=0.01)


def measured(monkeypatch: pytest.MonkeyPatch, restless: set[int]) -> Cell:
    """One cell whose counters do not settle at these ends: 0 before the requests, 1 after them."""
    ends = iter(
        Settled(METRICS.format(2 + 2 * end), end not in restless, 1.0, [RESTLESS] * (end in restless))
        for end in range(2)
    )
    settled: Callable[..., Settled] = lambda *_, **__: next(ends)  # noqa: E731
    monkeypatch.setattr(measure, "settle", settled)
    with ScriptedServer(answer) as server:
        target = Target(server.base_url, "m", {}, f"{server.base_url}/metrics", TABLES["llama_cpp"], lambda: None, None)
        job = CellJob("ngram", 1, SPEC, CELL.model_copy(update={"requests": 1}), PROMPTS, "k", {})
        watch = Watch("ngram", 1, total=1, say=lambda _: None)
        return measure_cell(job, target, a_server("x"), 0, watch, Guard())


@pytest.mark.parametrize("end", [0, 1])
def test_b5_counters_that_do_not_settle_at_either_end_are_kept_in_the_cell(
    monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    counters = measured(monkeypatch, {end}).counters
    assert counters.settled is False
    (said,) = [one for one in counters.findings if one.code == "counters_not_settled"]
    assert said.message.startswith("At the opening of the window: ") is (end == 0)


def test_b5_counters_that_settle_at_both_ends_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counters = measured(monkeypatch, set()).counters
    assert counters.settled is True
    assert "counters_not_settled" not in {one.code for one in counters.findings}
    assert counters.generation_tokens == 2
