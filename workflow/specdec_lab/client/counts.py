"""Whether the tokens that a server counted for one answer can be (M6, case A1). Asked once, when the answer is over.

A server tells tokens in up to three places: its usage, the usage so far on each chunk, and the ids on each chunk. They
are laid beside each other, beside the text that came and beside the request's own cap. What cannot be is no number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .stream import Transcript

END_TOKEN = 1
"""The end token may be counted without a chunk of its own, and beyond the cap."""

NEAR = 0.1
"""Two counts that differ by at most this share may stand for each other; the rate is then not exact."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What may be taken from an answer's counts."""

    tokens: int | None
    """The server's count; None when it gives none, or one that cannot be."""
    chunk_tokens: list[int] | None
    """Tokens in each arrival; None when the server does not say, or says what cannot be."""
    notes: list[str]
    timeable: bool
    """Whether a decode rate may be made of them; not when two sound counts are far apart, for either may be right, nor
    when some of the tokens were never sent."""

    @property
    def exact(self) -> bool:
        """Whether the tokens of each chunk are known and nothing contradicts them."""
        return self.chunk_tokens is not None and not self.notes


def judged(read: Transcript, cap: int | None) -> Counts:
    """The counts of an answer that is over. `cap`: the most tokens that the request allowed, where that is known."""
    tokens, notes = _usage(read, cap)
    told = told_by_chunks(read)
    timeable = True
    if told is not None:
        total = sum(told)
        if min(told) < 1 or _beyond(total, cap):
            # Usage that lags behind the text, or sums of sums: it says nothing of a chunk, and nothing of the count.
            told = None
            notes.append("chunk_tokens_contradict")
        elif tokens is not None and not total <= tokens <= total + END_TOKEN:
            told = None
            timeable = _near(total, tokens)
            notes.append("chunk_tokens_contradict")
    if told is None and tokens and read.reasoning_tokens and not read.reasoning:
        # Made before the first text, they would all be taken to have come after it.
        timeable = False
        notes.append("thoughts_unseen")
    return Counts(tokens, told, notes, timeable)


def told_by_chunks(read: Transcript) -> list[int] | None:
    """Tokens in each arrival, from token ids or else from running usage; None when the server does not say.

    Running usage counts only if every arrival has it and it starts at one or more; a server that puts the total on a
    single chunk, or on all, is thus not mistaken for one that counts along.
    """
    if not read.arrivals:
        return None
    if len(read.token_ids) == len(read.arrivals):
        return read.token_ids
    running = read.running
    if len(running) < len(read.arrivals) or len(running) < 2 or running[0] < 1 or running[-1] <= running[0]:
        return None
    return [running[0], *(later - earlier for earlier, later in pairwise(running))]


def _usage(read: Transcript, cap: int | None) -> tuple[int | None, list[str]]:
    said = read.completion_tokens
    if said is None:
        return None, []
    notes = []
    tokens = read.counted()
    if tokens is None:
        notes.append("usage_contradicts")
    if _beyond(said, cap):
        tokens = None
        notes.append("usage_above_cap")
    if not _adds_up(read, said):
        tokens = None
        notes.append("usage_parts_differ")
    chunks = len(read.arrivals)
    if 0 < said < chunks:
        tokens = tokens if _near(said, chunks) else None
        notes.append("usage_below_chunks")
    return tokens, notes


def _adds_up(read: Transcript, said: int) -> bool:
    """Whether the parts of the last usage agree. A server that leaves the thoughts out of its count shows it here."""
    if read.reasoning_tokens is not None and read.reasoning_tokens > said:
        return False
    # A total of 0 is a field that was never filled in.
    return not read.total_tokens or read.prompt_tokens is None or read.total_tokens == read.prompt_tokens + said


def _beyond(count: int, cap: int | None) -> bool:
    return cap is not None and count > cap + END_TOKEN


def _near(one: int, other: int) -> bool:
    return abs(one - other) <= NEAR * max(one, other)
