"""How much context a kind's requests take, before any tokenizer is there: an estimate, to refuse what cannot fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .chosen import select, workload
from .longer import kind_name, tokens_of

_SURE_GENERATED = 0.7
"""Of the estimate, which was made for the generated prompts and is some 15 % off at most."""
_SURE_OWN = 1 / 3
"""Of the estimate of a text that nobody has seen: blanks in a row and long words make few tokens."""


@dataclass(frozen=True)
class Need:
    """The longest request of a kind, in tokens: its prompt by estimate, and the most that its answer may take."""

    prompt: int
    answer: int
    sure: float
    """Share of the estimate that the prompt surely has."""
    requests: int
    """How many prompts a cell of this kind sends."""

    @property
    def likely(self) -> int:
        """What it takes if the estimate is right."""
        return self.prompt + self.answer

    @property
    def least(self) -> int:
        """What it surely takes."""
        return int(self.prompt * self.sure) + self.answer


def needs(
    *,
    prompts: str | None,
    seed: int,
    kinds: Sequence[str] | None,
    context_tokens: Sequence[int],
    requests: int | None,
    max_tokens: Mapping[str, int],
) -> dict[str, Need]:
    """By kind, of the prompts that a cell sends. Long contexts are taken by their length, without making them."""
    rows = workload(prompts=prompts, seed=seed, kinds=kinds, context_tokens=[])
    sure = _SURE_GENERATED if prompts is None else _SURE_OWN
    found: dict[str, Need] = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        chosen = [(tokens_of(row), row.max_tokens) for row in select(rows, kind, requests)]
        for tokens in (None, *context_tokens):
            cap = max_tokens.get(kind_name(kind, tokens), max_tokens.get(kind))
            sizes = [(prompt, answer if cap is None else min(answer, cap)) for prompt, answer in chosen]
            longest = max(sizes, key=lambda size: max(size[0], tokens or 0) + size[1])
            found[kind_name(kind, tokens)] = Need(max(longest[0], tokens or 0), longest[1], sure, len(chosen))
    return found
