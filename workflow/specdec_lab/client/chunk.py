"""One chat completion chunk: what an event's JSON says (cases A1, A3, A6, A8)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .toolcalls import CallPiece, pieces

_PLAIN = frozenset({"role", "content"})


class BadChunk(ValueError):
    """The event's data is not a JSON object."""


@dataclass(slots=True)
class Chunk:
    """The parts of a chunk that are measured."""

    answer: str = ""
    reasoning: str = ""
    calls: tuple[CallPiece, ...] = ()
    token_ids: int | None = None
    """How many token ids it carries; None when it carries none."""
    generated: bool = False
    """Whether it carries something the model generated, in any channel; a role or an empty string is not."""
    choices: bool = False
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    reasoning_tokens: int | None = None
    """Tokens of thought, which are a part of the completion's."""
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
    chunk.error = _error(made)
    _usage(chunk, made)
    choices = made.get("choices")
    # One choice is asked for; of a server that sends more, the first counts.
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index") in (0, None):
            _choice(chunk, choice)
            break
    return chunk


def _error(made: dict[str, Any]) -> str | None:
    """The error that an object is, in the shapes that servers and proxies use within a stream (case A6)."""
    if made.get("error") not in (None, False, ""):
        return error_text(made["error"])
    if made.get("object") == "error":
        return error_text(made)
    if "choices" in made or "usage" in made:
        return None
    for name in ("detail", "errors"):
        if made.get(name):
            return error_text(made[name])
    return error_text(made) if "message" in made and ("code" in made or "type" in made) else None


def _usage(chunk: Chunk, made: dict[str, Any]) -> None:
    usage = made.get("usage")
    if isinstance(usage, dict):
        chunk.prompt_tokens = _count(usage.get("prompt_tokens"))
        chunk.completion_tokens = _count(usage.get("completion_tokens"))
        chunk.total_tokens = _count(usage.get("total_tokens"))
        thought = usage.get("completion_tokens_details")
        if isinstance(thought, dict):
            chunk.reasoning_tokens = _count(thought.get("reasoning_tokens"))
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
    wrong = choice.get("error") or (finish if isinstance(finish, dict) else None)
    if wrong and chunk.error is None:
        chunk.error = error_text(wrong)
    ids = choice.get("token_ids")
    if isinstance(ids, list):
        chunk.token_ids = len(ids)
    delta = choice.get("delta", choice.get("message"))
    if not isinstance(delta, dict):
        delta = {"content": choice.get("text")}
    content = delta.get("content")
    chunk.answer = content if isinstance(content, str) else _text(content, "text")
    # Nearly every delta holds a content or a role and nothing else: it is not asked for all that others may hold.
    if not (delta.keys() <= _PLAIN and (content is None or isinstance(content, str))):
        chunk.answer = chunk.answer or _text(delta.get("refusal"), "text")
        thought = (_text(delta.get(name), "text") for name in ("reasoning_content", "reasoning", "reasoning_details"))
        chunk.reasoning = next(filter(None, thought), "") or _text(content, "thinking")
        chunk.calls = pieces(delta)
    chunk.generated = bool(chunk.answer or chunk.reasoning or chunk.calls or chunk.token_ids)


def _text(value: Any, name: str) -> str:
    """The text of a channel: a string, or a list of parts of which each holds its text under `name` (Mistral)."""
    if isinstance(value, str):
        return value if name == "text" else ""
    if not isinstance(value, list):
        return ""
    parts = (part.get(name) for part in value if isinstance(part, dict))
    return "".join(part if isinstance(part, str) else _text(part, "text") for part in parts)
