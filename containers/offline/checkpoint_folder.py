"""The small files of a checkpoint's folder. Plain Python: shapes.py runs without torch, train.py without the lab."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

DRAFT_VOCABULARY = 8192  # how many of its target's tokens an EAGLE3 head made here can guess
TOKENIZER = ("tokenizer.json", "tokenizer_config.json")


def config_of(folder: Path) -> dict[str, Any]:
    """Its config.json."""
    return dict(json.loads((folder / "config.json").read_text(encoding="utf-8")))


def write_config(folder: Path, config: dict[str, Any]) -> None:
    """Its config.json."""
    (folder / "config.json").write_text(json.dumps(config, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def eagle3_config(target: dict[str, Any]) -> dict[str, Any]:
    """Of a head for the target with this config.json, as vLLM reads it: one layer of the target's sizes."""
    changed = {
        "architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": DRAFT_VOCABULARY,
        "tie_word_embeddings": False,
    }  # fmt: skip
    return {**target, **changed}


def copy_tokenizer(source: Path, folder: Path) -> None:
    """A draft has the target's tokens; a shape has some tokens, so that requests have a length."""
    for name in TOKENIZER:
        shutil.copyfile(source / name, folder / name)
    if (source / "generation_config.json").exists():  # a server can do without
        shutil.copyfile(source / "generation_config.json", folder / "generation_config.json")
