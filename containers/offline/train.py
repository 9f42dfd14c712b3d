#!/usr/bin/env python3
"""Two trained proposers for the bundled SmolLM2-135M, made on a GPU machine without network in a few minutes.

    python3 train.py TARGET_FOLDER DEST_FOLDER [--minutes 2.5] [--device cuda] [--seed 0]

Real text, below DEST_FOLDER, as vLLM loads them:
    smollm2-135m-eagle3  an EAGLE3 head, trained; the tensors of shapes.py's random head
    smollm2-135m-draft4  first two and last two layers of the target, distilled

Method of the head: EAGLE-3 (Li et al. 2025, arXiv:2503.01840). Three states of the target go in, and the head is
trained on its own output for several guesses in a row ("training-time test"). No data set is needed: the target writes
prompts itself from the opened chat template (Magpie, Xu et al. 2024, arXiv:2406.08464), small templates add prompts to
copy from, and both proposers learn the target's greedy answers. The lab's measured prompts are not used. As the clock
decides how many texts and steps there are, two runs with one seed differ.

Needs torch, safetensors and transformers (for the tokenizer alone).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import torch
    import torch.nn.functional as F
    from safetensors.torch import load_file, save_file
    from torch import Tensor, nn
    from transformers import AutoTokenizer
except ImportError as missing:
    sys.exit(f"train.py needs torch, safetensors and transformers; here is no {missing.name}.")

HEAD, DRAFT = "smollm2-135m-eagle3", "smollm2-135m-draft4"
TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "generation_config.json")
DRAFT_VOCABULARY = 8192
HEAD_GUESSES = 4  # also the number of unrolled steps in training
DRAFT_GUESSES = 3
DECAY = 0.8  # a later guess counts only if all earlier ones were right
WRITING = 0.4  # share of the time for texts; training ends at TRAINED, the rest is for writing files and checking
TRAINED = 0.9
PROMPT_TOKENS = 64
WARM_UP = 20

OPENINGS = (
    "", "", "", "Write a Python function", "Extract as JSON", "Change this code so that", "Explain", "How do I", "Why",
    "What is", "Describe", "Compare", "Summarize", "List", "Write an email", "Write a short story about",
    "Help me plan", "Fix this Python code:\n", "Rewrite this text", "Is it true that",
)  # fmt: skip
NOUNS = (
    "order", "invoice", "tree", "score", "student", "room", "ticket", "signal", "page", "token", "route", "engine",
    "sample", "planet", "recipe", "account", "vector", "matrix", "event", "user", "city", "price", "count", "level",
)  # fmt: skip
VERBS = ("check", "build", "sum", "load", "merge", "sort", "clean", "print", "find", "update", "parse", "convert")
STATEMENTS = (
    '{a} = {given}["{b}"]', "{a} = {b} * {n} + {m}", "{a} = len({given}) - {n}", '{a} = str({b}) + "{c}"',
    "{a} += {n}", "{a} = max({a}, {n})", 'print("{a}:", {a})', "if {a} > {n}:\n        {a} = {m}",
    "for {c} in {given}:\n        {a} += {c}", "{a} = [{c} for {c} in {given} if {c} != {n}]",
    "if not {a}:\n        return None", "while {a} < {n}:\n        {a} += {m}", '{a}["{c}"] = {b}', "{a}.append({b})",
)  # fmt: skip
EDITS = (
    "`{a}` is called `{d}`", "the number {n} becomes {m}", "it begins with a docstring",
    "it prints `{a}` before it returns", "every line has a comment", "the function is called `{d}_{c}`",
    "it has type hints", "it returns `{d}` as well",
)  # fmt: skip
ASKING = (
    "Change this code so that {edit}:\n\n```python\n{code}```",
    "```python\n{code}```\n\nGive me this function again, but {edit}.",
    "Edit the code below. What I want: {edit}.\n\n{code}",
)
PEOPLE = ("Anna Kern", "Jorge Silva", "Mei Chen", "Paul Dubois", "Sara Lund", "Ivan Petrov", "Leila Amin", "Tom Baker")
PLACES = ("Madrid", "Oslo", "Vienna", "Boston", "Nairobi", "Lima", "Seoul", "Prague", "Dublin", "Athens")
THINGS = ("laptop", "sofa", "camera", "tent", "guitar", "printer", "watch", "ladder", "heater", "drone")
RECORDS = (
    ("{who} lives in {place} and bought a {thing} for {n} dollars.", "name, city, product, price"),
    ("Invoice {n}: {m} x {thing}, sent to {who}, {place}.", "invoice, count, article, client, city"),
    ("{who} ({n}) works in {place} as number {m} of the team.", "person, age, location, number"),
    ("The {thing} of {who} was repaired in {place} after {m} days, cost {n}.", "object, owner, workshop, days, cost"),
    ("name: {who}; town: {place}; item: {thing}; amount: {n}; code: {m}", "name, town, item, amount, code"),
)
FORMS = (
    "Give the JSON of this record with the keys {keys}.\n\n{record}",
    "{record}\n\nTurn this into a JSON object ({keys}).",
    "Extract {keys} from the text as JSON.\nText: {record}",
)


def say(text: str) -> None:
    """One line, at once: the run may be watched through a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


