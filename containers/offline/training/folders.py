"""Checkpoint folders, read and written with torch."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from checkpoint_folder import config_of, copy_tokenizer, write_config

from .head import Head
from .llama import Llama
from .progress import say


def read_target(folder: Path, device: str) -> Llama:
    """The target, in bfloat16 on a GPU and in float32 on a CPU."""
    with torch.device("meta"):
        model = Llama(config_of(folder))
    tensors = {name.removeprefix("model."): one for name, one in load_file(folder / "model.safetensors").items()}
    tensors.pop("lm_head.weight", None)
    model.load_state_dict(tensors, assign=True)
    return model.to(device, torch.bfloat16 if device.startswith("cuda") else torch.float32).requires_grad_(False)


def head_tensors(head: Head, kept: Tensor) -> dict[str, Tensor]:
    """Draft id k stands for target id k + d2t[k]; t2d marks the target's ids that have one."""
    tensors = {name: one.bfloat16() for name, one in head.state_dict().items()}
    tensors["d2t"] = kept - torch.arange(len(kept), device=kept.device)
    tensors["t2d"] = torch.zeros(head.config["vocab_size"], dtype=torch.bool)
    tensors["t2d"][kept.cpu()] = True
    return tensors


def draft_tensors(draft: Llama) -> dict[str, Tensor]:
    """Named as a whole model's."""
    return {f"model.{name}": one.bfloat16() for name, one in draft.state_dict().items()}


def write_folder(folder: Path, source: Path, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """With the tokenizer of `source`. Under another name first: a folder of that name is complete."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    weights = part / "model.safetensors"
    held = {name: one.detach().cpu().contiguous() for name, one in tensors.items()}
    save_file(held, weights, metadata={"format": "pt"})
    weights.chmod(0o644)  # safetensors lets only the owner read, and a server may be someone else
    write_config(part, config)
    copy_tokenizer(source, part)
    part.rename(folder)
    say(f"wrote {folder}")
