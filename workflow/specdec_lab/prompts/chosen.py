"""Which prompts a run measures, and which of them one cell sends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..records.errors import UserError
from ..records.prompt import Prompt
from .files import load
from .generated import KINDS, generate
from .longer import kind_name

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


def workload(
    *, prompts: str | None, seed: int, kinds: Sequence[str] | None, context_tokens: Sequence[int]
) -> list[Prompt]:
    """Every prompt of a run: the user's file or the generated ones, of the kinds asked for, and those again behind long
    contexts. UserError if a kind cannot be part of a file's name, or if long contexts are asked of the user's own."""
    if prompts is None:
        chosen = generate(seed, kinds)
        for tokens in context_tokens:
            chosen += generate(seed, kinds, tokens)
        return chosen
    if context_tokens:
        raise UserError(
            "Long contexts can be made for the generated prompts only.",
            place="workload.context_tokens",
            fix="Put long prompts into your own file, with a kind of their own.",
            code="config",
        )
    rows = [prompt for prompt in load(Path(prompts)) if kinds is None or prompt.kind in kinds]
    for prompt in rows:
        if not _FILE_NAME.match(prompt.kind):
            raise UserError(
                f"The kind {prompt.kind!r} cannot be part of a file's name.",
                place=f"{prompts}, id {prompt.id}",
                fix="Use letters, digits, dot, dash and underscore.",
                code="bad_kind",
            )
    return rows


def kinds_of(
    *, prompts: str | None, seed: int, kinds: Sequence[str] | None, context_tokens: Sequence[int]
) -> list[str]:
    """The kinds of a run in the order in which they are measured, known without making the generated prompts."""
    if prompts is not None:
        rows = workload(prompts=prompts, seed=seed, kinds=None, context_tokens=context_tokens)
        found = list(dict.fromkeys(row.kind for row in rows))
        return [kind for kind in found if kinds is None or kind in kinds] or found
    plain = [kind for kind in KINDS if kinds is None or kind in kinds] or list(KINDS)
    return plain + [kind_name(kind, tokens) for tokens in context_tokens for kind in plain]


def select(rows: Sequence[Prompt], kind: str, requests: int | None) -> list[Prompt]:
    """The prompts of one cell: the first `requests` of its kind (null: all), the same in every mode."""
    return [row for row in rows if row.kind == kind][:requests]