# ---- the models: a Llama as in vLLM, and the head ----


Rope = tuple[Tensor, Tensor]


class Norm(nn.Module):
    """RMS norm; with a wrong epsilon the served head would see other numbers than here."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), self.weight.shape, self.weight.float(), self.epsilon).type_as(x)


class Attention(nn.Module):
    """Projections of grouped attention; the head's read twice the width."""

    def __init__(self, config: dict[str, Any], width: int) -> None:
        super().__init__()
        hidden, self.heads, self.kv = (
            config[key] for key in ("hidden_size", "num_attention_heads", "num_key_value_heads")
        )
        self.size = config.get("head_dim") or hidden // self.heads
        self.q_proj = nn.Linear(width, self.heads * self.size, bias=False)
        self.k_proj = nn.Linear(width, self.kv * self.size, bias=False)
        self.v_proj = nn.Linear(width, self.kv * self.size, bias=False)
        self.o_proj = nn.Linear(self.heads * self.size, hidden, bias=False)

    def split(self, x: Tensor, rope: Rope) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (batch, head, position, size), turned by their position."""
        q, k, v = (
            project(x).unflatten(-1, (-1, self.size)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        return turned(q, rope), turned(k, rope), v

    def join(self, x: Tensor) -> Tensor:
        return self.o_proj(x.transpose(1, 2).flatten(2))

    def repeated(self, x: Tensor) -> Tensor:
        """Keys or values once per query head."""
        return x.repeat_interleave(self.heads // self.kv, dim=1)


class MLP(nn.Module):
    """Gated, SiLU."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        hidden, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """One layer of the target or draft."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.self_attn = Attention(config, config["hidden_size"])
        self.mlp = MLP(config)
        self.input_layernorm, self.post_attention_layernorm = (
            Norm(config["hidden_size"], config["rms_norm_eps"]) for _ in range(2)
        )

    def forward(self, x: Tensor, rope: Rope, cache: Cache | None, number: int) -> Tensor:
        q, k, v = self.self_attn.split(self.input_layernorm(x), rope)
        if cache is None:
            seen = F.scaled_dot_product_attention(
                q, self.self_attn.repeated(k), self.self_attn.repeated(v), is_causal=True
            )
        else:
            seen = cache.attend(number, q, k, v)
        x = x + self.self_attn.join(seen)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Target or draft; embeddings serve as output weights too."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.norm = Norm(config["hidden_size"], config["rms_norm_eps"])

    def forward(
        self, ids: Tensor, positions: Tensor, cache: Cache | None = None, wanted: tuple[int, ...] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """The last state, normed, and the states before the `wanted` layers."""
        x, rope, states = self.embed_tokens(ids), angles(self.config, positions), []
        for number, layer in enumerate(self.layers):
            if number in wanted:
                states.append(x)
            x = layer(x, rope, cache, number)
        return self.norm(x), states

    def logits(self, x: Tensor) -> Tensor:
        return F.linear(x, self.embed_tokens.weight)


class Cache:
    """Keys and values of a batch whose rows are padded on the left, so that every row writes to the same slots."""

    def __init__(self, model: Llama, rows: int, slots: int) -> None:
        one = model.layers[0].self_attn
        like = model.embed_tokens.weight
        shape = (2, rows, one.kv, slots, one.size)
        self.held = [torch.zeros(shape, dtype=like.dtype, device=like.device) for _ in model.layers]
        self.at, self.mask = 0, torch.empty(0)

    def look(self, at: int, mask: Tensor) -> None:
        """The next forward pass writes from slot `at` on and sees what `mask` (batch, query, slot) allows."""
        self.at, self.mask = at, mask

    def attend(self, number: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        kept, end = self.held[number], self.at + k.shape[2]
        kept[0][:, :, self.at : end], kept[1][:, :, self.at : end] = k, v
        group = q.shape[1] // k.shape[1]
        # The query heads of a group lie behind each other as further queries: no copies of keys and values.
        asked = q.unflatten(1, (k.shape[1], group)).flatten(2, 3)
        mask = self.mask.repeat(1, group, 1)[:, None]
        out = F.scaled_dot_product_attention(asked, kept[0][:, :, :end], kept[1][:, :, :end], attn_mask=mask)
        return out.unflatten(2, (group, -1)).flatten(1, 2)


class HeadLayer(nn.Module):
    """The parts of the head's one layer, by the names in the file."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        hidden = config["hidden_size"]
        self.self_attn = Attention(config, 2 * hidden)
        self.mlp = MLP(config)
        self.hidden_norm, self.input_layernorm, self.post_attention_layernorm = (
            Norm(hidden, config["rms_norm_eps"]) for _ in range(3)
        )


class Head(nn.Module):
    """An EAGLE3 head; the embeddings are the target's."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        hidden = config["hidden_size"]
        self.config = config
        self.fc = nn.Linear(3 * hidden, hidden, bias=False)
        self.midlayer = HeadLayer(config)
        self.norm = Norm(hidden, config["rms_norm_eps"])
        self.lm_head = nn.Linear(hidden, DRAFT_VOCABULARY, bias=False)
        for one in self.modules():
            if isinstance(one, nn.Linear):
                nn.init.normal_(one.weight, std=0.02)

    def guesses(self, embed: nn.Embedding, ids: Tensor, aux: Tensor, steps: int) -> list[Tensor]:
        """For every step the states (normed) that guess, at every base position i.

        As vLLM: guess s (from 0) of base i stands at position i + s, reads token i + s + 1 and guesses token i + s + 2.
        Guess 0 reads the target's states, every later one the head's own output before the norm. Keys up to base i are
        those of guess 0, because vLLM computes them anew from the target's states once tokens are accepted.
        """
        state, past, out = self.fc(aux), [], []
        layer = self.midlayer
        for step in range(steps):
            embeds = layer.input_layernorm(embed(ahead(ids, step + 1)).type_as(state))
            positions = torch.arange(ids.shape[1], device=ids.device)[None] + step
            both = torch.cat([embeds, layer.hidden_norm(state)], dim=-1)
            q, k, v = layer.self_attn.split(both, angles(self.config, positions))
            past.append((layer.self_attn.repeated(k), layer.self_attn.repeated(v)))
            state = state + layer.self_attn.join(attend_past(q, past))
            state = state + layer.mlp(layer.post_attention_layernorm(state))
            out.append(self.norm(state))
        return out


def attend_past(q: Tensor, past: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Base i sees keys of guess 0 up to i, and of every later guess so far its own."""
    (k, v), own = past[0], past[1:]
    if not own:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    q = q / math.sqrt(q.shape[-1])
    length = q.shape[2]
    later = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    scores = [(q @ k.transpose(2, 3)).masked_fill(later, float("-inf"))]
    scores += [(q * key).sum(-1, keepdim=True) for key, _ in own]
    shares = torch.cat([one.float() for one in scores], dim=-1).softmax(-1).type_as(v)
    out = shares[..., :length] @ v
    for number, (_, value) in enumerate(own):
        out = out + shares[..., length + number, None] * value
    return out


def angles(config: dict[str, Any], positions: Tensor) -> Rope:
    """Cosine and sine, (batch, 1, position, size / 2)."""
    size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    steps = torch.arange(0, size, 2, device=positions.device, dtype=torch.float32) / size
    turn = positions[:, None, :, None].float() / config["rope_theta"] ** steps
    return turn.cos(), turn.sin()


def turned(x: Tensor, rope: Rope) -> Tensor:
    """Rotary positions, the halves of a head as pairs."""
    a, b = x.float().chunk(2, dim=-1)
    cos, sin = rope
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1).type_as(x)


def ahead(x: Tensor, steps: int) -> Tensor:
    """Column i holds what column i + steps held; zeros (or False) at the end."""
    return F.pad(x[:, steps:], (0, steps))


# ---- the texts, written by the target ----


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
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def template_prompt(drawn: random.Random) -> str:
    """A prompt whose answer is mostly a copy: a code edit or a record to be given as JSON."""
    numbers = {"n": drawn.randint(2, 999), "m": drawn.randint(1, 50)}
    if drawn.random() < 0.5:
        record, keys = drawn.choice(RECORDS)
        named = {"who": drawn.choice(PEOPLE), "place": drawn.choice(PLACES), "thing": drawn.choice(THINGS)}
        return drawn.choice(FORMS).format(keys=keys, record=record.format(**named, **numbers))
    a, b, c, d, given = drawn.sample(NOUNS, 5)
    lines = [f"def {drawn.choice(VERBS)}_{given}({given}):", f"    {a} = 0", f"    {b} = {numbers['n']}"]
    for _ in range(drawn.randint(2, 8)):
        x, y = drawn.sample([a, b], 2)
        number = drawn.choice([numbers["n"], drawn.randint(1, 100)])
        lines.append("    " + drawn.choice(STATEMENTS).format(a=x, b=y, c=c, given=given, n=number, m=numbers["m"]))
    code = "\n".join([*lines, f"    return {a}\n"])
    return drawn.choice(ASKING).format(edit=drawn.choice(EDITS).format(a=a, c=c, d=d, **numbers), code=code)


# ---- learning from the target ----


@dataclass(frozen=True)
class Batch:
    """Right-padded texts and what the target makes of them."""

    ids: Tensor
    asked: Tensor  # (row, position): the token after it belongs to the answer
    aux: Tensor
    teacher: Tensor  # the target's logits at the asked positions, flat

    def places(self, step: int) -> tuple[Tensor, Tensor]:
        """Bases of guess `step` (from 0), as a mask, and the row of `teacher` that judges each."""
        row = self.asked.flatten().cumsum(0).view_as(self.asked) - 1
        mask = self.asked & ahead(self.asked, step + 1)
        return mask, ahead(row, step + 1)[mask]


def batch_of(target: Llama, texts: list[Text]) -> Batch:
    """The target's states and logits on these texts."""
    device, width = target.embed_tokens.weight.device, max(len(one.ids) for one in texts)
    ids = torch.tensor([one.ids + [0] * (width - len(one.ids)) for one in texts], device=device)
    place = torch.arange(width, device=device)[None]
    start = torch.tensor([one.answer - 1 for one in texts], device=device)[:, None]
    end = torch.tensor([len(one.ids) - 1 for one in texts], device=device)[:, None]
    asked = (place >= start) & (place < end)
    with torch.no_grad():
        states, aux = target(ids, place, wanted=aux_layers(target.config))
        return Batch(ids, asked, torch.cat(aux, dim=-1), target.logits(states[asked]))


def aux_layers(config: dict[str, Any]) -> tuple[int, int, int]:
    """The layers before which vLLM takes the states, where the head's config names none."""
    count = config["num_hidden_layers"]
    return 2, count // 2, count - 3


def loss_of(logits: Tensor, teacher: Tensor) -> Tensor:
    """Per row: half the cross entropy to the target's distribution, half to its first choice, which is what counts."""
    log, teacher = logits.float().log_softmax(-1), teacher.float()
    soft = -(teacher.softmax(-1) * log).sum(-1)
    return (soft + F.nll_loss(log, teacher.argmax(-1), reduction="none")) / 2


def head_loss(head: Head, target: Llama, batch: Batch, kept: Tensor) -> Tensor:
    """Over the unrolled guesses; where the target's choice is not in the draft vocabulary there is nothing to learn."""
    inside = torch.zeros(target.config["vocab_size"], dtype=torch.bool, device=kept.device)
    inside[kept] = True
    known, teacher = inside[batch.teacher.argmax(-1)], batch.teacher[:, kept]
    total = torch.zeros((), device=kept.device)
    for step, states in enumerate(head.guesses(target.embed_tokens, batch.ids, batch.aux, HEAD_GUESSES)):
        mask, judged = batch.places(step)
        losses = loss_of(head.lm_head(states[mask]), teacher[judged])
        total = total + DECAY**step * (losses * known[judged]).sum() / known[judged].sum().clamp(min=1)
    return total


def draft_loss(draft: Llama, batch: Batch) -> Tensor:
    """The same for the draft, over the whole vocabulary."""
    states, _ = draft(batch.ids, torch.arange(batch.ids.shape[1], device=batch.ids.device)[None])
    return loss_of(draft.logits(states[batch.asked]), batch.teacher).mean()


def train(target: Llama, head: Head, draft: Llama, kept: Tensor, texts: list[Text], size: int, until: float) -> None:
    """Both on the same batches, the learning rates falling to nothing as the time runs out."""
    drawn, begun, step, said = random.Random(1), time.monotonic(), 0, 0.0
    device = kept.device.type
    rates = ((head, 1e-3), (draft, 6e-4))
    optimizers = [
        (torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01), rate)
        for model, rate in rates
    ]
    while (gone := (time.monotonic() - begun) / max(until - begun, 1e-9)) < 1:
        batch = batch_of(target, drawn.sample(texts, min(size, len(texts))))
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            losses = head_loss(head, target, batch, kept), draft_loss(draft, batch)
        for (model, _), (optimizer, rate), loss in zip(rates, optimizers, losses, strict=True):
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * gone)) / 2
            optimizer.step()
            optimizer.zero_grad()
        step += 1
        if time.monotonic() - said > 5:
            said = time.monotonic()
            of_head, of_draft = (loss.item() for loss in losses)
            say(f"step {step}, {gone:.0%} of the time: loss of the head {of_head:.3f}, of the draft {of_draft:.3f}")
    say(f"{step} steps of {min(size, len(texts))} texts")


