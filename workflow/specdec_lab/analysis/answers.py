"""What one request answered, in the channels a model speaks through, and when two answers are the same (M5, A3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Text:
    """What one request answered."""

    answer: str | None
    reasoning: str | None
    finish: str | None
    tool_calls: str | None = None


Texts = Mapping[str, Text]
"""Prompt id -> text, for the successful requests of one start."""


def parted(one: Text, other: Text) -> bool:
    """Whether any channel differs; a channel that is missing is the same as an empty one."""
    return (
        (one.answer or "") != (other.answer or "")
        or (one.reasoning or "") != (other.reasoning or "")
        or (one.tool_calls or "") != (other.tool_calls or "")
    )


def speaks(text: Text) -> bool:
    """Whether there is a text in any channel."""
    return bool(text.answer or text.reasoning or text.tool_calls)


def compared(ours: Texts, theirs: Texts) -> set[str]:
    """Prompts of both with a text in at least one: two empty answers are no evidence that the text is kept."""
    return {p for p in ours.keys() & theirs.keys() if speaks(ours[p]) or speaks(theirs[p])}


def silent(ours: Texts, theirs: Texts) -> list[str]:
    """Prompts that were answered in both and got no text in either, sorted."""
    return sorted(p for p in ours.keys() & theirs.keys() if not (speaks(ours[p]) or speaks(theirs[p])))
