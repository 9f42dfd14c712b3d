#!/usr/bin/env python3
"""Checkpoints for a machine without a hub, made there: `python shapes.py` with the lab's Python and SPECDEC_CACHE_DIR.

Real text, from the bundled SmolLM2-135M (all below models/ in the cache):
    smollm2-135m-draft          the target without three middle layers: agrees often, costs nearly as much
    smollm2-135m-eagle3-random  an EAGLE3 head with random weights: a control whose acceptance must be 0

Real cost, meaningless text (no weights at all; serve with `load-format: dummy`):
    llama31-8b-shape, llama32-1b-shape, llama31-8b-eagle3-shape
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

from checkpoint_folder import DRAFT_VOCABULARY, config_of, copy_tokenizer, eagle3_config, write_config
from specdec_lab import checkpoints
from specdec_lab.checkpoints.checkpoint import cache_dir
from specdec_lab.records.spec import CheckpointSpec

LEFT_OUT = (12, 16, 20)
LLAMA = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 128256, "hidden_act": "silu",
    "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
    "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "llama31-8b-shape": {
        "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336,
    },
    "llama32-1b-shape": {
        "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 8192, "tie_word_embeddings": True,
    },
    "llama31-8b-eagle3-shape": {
        "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 4096, "num_hidden_layers": 1,
        "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "draft_vocab_size": 32000,
    },
}  # fmt: skip


def main() -> None:
    """All five, unless they are there."""
    say = lambda text: sys.stdout.write(f"{text}\n")  # noqa: E731
    target = checkpoints.fetch(CheckpointSpec(bundled="smollm2-135m-safetensors"), say=say).path
    models = cache_dir() / "models"
    for name, make in (("smollm2-135m-draft", draft), ("smollm2-135m-eagle3-random", head)):
        if not (models / name / "config.json").exists():
            (models / name).mkdir(exist_ok=True)
            make(target, models / name)
            say(f"made {name}")
    ids = {key: value for key, value in config_of(target).items() if key in ("bos_token_id", "eos_token_id")}
    for name, shape in SHAPES.items():
        (models / name).mkdir(exist_ok=True)
        write_config(models / name, {**LLAMA, **ids, **shape})
        copy_tokenizer(target, models / name)


def draft(target: Path, folder: Path) -> None:
    """The target without the layers LEFT_OUT. Its first layers alone would agree in 3 % of tokens, these do in half."""
    header, data = read_safetensors(target / "model.safetensors")
    config = config_of(target)
    kept = [n for n in range(config["num_hidden_layers"]) if n not in LEFT_OUT]
    tensors = {}
    for name, (dtype, shape, raw) in tensors_of(header, data).items():
        parts = name.split(".")
        if parts[:2] == ["model", "layers"]:
            if int(parts[2]) not in kept:
                continue
            parts[2] = str(kept.index(int(parts[2])))
        tensors[".".join(parts)] = (dtype, shape, raw)
    write_safetensors(folder / "model.safetensors", tensors)
    write_config(folder, {**config, "num_hidden_layers": len(kept)})
    copy_tokenizer(target, folder)


def head(target: Path, folder: Path) -> None:
    """An EAGLE3 head as vLLM loads it, with random weights of standard deviation 0.02."""
    config = config_of(target)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    size = hidden // config["num_attention_heads"]
    keys = config["num_key_value_heads"] * size
    drawn = np.random.default_rng(0)
    layer = "midlayer."
    shapes = {
        "fc.weight": (hidden, 3 * hidden),
        "lm_head.weight": (DRAFT_VOCABULARY, hidden),
        f"{layer}self_attn.q_proj.weight": (hidden, 2 * hidden),
        f"{layer}self_attn.k_proj.weight": (keys, 2 * hidden),
        f"{layer}self_attn.v_proj.weight": (keys, 2 * hidden),
        f"{layer}self_attn.o_proj.weight": (hidden, hidden),
        f"{layer}mlp.gate_proj.weight": (inner, hidden),
        f"{layer}mlp.up_proj.weight": (inner, hidden),
        f"{layer}mlp.down_proj.weight": (hidden, inner),
    }
    norms = ["norm", *(layer + name for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm"))]
    tensors = {
        name: ("BF16", list(shape), bfloat16(drawn.standard_normal(shape, dtype=np.float32) * 0.02))
        for name, shape in shapes.items()
    }
    tensors |= {f"{name}.weight": ("BF16", [hidden], bfloat16(np.ones(hidden, dtype=np.float32))) for name in norms}
    # Draft id k stands for target id k + d2t[k]; t2d marks the target's ids that have one.
    known = np.arange(config["vocab_size"]) < DRAFT_VOCABULARY
    tensors["d2t"] = ("I64", [DRAFT_VOCABULARY], np.zeros(DRAFT_VOCABULARY, dtype="<i8").tobytes())
    tensors["t2d"] = ("BOOL", [config["vocab_size"]], known.astype(np.uint8).tobytes())
    write_safetensors(folder / "model.safetensors", tensors)
    write_config(folder, eagle3_config(config))


def bfloat16(values: Any) -> bytes:
    """Rounded towards zero; random numbers need no better."""
    return bytes((np.ascontiguousarray(values, dtype="<f4").view("<u4") >> 16).astype("<u2").tobytes())


def read_safetensors(path: Path) -> tuple[dict[str, Any], bytes]:
    """Header and data of a safetensors file."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def tensors_of(header: dict[str, Any], data: bytes) -> dict[str, tuple[str, list[int], bytes]]:
    """Name -> (type, shape, bytes)."""
    return {
        name: (one["dtype"], one["shape"], data[slice(*one["data_offsets"])])
        for name, one in header.items()
        if name != "__metadata__"
    }


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    """A safetensors file with these tensors, in this order."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, raw in tensors.values():
            file.write(raw)


if __name__ == "__main__":
    main()