# ---- what greedy checking would accept ----


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


# ---- files ----


def read_target(folder: Path, device: str) -> Llama:
    """The target, in bfloat16 on a GPU and in float32 on a CPU."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    with torch.device("meta"):
        model = Llama(config)
    tensors = {name.removeprefix("model."): one for name, one in load_file(folder / "model.safetensors").items()}
    tensors.pop("lm_head.weight", None)
    model.load_state_dict(tensors, assign=True)
    return model.to(device, torch.bfloat16 if device.startswith("cuda") else torch.float32).requires_grad_(False)


def new_head(target: Llama, kept: Tensor) -> Head:
    """Random but for the output, which begins as the target's."""
    head = Head(target.config).to(kept.device)
    with torch.no_grad():
        head.lm_head.weight.copy_(target.embed_tokens.weight[kept])
        head.norm.weight.copy_(target.norm.weight)
    return head


def new_draft(target: Llama) -> Llama:
    """First two and last two layers."""
    count = target.config["num_hidden_layers"]
    draft = Llama({**target.config, "num_hidden_layers": 4}).to(target.embed_tokens.weight.device)
    draft.embed_tokens.load_state_dict(target.embed_tokens.state_dict())
    draft.norm.load_state_dict(target.norm.state_dict())
    for layer, number in zip(draft.layers, (0, 1, count - 2, count - 1), strict=True):
        layer.load_state_dict(target.layers[number].state_dict())
    return draft


