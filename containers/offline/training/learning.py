"""Learning from the target: what it makes of the texts, the losses against it, and the steps."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .head import HEAD_GUESSES, Head, ahead, aux_layers
from .llama import Llama
from .progress import say
from .texts import Text

DECAY = 0.8  # a later guess counts only if all earlier ones were right
WARM_UP = 20  # steps in which the learning rates rise


@dataclass(frozen=True)
class Batch:
    """Right-padded texts and what the target makes of them."""

    ids: Tensor  # (row, position)
    asked: Tensor  # (row, position): the token after it belongs to the answer
    aux: Tensor  # (row, position, 3 x hidden): the states that the head reads
    teacher: Tensor  # (asked position, token): the target's logits

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
    """Both on the same batches, the learning rates falling to nothing until then (as `time.monotonic` counts)."""
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
