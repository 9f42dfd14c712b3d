#!/usr/bin/env python3
"""Two trained proposers for the bundled SmolLM2-135M, made on a GPU machine without network in a few minutes.

    python3 train.py TARGET_FOLDER DEST_FOLDER [--minutes 2.5] [--device cuda] [--seed 0]

Real text, below DEST_FOLDER, as vLLM loads them:
    smollm2-135m-eagle3  an EAGLE3 head, trained; the tensors of shapes.py's random head
    smollm2-135m-draft4  first two and last two layers of the target, distilled

training/ says how and has the parts. As the clock decides how many texts and steps there are, two runs with one seed
differ.

Needs torch, safetensors and transformers (for the tokenizer alone).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from checkpoint_folder import TOKENIZER, config_of, eagle3_config

try:
    import torch
    from transformers import AutoTokenizer

    from training.acceptance import DRAFT_GUESSES, acceptance
    from training.folders import draft_tensors, head_tensors, read_target, write_folder
    from training.head import HEAD_GUESSES, new_head
    from training.learning import train
    from training.llama import new_draft
    from training.progress import say
    from training.texts import draft_vocabulary, write_texts
except ImportError as missing:
    sys.exit(f"train.py needs torch, safetensors and transformers; here is no {missing.name}.")

HEAD, DRAFT = "smollm2-135m-eagle3", "smollm2-135m-draft4"
WRITING = 0.4  # share of the time for texts; training ends at TRAINED, the rest is for writing files and checking
TRAINED = 0.9


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
    for name in ("config.json", "model.safetensors", *TOKENIZER):
        if not (given.target / name).is_file():
            return f"{given.target} has no {name}: TARGET_FOLDER is a checkpoint's folder."
    config = config_of(given.target)
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
    write_folder(given.dest / HEAD, given.target, eagle3_config(target.config), head_tensors(head, kept))
    write_folder(given.dest / DRAFT, given.target, draft.config, draft_tensors(draft))
    # Checked as written and served: in the file's precision.
    dtype = target.embed_tokens.weight.dtype
    served = (head.bfloat16().to(dtype), draft.bfloat16().to(dtype))
    of_head, of_draft = acceptance(target, *served, kept, held_out, size)
    say(f"{HEAD}: mean acceptance length {of_head:.2f} with {HEAD_GUESSES} guesses, {len(held_out)} held-out texts")
    say(f"{DRAFT}: mean acceptance length {of_draft:.2f} with {DRAFT_GUESSES} guesses")
    say(f"done, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