def draft_vocabulary(texts: list[Text], config: dict[str, Any]) -> list[int]:
    """The most frequent ids, sorted; few texts are filled up with low ids, which the tokenizer learned first."""
    seen = Counter(one for text in texts for one in text.ids)
    ids = [one for one, _ in seen.most_common(DRAFT_VOCABULARY)]
    ids += [one for one in range(config["vocab_size"]) if one not in seen][: DRAFT_VOCABULARY - len(ids)]
    return sorted(ids)


def write_head(folder: Path, head: Head, kept: Tensor) -> None:
    """Draft id k stands for target id k + d2t[k]; t2d marks the target's ids that have one."""
    tensors = {name: one.bfloat16() for name, one in head.state_dict().items()}
    tensors["d2t"] = kept - torch.arange(len(kept), device=kept.device)
    tensors["t2d"] = torch.zeros(head.config["vocab_size"], dtype=torch.bool)
    tensors["t2d"][kept.cpu()] = True
    save(folder, tensors)
    changed = {
        "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": DRAFT_VOCABULARY,
        "tie_word_embeddings": False,
    }  # fmt: skip
    write_config(folder, {**head.config, **changed})


def write_draft(folder: Path, draft: Llama) -> None:
    save(folder, {f"model.{name}": one.bfloat16() for name, one in draft.state_dict().items()})
    write_config(folder, draft.config)


