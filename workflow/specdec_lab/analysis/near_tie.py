"""B2, D4: is the first difference of two texts a near-tie? The pure part of the probe.

Where two texts part, the baseline's server is asked for the likeliest next tokens after what they share. One candidate
leads into the baseline's text, another into the mode's; their log probabilities differ by a gap in nats. A gap that
rounding can turn over is a near-tie; a larger one means that the mode took a token that the target did not want.

The place is known in characters and the server speaks in tokens, so the walk begins at the start of the word in which
the texts part, and goes on token by token as long as the likeliest token leads into both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

TIE_GAP = 0.2
"""Nats. Logits near 20 are spaced by about 0.016 in fp16 and 0.125 in bf16: one such step, and a little."""
STEPS = 12
"""So many tokens are walked at most from the start of the word to the place where the texts part."""
_END = re.compile(r"^(<[^<>]*>)?$")
"""How servers name the end of a text: nothing, or one special token."""


@dataclass(frozen=True)
class Question:
    """One prompt at the first difference of its two texts."""

    mode: str
    cell: str
    id: str
    messages: tuple[tuple[str, str], ...]
    """Role and content."""
    ours: str
    theirs: str
    at_char: int


@dataclass(frozen=True)
class Candidate:
    """One of the most likely next tokens, as text, with its log probability."""

    token: str
    logprob: float


@dataclass(frozen=True)
class Walk:
    """The likeliest token leads into both texts: go on after so many characters."""

    characters: int


@dataclass(frozen=True)
class Answer:
    """What the server thinks of the place. `gap` is None when nothing can be said, and `note` says why."""

    gap: float | None
    ours: str | None = None
    theirs: str | None = None
    note: str = ""


def beginning(question: Question) -> int:
    """Where to ask first: before the word (with the space in front of it) in which the texts part."""
    place = min(question.at_char, len(question.ours), len(question.theirs))
    while place > 0 and not question.theirs[place - 1].isspace():
        place -= 1
    while place > 0 and question.theirs[place - 1] == " ":
        place -= 1
    return place


def read(candidates: Sequence[Candidate], ours: str, theirs: str) -> Walk | Answer:
    """Judge one answer: what remains of either text after what was sent, and the candidates for the next token.

    A mode's token that is not among the candidates is at least as unlikely as the last of them, so the gap is a lower
    bound then. A token of the mode's that the server now prefers gives 0: a tie that fell the other way.
    """
    base = _likeliest([one for one in candidates if _leads(one.token, theirs)])
    if base is None:
        return Answer(None, note="the baseline's token is not among the likeliest")
    if base.token and _leads(base.token, ours) and base.token != ours and not _END.match(base.token):
        return Walk(len(base.token))
    mine = _likeliest([one for one in candidates if _leads(one.token, ours) and not _leads(one.token, theirs)])
    if mine is None:
        least = min(one.logprob for one in candidates)
        return Answer(max(base.logprob - least, 0.0), theirs=base.token, note="at least: not among the likeliest")
    return Answer(max(base.logprob - mine.logprob, 0.0), ours=mine.token, theirs=base.token)


def _leads(token: str, rest: str) -> bool:
    if not rest:
        return _END.match(token) is not None
    return bool(token) and rest.startswith(token)


def _likeliest(candidates: Sequence[Candidate]) -> Candidate | None:
    return max(candidates, key=lambda one: one.logprob, default=None)
