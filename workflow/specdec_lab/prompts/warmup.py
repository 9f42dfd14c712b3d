"""Prompts to warm up with: never measured, of similar length (M23, case D7)."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from ..records.errors import UserError
from ..records.prompt import Message, Prompt
from .filler import estimate_tokens, filler
from .generated import DEFAULT_SEED, held_out
from .longer import tokens_of

_LENGTH_FACTOR = 2.0
"""Held-out prompts stand in for measured ones if their length is within this factor of the median."""


def warmup_for(kind: str, n: int, measured: Iterable[Prompt], seed: int = DEFAULT_SEED) -> list[Prompt]:
    """`n` prompts to warm up one kind with. None of them is measured, and their length is like the measured ones'.

    For a generated kind they are its held-out prompts, repeated where more are asked for. For any other kind, and for
    lengthened prompts, they are filler notes to be copied, each as long as one of the measured prompts and with its
    max_tokens: the draft path is exercised, and neither a prefix cache nor a suffix cache learns anything that is
    measured later. Message roles are kept, so that the chat template is the same. UserError for a kind without prompts.
    """
    rows = [prompt for prompt in measured if prompt.kind == kind]
    if n <= 0:
        return []
    if not rows:
        raise UserError(f"No prompt of kind {kind!r} to warm up for.", place="prompts")
    pool = _fitting(kind, rows, seed) or _stand_ins(seed, kind, min(n, len(rows)), rows)
    return [pool[number % len(pool)].model_copy(update={"id": f"warmup-{kind}-{number}"}) for number in range(n)]


def _fitting(kind: str, rows: list[Prompt], seed: int) -> list[Prompt]:
    sent = {_key(row) for row in rows}
    usual = median(tokens_of(row) for row in rows)
    cap = round(median(row.max_tokens for row in rows))
    return [
        prompt.model_copy(update={"max_tokens": cap})
        for prompt in held_out(kind, seed)
        if _key(prompt) not in sent and usual / _LENGTH_FACTOR <= tokens_of(prompt) <= usual * _LENGTH_FACTOR
    ]


def _stand_ins(seed: int, kind: str, count: int, rows: list[Prompt]) -> list[Prompt]:
    """One for each of `count` measured prompts, taken evenly from all of them so that long and short are met."""
    return [_stand_in(seed, kind, number, rows[number * len(rows) // count]) for number in range(count)]


def _stand_in(seed: int, kind: str, number: int, like: Prompt) -> Prompt:
    """Filler in place of each message of one measured prompt: same roles, about the same length."""
    messages = []
    for place, message in enumerate(like.messages):
        notes = filler(seed, f"warmup:{kind}:{number}:{place}", max(4, estimate_tokens(message.content) - 8))
        lead = "Copy these notes:\n\n" if message.role == "user" else ""
        messages.append(Message(role=message.role, content=f"{lead}{notes}"))
    return Prompt(id=f"warmup-{kind}-{number}", kind=kind, messages=messages, max_tokens=like.max_tokens)


def _key(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    return tuple((message.role, message.content) for message in prompt.messages)