def save(folder: Path, tensors: dict[str, Tensor]) -> None:
    tensors = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)  # safetensors lets only the owner read, and a server may be someone else


def write_config(folder: Path, config: dict[str, Any]) -> None:
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_folder(folder: Path, source: Path, write: Callable[[Path], None]) -> None:
    """Under another name first: a folder of that name is complete."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    write(part)
    for name in TOKENIZER:
        if (source / name).exists():
            shutil.copyfile(source / name, part / name)
    part.rename(folder)
    say(f"wrote {folder}")


# ---- the command ----


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train an EAGLE3 head and a draft for a small Llama.")
    parser.add_argument("target", type=Path, metavar="TARGET_FOLDER", help="config.json, model.safetensors, tokenizer")
    parser.add_argument("dest", type=Path, metavar="DEST_FOLDER", help="the two folders are made in it")
    parser.add_argument("--minutes", type=float, default=2.5, help="for everything, about (2.5)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--answer-tokens", type=int, default=160, help="longest answer to learn from (160)")
    parser.add_argument("--rows", type=int, help="texts written at a time (1024 on a GPU, 16 on a CPU)")
    parser.add_argument("--batch", type=int, help="texts per training step (64 on a GPU, 4 on a CPU)")
    return parser.parse_args()


def wrong(given: argparse.Namespace) -> str | None:
    """What is wrong with the arguments, in words."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        if not (given.target / name).is_file():
            return f"{given.target} has no {name}: TARGET_FOLDER is a checkpoint's folder."
    config = json.loads((given.target / "config.json").read_text(encoding="utf-8"))
    if config.get("architectures") != ["LlamaForCausalLM"] or not config.get("tie_word_embeddings"):
        return f"{given.target} is not a Llama with tied embeddings; no other is built here."
    if "rope_theta" not in config or config.get("rope_scaling") or config["num_hidden_layers"] < 8:
        return f"{given.target}: its config.json has no plain rope_theta, scales positions or has fewer than 8 layers."
    for name in (HEAD, DRAFT):
        if (given.dest / name).exists():
            return f"{given.dest / name} is already there. Remove it or give another DEST_FOLDER."
    if given.minutes <= 0 or given.answer_tokens < 8:
        return "--minutes must be above 0 and --answer-tokens at least 8."
    if any(number is not None and number < 2 for number in (given.rows, given.batch)):
        return "--rows and --batch must be at least 2."
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        return "torch sees no GPU here. Use --device cpu for a trial."
    return None


