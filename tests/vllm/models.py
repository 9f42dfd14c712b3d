"""Small models made of the bundled one: a worse draft, and an EAGLE3 head that never agrees. numpy is enough."""

import json
import shutil
import struct
from pathlib import Path

import numpy as np


def _read(file: Path) -> tuple[dict, np.ndarray]:
    raw = file.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    return header, np.frombuffer(raw, dtype=np.uint8, offset=8 + size)


def _write(file: Path, tensors: dict[str, tuple[str, list[int], bytes]]) -> None:
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


def without_layers(source: Path, target: Path, left_out: set[int]) -> Path:
    """The model without some of its middle layers: agrees with the whole one about half of the time (12, 16, 20)."""
    target.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(source / name, target)
    config = json.loads((source / "config.json").read_text())
    kept = [n for n in range(config["num_hidden_layers"]) if n not in left_out]
    header, data = _read(source / "model.safetensors")
    tensors = {}
    for name, entry in header.items():
        parts = name.split(".")
        if parts[1] == "layers":
            if int(parts[2]) in left_out:
                continue
            parts[2] = str(kept.index(int(parts[2])))
        start, end = entry["data_offsets"]
        tensors[".".join(parts)] = (entry["dtype"], entry["shape"], data[start:end].tobytes())
    _write(target / "model.safetensors", tensors)
    (target / "config.json").write_text(json.dumps({**config, "num_hidden_layers": len(kept)}))
    return target


def random_eagle3_head(source: Path, target: Path, vocabulary: int = 4096) -> Path:
    """A head of the right shape with random weights: every draft is refused, which is a control of its own."""
    target.mkdir(parents=True)
    config = json.loads((source / "config.json").read_text())
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    random = np.random.default_rng(0)

    def weights(*shape: int) -> tuple[str, list[int], bytes]:
        bits = (random.standard_normal(shape, dtype=np.float32) * 0.02).view(np.uint32) >> 16
        return "BF16", list(shape), bits.astype("<u2").tobytes()

    ones = ("BF16", [hidden], np.full(hidden, 0x3F80, dtype="<u2").tobytes())
    tensors = {
        "fc.weight": weights(hidden, 3 * hidden),
        "norm.weight": ones,
        "lm_head.weight": weights(vocabulary, hidden),
        "midlayer.hidden_norm.weight": ones,
        "midlayer.input_layernorm.weight": ones,
        "midlayer.post_attention_layernorm.weight": ones,
        "midlayer.self_attn.q_proj.weight": weights(hidden, 2 * hidden),
        "midlayer.self_attn.k_proj.weight": weights(keys, 2 * hidden),
        "midlayer.self_attn.v_proj.weight": weights(keys, 2 * hidden),
        "midlayer.self_attn.o_proj.weight": weights(hidden, hidden),
        "midlayer.mlp.gate_proj.weight": weights(inner, hidden),
        "midlayer.mlp.up_proj.weight": weights(inner, hidden),
        "midlayer.mlp.down_proj.weight": weights(hidden, inner),
        "d2t": ("I64", [vocabulary], np.zeros(vocabulary, dtype="<i8").tobytes()),
        "t2d": ("BOOL", [size], (np.arange(size) < vocabulary).astype(np.uint8).tobytes()),
    }
    _write(target / "model.safetensors", tensors)
    made = {
        **config,
        "architectures": ["LlamaForCausalLMEagle3"],
        "num_hidden_layers": 1,
        "draft_vocab_size": vocabulary,
        "tie_word_embeddings": False,
    }
    (target / "config.json").write_text(json.dumps(made))
    return target
