"""One chat completion chunk: what an event's JSON says (cases A1, A3, A6, A8)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


class BadChunk(ValueError):
    """The event's data is not a JSON object."""


@dataclass(slots=True)
class Chunk:
    """The parts of a chunk that are measured."""

    answer: str = ""
    reasoning: str = ""
    token_ids: int | None = None
    """How many token ids it carries; None when it carries none."""
    generated: bool = False
    """Whether it carries something the model generated, in any channel; a role or an empty string is not."""
    choices: bool = False
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    error: str | None = None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def error_text(error: Any) -> str:
    """The words of an error as servers send it: a string, an object with a message, or anything else as JSON."""
    if isinstance(error, str):
        return error
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return str(error["message"])
    return json.dumps(error, ensure_ascii=False)


def parse(data: bytes, *, error_event: bool = False) -> Chunk:
    """The chunk in an event's data; BadChunk when it is not a JSON object in UTF-8.

    `error_event`: the event's type was `error`, so whatever it holds is one.
    """
    try:
        made = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as failure:
        if error_event:
            return Chunk(error=data.decode("utf-8", "replace"))
        raise BadChunk(f"{failure}") from failure
    if error_event:
        return Chunk(error=error_text(made.get("error") or made if isinstance(made, dict) else made))
    if not isinstance(made, dict):
        raise BadChunk("not a JSON object")
    chunk = Chunk()
    if made.get("error"):
        chunk.error = error_text(made["error"])
    elif made.get("object") == "error":
        chunk.error = error_text(made)
    _usage(chunk, made)
    choices = made.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        _choice(chunk, choices[0])
    return chunk


def _usage(chunk: Chunk, made: dict[str, Any]) -> None:
    usage = made.get("usage")
    if isinstance(usage, dict):
        chunk.prompt_tokens = _count(usage.get("prompt_tokens"))
        chunk.completion_tokens = _count(usage.get("completion_tokens"))
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            chunk.cached_tokens = _count(details.get("cached_tokens"))
    timings = made.get("timings")
    if chunk.cached_tokens is None and isinstance(timings, dict):
        chunk.cached_tokens = _count(timings.get("cache_n"))


def _choice(chunk: Chunk, choice: dict[str, Any]) -> None:
    chunk.choices = True
    finish = choice.get("finish_reason")
    chunk.finish_reason = finish if isinstance(finish, str) and finish else None
    ids = choice.get("token_ids")
    if isinstance(ids, list):
        chunk.token_ids = len(ids)
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        delta = {}
    answer = delta.get("content")
    if isinstance(answer, str):
        chunk.answer = answer
    for name in ("reasoning_content", "reasoning"):
        value = delta.get(name)
        if isinstance(value, str) and value:
            chunk.reasoning = value
            break
    chunk.generated = bool(chunk.answer or chunk.reasoning or delta.get("tool_calls") or chunk.token_ids)
