"""The generated workload and the warm-up prompts (M13, M15, M23).

Kinds come in the order code, chat, json, and each kind's prompts in the order in which they are built, so a file is the
same bytes on every machine: numbers are drawn from sha256, nothing depends on the Python version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from ..records.errors import UserError
from ..records.prompt import Message, Prompt
from . import chat, code, extraction
from .filler import estimate_tokens, filler

Texts = Callable[[int], list[tuple[str, str]]]


@dataclass(frozen=True)
class _Source:
    measured: Texts
    held_out: Texts
    cap: int


_SOURCES = {
    "code": _Source(code.measured, code.held_out, code.CAP),
    "chat": _Source(chat.measured, chat.held_out, chat.CAP),
    "json": _Source(extraction.measured, extraction.held_out, extraction.CAP),
}
KINDS = tuple(_SOURCES)
DEFAULT_SEED = 7

_LENGTH_FACTOR = 2.0
"""Held-out prompts stand in for measured ones if their length is within this factor of the median."""


def kind_name(kind: str, context_tokens: int | None) -> str:
    """The kind under which a padded workload is counted: `chat` at 8000 tokens is `chat_ctx8000`."""
    return kind if context_tokens is None else f"{kind}_ctx{context_tokens}"


def generate(
    seed: int = DEFAULT_SEED, kinds: Iterable[str] | None = None, context_tokens: int | None = None
) -> list[Prompt]:
    """The generated prompts of these kinds (null: all three), 112 in all, always in the same order.

    `context_tokens` lengthens every prompt to about that many tokens with filler notes that stand before the task
    (M15); the kinds are then called `code_ctx8000` and so on. Raises UserError for a kind that does not exist or a
    context that is no longer than the prompts themselves.
    """
    wanted = list(KINDS) if kinds is None else list(kinds)
    unknown = [kind for kind in wanted if kind not in _SOURCES]
    if unknown:
        raise UserError(
            f"There is no generated kind {unknown[0]!r}.",
            place="prompts: kinds",
            fix=f"Use {', '.join(KINDS)}, or give your own prompts as a JSONL file.",
        )
    return [
        _prompt(seed, kind, name, text, context_tokens)
        for kind in KINDS
        if kind in wanted
        for name, text in _SOURCES[kind].measured(seed)
    ]


def warmup_for(kind: str, n: int, measured: Iterable[Prompt], seed: int = DEFAULT_SEED) -> list[Prompt]:
    """`n` prompts to warm up one kind with. None of them is measured, and their length is like the measured ones'.

    For a generated kind they are its held-out prompts, repeated where more are asked for. For any other kind, and for
    padded prompts, they are filler notes to be copied, each as long as one of the measured prompts and with its
    max_tokens: the draft path is exercised, and neither a prefix cache nor a suffix cache learns anything that is
    measured later. Message roles are kept, so that the chat template is the same.
    """
    rows = [prompt for prompt in measured if prompt.kind == kind]
    if n <= 0:
        return []
    if not rows:
        raise UserError(f"No prompt of kind {kind!r} to warm up for.", place="prompts")
    pool = _held_out(kind, rows, seed) or _stand_ins(seed, kind, min(n, len(rows)), rows)
    return [pool[number % len(pool)].model_copy(update={"id": f"warmup-{kind}-{number}"}) for number in range(n)]


def _held_out(kind: str, rows: list[Prompt], seed: int) -> list[Prompt]:
    source = _SOURCES.get(kind)
    if source is None:
        return []
    sent = {_key(row) for row in rows}
    spare = [_prompt(seed, kind, name, text, None) for name, text in source.held_out(seed)]
    spare = [prompt for prompt in spare if _key(prompt) not in sent]
    usual = median(_length(row) for row in rows)
    fits = [prompt for prompt in spare if usual / _LENGTH_FACTOR <= _length(prompt) <= usual * _LENGTH_FACTOR]
    cap = round(median(row.max_tokens for row in rows))
    return [prompt.model_copy(update={"max_tokens": cap}) for prompt in fits]


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


def _prompt(seed: int, kind: str, name: str, text: str, context_tokens: int | None) -> Prompt:
    counted = kind_name(kind, context_tokens)
    if context_tokens is not None:
        text = _padded(seed, f"{kind}-{name}", text, context_tokens)
    return Prompt(
        id=f"{counted}-{name}",
        kind=counted,
        messages=[Message(role="user", content=text)],
        max_tokens=_SOURCES[kind].cap,
    )


_PAD_HEAD = "These notes are background and have nothing to do with the task that follows them.\n\n"
_PAD_TAIL = "\n\nEnd of the notes. The task:\n\n"


def _padded(seed: int, name: str, text: str, context_tokens: int) -> str:
    own = estimate_tokens(text) + estimate_tokens(_PAD_HEAD + _PAD_TAIL)
    if context_tokens <= own:
        raise UserError(
            f"A context of {context_tokens} tokens is shorter than the prompts themselves (about {own}).",
            place="prompts: context_tokens",
            fix="Ask for at least 500 tokens.",
        )
    first, rest = filler(seed, name, context_tokens - own).split("\n", 1)
    return f"{first}\n{_PAD_HEAD}{rest}{_PAD_TAIL}{text}"


def _length(prompt: Prompt) -> int:
    return sum(estimate_tokens(message.content) for message in prompt.messages)


def _key(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    return tuple((message.role, message.content) for message in prompt.messages)
