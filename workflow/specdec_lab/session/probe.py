"""Asks the baseline's server what it thinks of the places where texts part (B2, D4). Asking only; judging is elsewhere.

The shared beginning is sent as an assistant message that the server goes on with, one token, with the log probabilities
of the likeliest ones. llama.cpp continues a last assistant message by itself; vLLM and SGLang are told to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
from pydantic import JsonValue

from ..analysis.near_tie import STEPS, Answer, Candidate, Question, Walk, beginning, read
from ..records.errors import UserError
from ..records.probe import Probe, ProbeAnswer

TOP = 20
"""Likeliest tokens asked for: vLLM's own limit (--max-logprobs)."""
CONTINUES = {"add_generation_prompt": False, "continue_final_message": True}
TOLD_TO_CONTINUE = frozenset({"vllm", "sglang", "nim", "openai"})
"""Engines that need to be told that the last message is unfinished."""


def ask(
    questions: Iterable[Question],
    *,
    base_url: str,
    model: str,
    engine: str,
    baseline: str,
    extra: Mapping[str, JsonValue] | None = None,
    say: Callable[[str], None] = lambda _: None,
    timeout_s: float = 120.0,
) -> Probe:
    """One answer per question. UserError when the server cannot be reached or gives no log probabilities at all."""
    body = {
        "model": model,
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": TOP,
        "stream": False,
        **(CONTINUES if engine in TOLD_TO_CONTINUE else {}),
        **(extra or {}),
    }
    answers: list[ProbeAnswer] = []
    with httpx.Client(base_url=base_url, trust_env=False, timeout=timeout_s) as client:
        for question in questions:
            answer = _walk(client, body, question)
            said = "nothing can be said" if answer.gap is None else f"gap {answer.gap:.3f} nats"
            say(f"{question.mode} {question.cell} {question.id}: {said} {answer.note}".rstrip())
            answers.append(
                ProbeAnswer(
                    mode=question.mode,
                    cell=question.cell,
                    id=question.id,
                    at_char=question.at_char,
                    gap=answer.gap,
                    ours=answer.ours,
                    theirs=answer.theirs,
                    note=answer.note,
                )
            )
    return Probe(baseline=baseline, answers=answers)


def _walk(client: httpx.Client, body: Mapping[str, Any], question: Question) -> Answer:
    place = beginning(question)
    for _ in range(STEPS):
        step = read(_likeliest(client, body, question, place), question.ours[place:], question.theirs[place:])
        if isinstance(step, Answer):
            return step
        place += step.characters
        if isinstance(step, Walk) and place > question.at_char:
            return Answer(None, note="the likeliest token leads past the difference")
    return Answer(None, note=f"the texts share more than {STEPS} tokens of one word")


def _likeliest(client: httpx.Client, body: Mapping[str, Any], question: Question, place: int) -> list[Candidate]:
    messages: list[dict[str, str]] = [{"role": role, "content": content} for role, content in question.messages]
    if place:
        messages.append({"role": "assistant", "content": question.theirs[:place]})
    asked = {**body, "messages": messages}
    if not place:
        asked = {name: value for name, value in asked.items() if name not in CONTINUES}
    try:
        answer = client.post("/v1/chat/completions", json=asked)
        answer.raise_for_status()
        tokens = answer.json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        found = [(str(one["token"]), float(one["logprob"])) for one in tokens]
        return [Candidate(token, logprob) for token, logprob in found if math.isfinite(logprob)]
    except httpx.HTTPStatusError as error:
        raise UserError(
            f"The server refused to be asked: HTTP {error.response.status_code} {error.response.text[:300]}",
            place=str(error.request.url),
            fix="It must continue a last assistant message and give `top_logprobs`; see its --max-logprobs.",
            code="probe_refused",
        ) from error
    except httpx.HTTPError as error:
        raise UserError(
            f"The server did not answer: {error}",
            place=str(client.base_url),
            fix="Start the baseline's server (see deploy/) and give its address.",
            code="probe_unreachable",
        ) from error
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(
            "The server's answer holds no log probabilities.",
            place=str(client.base_url),
            fix="Ask a server that gives `logprobs` and `top_logprobs` on /v1/chat/completions.",
            code="no_logprobs",
        ) from error


def served(base_url: str) -> str:
    """The first model that the server lists; UserError when it lists none."""
    address = base_url.rstrip("/").removesuffix("/v1")
    try:
        with httpx.Client(trust_env=False, timeout=10.0) as client:
            answer = client.get(f"{address}/v1/models").raise_for_status().json()
        return str(answer["data"][0]["id"])
    except (httpx.HTTPError, KeyError, IndexError, TypeError, ValueError) as error:
        raise UserError(
            f"The server does not say which model it serves: {error}",
            place=address,
            fix="Give it with --model.",
            code="probe_unreachable",
        ) from error
