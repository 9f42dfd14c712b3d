"""A Llama-type GGUF as a Hugging Face folder: weights back to bfloat16, tokenizer and configuration from its metadata.

For engines that read no GGUF. Nothing is trained or tuned: values are what the quantised file holds, in bfloat16.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from ..records.base import strict_dumps
from ..records.errors import UserError
from .derived import Recipe

_CONTROL = 3
"""GGUF's token type for tokens that are no text."""
_LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def _write(source: Path, folder: Path) -> None:
    from gguf import GGUFReader

    reader = GGUFReader(source)
    meta = {name: field.contents() for name, field in reader.fields.items()}
    if meta.get("general.architecture") != "llama" or meta.get("tokenizer.ggml.model") != "gpt2":
        raise UserError(
            f"{source.name} is not a Llama with a byte-level tokenizer", place=str(source), code="bad_model"
        )
    config = _config(meta)
    files = {
        "config.json": config,
        "generation_config.json": {"bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"]},
        "tokenizer.json": _tokenizer(meta),
        "tokenizer_config.json": _tokenizer_config(meta, config),
    }
    for name, content in files.items():
        (folder / name).write_text(strict_dumps(content), encoding="utf-8")
    _save(folder / "model.safetensors", reader.tensors, config)


def _config(meta: dict[str, Any]) -> dict[str, Any]:
    heads = meta["llama.attention.head_count"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": meta["llama.embedding_length"],
        "intermediate_size": meta["llama.feed_forward_length"],
        "num_hidden_layers": meta["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": meta.get("llama.attention.head_count_kv", heads),
        "max_position_embeddings": meta["llama.context_length"],
        "rms_norm_eps": round(meta["llama.attention.layer_norm_rms_epsilon"], 9),
        "rope_theta": meta["llama.rope.freq_base"],
        "vocab_size": meta["llama.vocab_size"],
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": meta["tokenizer.ggml.bos_token_id"],
        "eos_token_id": meta["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }


def _tokenizer(meta: dict[str, Any]) -> dict[str, Any]:
    """The `tokenizers` library's file: byte-level BPE, single digits, control tokens apart (llama.cpp's `smollm`)."""
    tokens = meta["tokenizer.ggml.tokens"]
    kinds = meta["tokenizer.ggml.token_type"]
    common = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": number, "content": token, **common}
            for number, (token, kind) in enumerate(zip(tokens, kinds, strict=True))
            if kind == _CONTROL
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, level]},
        "post_processor": None,
        "decoder": {**level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": tokens[meta["tokenizer.ggml.unknown_token_id"]],
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": list(meta["tokenizer.ggml.merges"]),
        },
    }


def _tokenizer_config(meta: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    tokens = meta["tokenizer.ggml.tokens"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": tokens[config["bos_token_id"]],
        "eos_token": tokens[config["eos_token_id"]],
        "unk_token": tokens[meta["tokenizer.ggml.unknown_token_id"]],
        "pad_token": tokens[meta["tokenizer.ggml.padding_token_id"]],
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": config["max_position_embeddings"],
        "chat_template": meta["tokenizer.chat_template"],
    }


def _name(gguf_name: str) -> str:
    parts = gguf_name.removesuffix(".weight").split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_LAYER[parts[2]]}.weight"
    return f"{_TOP[parts[0]]}.weight"


def _unpermuted(weights: Any, heads: int) -> Any:
    """llama.cpp stores the query and key rows interleaved for its rotary kernel; this puts them back."""
    half = weights.shape[0] // heads // 2
    return weights.reshape(heads, half, 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def _bfloat16(weights: Any) -> bytes:
    """Rounded to nearest, ties to even; numpy has no such type."""
    import numpy as np

    bits = np.ascontiguousarray(weights, dtype="<f4").view("<u4")
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return bytes(rounded.astype("<u2").tobytes())


def _save(path: Path, tensors: Any, config: dict[str, Any]) -> None:
    """Safetensors: a JSON header and the bytes. Written here because the library's numpy door knows no bfloat16."""
    from gguf import dequantize

    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for tensor in tensors:
        shape = [int(n) for n in reversed(tensor.shape)]
        size = 2
        for n in shape:
            size *= n
        header[_name(tensor.name)] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in tensors:
            weights = dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])
            part = tensor.name.split(".")[-2]
            file.write(_bfloat16(_unpermuted(weights, heads[part]) if part in heads else weights))


RECIPE = Recipe(suffix="safetensors", words="dequantised to bfloat16", version=1, key="recipe", main=None, write=_write)