def main() -> None:
    """Texts, training, files, check."""
    begun = time.monotonic()
    given = arguments()
    if problem := wrong(given):
        sys.exit(f"train.py: {problem}")
    gpu = given.device.startswith("cuda")
    rows, size = given.rows or (1024 if gpu else 16), given.batch or (64 if gpu else 4)
    torch.manual_seed(given.seed)
    until = lambda share: begun + 60 * given.minutes * share  # noqa: E731
    target = read_target(given.target, given.device)
    tokenizer = AutoTokenizer.from_pretrained(given.target)
    say(f"target read, {time.monotonic() - begun:.0f} s")
    texts = write_texts(target, tokenizer, random.Random(given.seed), rows, given.answer_tokens, until(WRITING))
    if len(texts) < 8:
        sys.exit("train.py: fewer than 8 texts could be written in the time. Give more --minutes.")
    random.Random(given.seed).shuffle(texts)
    spared = min(256 if gpu else 16, max(1, len(texts) // 8))
    held_out, texts = texts[:spared], texts[spared:]
    say(f"texts written, {time.monotonic() - begun:.0f} s")
    kept = torch.tensor(draft_vocabulary(texts, target.config), device=given.device)
    head, draft = new_head(target, kept), new_draft(target)
    train(target, head, draft, kept, texts, size, until(TRAINED))
    say(f"trained, {time.monotonic() - begun:.0f} s")
    write_folder(given.dest / HEAD, given.target, lambda folder: write_head(folder, head, kept))
    write_folder(given.dest / DRAFT, given.target, lambda folder: write_draft(folder, draft))
    # Checked as written and served: in the file's precision.
    dtype = target.embed_tokens.weight.dtype
    served = (head.bfloat16().to(dtype), draft.bfloat16().to(dtype))
    of_head, of_draft = acceptance(target, *served, kept, held_out, size)
    say(f"{HEAD}: mean acceptance length {of_head:.2f} with {HEAD_GUESSES} guesses, {len(held_out)} held-out texts")
    say(f"{DRAFT}: mean acceptance length {of_draft:.2f} with {DRAFT_GUESSES} guesses")
    say(f"done, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
