"""A Llama as vLLM computes it: the target, and the draft of four of its layers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
        """What all heads saw, back in the width of the state."""
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
        """Of every token of the vocabulary, from normed states."""
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


def new_draft(target: Llama) -> Llama:
    """First two and last two layers."""
    count = target.config["num_hidden_layers"]
    draft = Llama({**target.config, "num_hidden_layers": 4}).to(target.embed_tokens.weight.device)
    draft.embed_tokens.load_state_dict(target.embed_tokens.state_dict())
    draft.norm.load_state_dict(target.norm.state_dict())
    for layer, number in zip(draft.layers, (0, 1, count - 2, count - 1), strict=True):
        layer.load_state_dict(target.layers[number].state_dict())
    return draft
