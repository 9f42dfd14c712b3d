"""`probe.json`: what the baseline's server thinks of the places where texts part (B2, D4)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Record


class ProbeAnswer(Record):
    """One prompt at its first difference."""

    mode: str
    cell: str = Field(description="Name of the cell: code_c4.")
    id: str
    at_char: int
    gap: float | None = Field(
        default=None,
        description="Log probability (nats) of the baseline's next token minus the mode's; null: not among the top",
    )
    ours: str | None = Field(default=None, description="The token that leads into the mode's text.")
    theirs: str | None = Field(default=None, description="The token that leads into the baseline's text.")
    note: str = ""


class Probe(Record):
    """All answers of one probe."""

    schema_version: Literal[1] = 1
    baseline: str
    answers: list[ProbeAnswer]
