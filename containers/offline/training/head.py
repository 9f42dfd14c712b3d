"""The EAGLE3 head as vLLM computes it, for all positions of a text at once."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from checkpoint_folder import DRAFT_VOCABULARY

from .llama import MLP, Attention, Llama, Norm, angles

HEAD_GUESSES = 4  # also the number of unrolled steps in training


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


def ahead(x: Tensor, steps: int) -> Tensor:
    """Column i holds what column i + steps held; zeros (or False) at the end."""
    return F.pad(x[:, steps:], (0, steps))


def aux_layers(config: dict[str, Any]) -> tuple[int, int, int]:
    """The layers before which vLLM takes the states, where the head's config names none."""
    count = config["num_hidden_layers"]
    return 2, count // 2, count - 3


def new_head(target: Llama, kept: Tensor) -> Head:
    """Random but for the output, which begins as the target's."""
    head = Head(target.config).to(kept.device)
    with torch.no_grad():
        head.lm_head.weight.copy_(target.embed_tokens.weight[kept])
        head.norm.weight.copy_(target.norm.weight)
    return head
