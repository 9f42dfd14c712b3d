"""The closed list of verdict words, and the reasons that every verdict carries."""

from __future__ import annotations

from typing import Literal

from .base import Finding, Record

Word = Literal[
    "faster",
    "slower",
    "no difference shown",
    "not comparable",
    "unreliable",
    "not exercised",
    "text differs",
    "undecided",
]


class Verdict(Record):
    """One judgement: a word and its reasons, each a typed code with a sentence."""

    word: Word
    reasons: list[Finding]
