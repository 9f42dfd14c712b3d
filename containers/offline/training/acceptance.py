"""What greedy checking would accept."""

from __future__ import annotations

import torch
from torch import Tensor

from .head import HEAD_GUESSES, Head, ahead
from .learning import batch_of
from .llama import Llama
from .texts import Text

DRAFT_GUESSES = 3


@torch.inference_mode()
def acceptance(
    target: Llama, head: Head, draft: Llama, kept: Tensor, texts: list[Text], size: int
) -> tuple[float, float]:
    """Mean acceptance lengths of head and draft, the token that the target itself adds counted.

    Held-out texts are of the same making as those learned from, so other prompts may well be accepted less.
    """
    hits: tuple[list[list[list[bool]]], ...] = ([], [])
    for at in range(0, len(texts), size):
        some = texts[at : at + size]
        batch = batch_of(target, some)
        guessed = [
            kept[head.lm_head(states).argmax(-1)] == ahead(batch.ids, step + 2)
            for step, states in enumerate(head.guesses(target.embed_tokens, batch.ids, batch.aux, HEAD_GUESSES))
        ]
        # A guess counts only behind right ones, so the draft has then read what the target wrote: one pass is enough.
        states, _ = draft(batch.ids, torch.arange(batch.ids.shape[1], device=batch.ids.device)[None])
        own = draft.logits(states).argmax(-1) == ahead(batch.ids, 1)
        for rights, steps in zip(hits, (guessed, [ahead(own, n + 1) for n in range(DRAFT_GUESSES)]), strict=True):
            table = torch.stack(steps, dim=-1).tolist()
            rights += [row[one.answer - 1 : len(one.ids) - 2] for row, one in zip(table, some, strict=True)]
    return mean_length(hits[0]), mean_length(hits[1])


def mean_length(answers: list[list[list[bool]]]) -> float:
    """Walk each answer as a server does: a check accepts right guesses up to the first wrong one and adds a token."""
    checks = accepted = 0
    for bases in answers:
        at = 0
        while at < len(bases):
            right = next((n for n, one in enumerate(bases[at]) if not one), len(bases[at]))
            right = min(right, len(bases) - at)
            checks, accepted, at = checks + 1, accepted + right, at + right + 1
    return 1 + accepted / max(checks, 1)
