"""The generated workload: 112 prompts from a seed (M13).

Kinds come in the order code, chat, json, and each kind's prompts in an order in which any first few are already mixed,
so a file is the same bytes on every machine: numbers are drawn from sha256, nothing depends on the Python version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..records.errors import UserError
from ..records.prompt import Message, Prompt
from . import chat, code, extraction
from .longer import longer

Texts = Callable[[int], list[tuple[str, str]]]


@dataclass(frozen=True)
class Source:
    """One generated kind: its measured texts, those held out for the warm-up, and its cap on answers."""

    measured: Texts
    held_out: Texts
    cap: int


SOURCES = {
    "code": Source(code.measured, code.held_out, code.CAP),
    "chat": Source(chat.measured, chat.held_out, chat.CAP),
    "json": Source(extraction.measured, extraction.held_out, extraction.CAP),
}
KINDS = tuple(SOURCES)
DEFAULT_SEED = 7


def generate(
    seed: int = DEFAULT_SEED, kinds: Iterable[str] | None = None, context_tokens: int | None = None
) -> list[Prompt]:
    """The generated prompts of these kinds (null: all three, 112 prompts), always in the same order.

    `context_tokens` lengthens every prompt to about that many tokens (M15, see `longer`); kinds are then called
    `code_ctx8000` and so on. UserError for a kind that does not exist or a context shorter than the prompts themselves.
    """
    wanted = list(KINDS) if kinds is None else list(kinds)
    unknown = [kind for kind in wanted if kind not in SOURCES]
    if unknown:
        raise UserError(
            f"There is no generated kind {unknown[0]!r}.",
            place="prompts: kinds",
            fix=f"Use {', '.join(KINDS)}, or give your own prompts as a JSONL file.",
        )
    rows = [row for kind in KINDS if kind in wanted for row in _rows(kind, SOURCES[kind].measured(seed))]
    return rows if context_tokens is None else longer(rows, context_tokens, seed)


def held_out(kind: str, seed: int = DEFAULT_SEED) -> list[Prompt]:
    """Prompts of a generated kind that are never measured (M23); none for any other kind."""
    return _rows(kind, SOURCES[kind].held_out(seed)) if kind in SOURCES else []


def _rows(kind: str, texts: list[tuple[str, str]]) -> list[Prompt]:
    return [
        Prompt(
            id=f"{kind}-{name}",
            kind=kind,
            messages=[Message(role="user", content=text)],
            max_tokens=SOURCES[kind].cap,
        )
        for name, text in texts
    ]
