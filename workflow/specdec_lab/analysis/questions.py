"""Which first differences are worth asking the baseline's server about (B2, D4)."""

from __future__ import annotations

from pathlib import Path

from .. import prompts
from ..records.comparison import CellResult, Comparison
from .cells import read_cell
from .near_tie import Question

ASKED = frozenset({"undecided", "differs", "within own variation"})


def questions(results_dir: Path, comparison: Comparison) -> list[Question]:
    """One question per shown difference of an answer, in the order of the table.

    Left out: texts of lossy modes and of sampling (not judged at all), answers with a reasoning before them, which no
    server continues in the middle, and answers with a tool call, whose text goes on in a way that cannot be sent.
    """
    messages: dict[str, tuple[tuple[str, str], ...]] = {
        prompt.id: tuple((message.role, message.content) for message in prompt.messages)
        for prompt in prompts.load(results_dir / "prompts.jsonl")
    }
    found: list[Question] = []
    for row in comparison.cells:
        if row.identity is not None and row.identity.word in ASKED:
            found += _of_row(results_dir, row, messages)
    return found


def _of_row(results_dir: Path, row: CellResult, messages: dict[str, tuple[tuple[str, str], ...]]) -> list[Question]:
    text = row.identity
    if text is None or text.replicate is None or text.baseline_replicate is None or row.against is None:
        return []
    name = f"{row.kind}_{row.load}"
    sessions = results_dir / "sessions"
    ours = read_cell(sessions / row.mode / f"r{text.replicate}" / f"{name}.json", row.mode, text.replicate).texts
    theirs = read_cell(
        sessions / row.against / f"r{text.baseline_replicate}" / f"{name}.json", row.against, text.baseline_replicate
    ).texts
    return [
        Question(
            mode=row.mode,
            cell=name,
            id=one.id,
            messages=messages[one.id],
            ours=ours[one.id].answer or "",
            theirs=theirs[one.id].answer or "",
            at_char=one.at_char,
        )
        for one in text.differences
        if one.channel == "answer"
        and one.id in messages
        and one.id in ours
        and one.id in theirs
        and not any(text.reasoning or text.tool_calls for text in (ours[one.id], theirs[one.id]))
    ]
