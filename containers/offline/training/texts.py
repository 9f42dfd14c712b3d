"""The texts to learn from: prompts, and what the target answers greedily. `until` is a time of `time.monotonic`."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from checkpoint_folder import DRAFT_VOCABULARY

from .head import HEAD_GUESSES
from .llama import Cache, Llama
from .progress import say
from .templates import template_prompt

PROMPT_TOKENS = 64  # that the target may add to an opening
OPENINGS = (
    "", "", "", "Write a Python function", "Extract as JSON", "Change this code so that", "Explain", "How do I", "Why",
    "What is", "Describe", "Compare", "Summarize", "List", "Write an email", "Write a short story about",
    "Help me plan", "Fix this Python code:\n", "Rewrite this text", "Is it true that",
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """Tokens of a chat; those from `answer` on are the target's greedy answer."""

    ids: list[int]
    answer: int


@torch.inference_mode()
def write_on(
    target: Llama, rows: list[list[int]], limit: int, stop: int, until: float, temperature: float = 0.0
) -> list[list[int]]:
    """What the target adds to each row: up to `limit` tokens, up to and with `stop`, or what there is at `until`."""
    device, width = target.embed_tokens.weight.device, max(map(len, rows))
    ids = torch.tensor([[stop] * (width - len(row)) + row for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)[:, None]
    slots = torch.arange(width + limit, device=device)[None]
    real = slots >= width - lengths
    causal = slots[:, None, :width] <= slots[:, :width, None]
    # A padded query must see something, or its softmax is not a number: it sees itself.
    itself = slots[:, None, :width] == slots[:, :width, None]
    mask = causal & real[:, None, :width] | itself
    positions = (slots - width + lengths).clamp(min=0)
    cache = Cache(target, len(rows), width + limit)
    added, done, at = [], torch.zeros(len(rows), dtype=torch.bool, device=device), 0
    for number in range(limit):
        cache.look(at, mask)
        states, _ = target(ids, positions[:, at : at + ids.shape[1]], cache)
        token = torch.where(done, stop, choose(target.logits(states[:, -1]), temperature))
        added.append(token)
        done |= token == stop
        at, ids = width + number, token[:, None]
        mask = real[:, None, : at + 1]
        if number % 8 == 7 and (bool(done.all()) or time.monotonic() > until):
            break
    new = torch.stack(added, dim=1).tolist()
    return [row[: row.index(stop) + 1] if stop in row else row for row in new]


def choose(logits: Tensor, temperature: float) -> Tensor:
    """The next token of every row; a drawn one is never a control token that would open another turn."""
    if not temperature:
        return logits.argmax(-1)
    logits = logits.float() / temperature
    logits[:, :2] = float("-inf")
    return torch.multinomial(logits.softmax(-1), 1)[:, 0]


def write_texts(target: Llama, tokenizer: Any, drawn: random.Random, rows: int, limit: int, until: float) -> list[Text]:
    """As many texts as fit until then, at least one batch; prompts of its own and prompts from templates in turn."""
    texts: list[Text] = []
    first = True
    while first or time.monotonic() < until:
        first = False
        half = rows // 2
        asked = own_prompts(target, tokenizer, drawn, half, until)
        asked += [template_prompt(drawn) for _ in range(rows - half)]
        prompts = [tokens(tokenizer, chat(tokenizer, text)) for text in asked]
        answers = write_on(target, prompts, limit, target.config["eos_token_id"], until)
        texts += [Text(a + b, len(a)) for a, b in zip(prompts, answers, strict=True) if len(b) > 2 + HEAD_GUESSES]
        say(f"{len(texts)} texts, {sum(len(one.ids) - one.answer for one in texts)} tokens of answers")
    return texts


def own_prompts(target: Llama, tokenizer: Any, drawn: random.Random, rows: int, until: float) -> list[str]:
    """What the target writes where a user would; one that does not end is taken as far as it got."""
    before = chat(tokenizer, "\0").split("\0")[0]
    openings = [drawn.choice(OPENINGS) for _ in range(rows)]
    begun = [tokens(tokenizer, before + one) for one in openings]
    stop = target.config["eos_token_id"]
    written = write_on(target, begun, PROMPT_TOKENS, stop, until, temperature=0.9)
    endings = tokenizer.batch_decode([[one for one in row if one != stop] for row in written])
    return [(one + ending).strip() or "Hello" for one, ending in zip(openings, endings, strict=True)]


def chat(tokenizer: Any, text: str) -> str:
    """The chat template around one user's turn."""
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], tokenize=False, add_generation_prompt=True
    )


def tokens(tokenizer: Any, text: str) -> list[int]:
    """Ids of a text that has its control tokens already."""
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def draft_vocabulary(texts: list[Text], config: dict[str, Any]) -> list[int]:
    """The most frequent ids, sorted; few texts are filled up with low ids, which the tokenizer learned first."""
    seen = Counter(one for text in texts for one in text.ids)
    ids = [one for one, _ in seen.most_common(DRAFT_VOCABULARY)]
    ids += [one for one in range(config["vocab_size"]) if one not in seen][: DRAFT_VOCABULARY - len(ids)]
    return sorted(ids)
