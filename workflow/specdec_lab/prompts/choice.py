"""Which prompts a run has, and which of them one cell sends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.spec import CellSpec
from .files import load
from .generated import DEFAULT_SEED, generate
from .longer import longer


def workload(
    prompts: str | Path | None = None,
    seed: int = DEFAULT_SEED,
    kinds: Sequence[str] | None = None,
    context_tokens: Iterable[int] = (),
) -> list[Prompt]:
    """Every prompt of a run: the user's file, or the generated ones; then each again at every context length (M15).

    `kinds` keeps only these (null: all). UserError for a file that is not as it should be, or a kind that is not there.
    """
    if prompts is None:
        rows = generate(seed, kinds)
    else:
        rows = load(Path(prompts))
        present = list(dict.fromkeys(row.kind for row in rows))
        missing = [kind for kind in kinds or () if kind not in present]
        if missing:
            raise UserError(
                f"No prompt of kind {missing[0]!r}.", place=str(prompts), fix=f"The file has: {', '.join(present)}."
            )
        rows = [row for row in rows if kinds is None or row.kind in kinds]
    return rows + [row for tokens in context_tokens for row in longer(rows, tokens, seed)]


def select(prompts: Iterable[Prompt], cell: CellSpec) -> list[Prompt]:
    """What one cell sends: the first `requests` prompts of its kind, each capped at the cell's max_tokens."""
    rows = [prompt for prompt in prompts if prompt.kind == cell.kind][: cell.requests]
    if cell.max_tokens is None:
        return rows
    return [row.model_copy(update={"max_tokens": min(row.max_tokens, cell.max_tokens)}) for row in rows]
