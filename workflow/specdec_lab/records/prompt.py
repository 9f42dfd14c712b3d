"""One prompt of a workload: a row of prompts.jsonl."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Record


class Message(Record):
    """One chat message."""

    role: Literal["system", "user", "assistant", "developer", "tool"]
    content: str


class Prompt(Record):
    """What is sent, and under which name it is counted."""

    id: str
    kind: str
    messages: list[Message] = Field(min_length=1)
    max_tokens: int = Field(gt=0)
