"""Do draft or head and target fit together (M12)? Engines compare vocabulary sizes at most; here every token is.

A draft whose tokens have other ids proposes nonsense: acceptance falls to zero and nothing says why. An EAGLE head is
made for the hidden size of one target.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from ..records.errors import UserError
from .checkpoint import Checkpoint

_HEADS = ("eagle", "eagle3", "EAGLE", "EAGLE3")
_DRAFTS = ("draft_model", "STANDALONE", "draft-simple")
_SHOWN = 3
_LAYERS = "eagle_aux_hidden_state_layer_ids"
_USUAL = (2, 3, 4)
"""How many vectors heads are known to join."""


def require_compatible(speculative: Mapping[str, JsonValue] | None, found: Mapping[str, Checkpoint]) -> None:
    """UserError (code `vocabulary_mismatch` or `wrong_head`) if what drafts cannot fit the target.

    `found` has the checkpoints by role, `target` among them. What cannot be read (a rare tokenizer format) is let
    through: the engine's own checks remain.
    """
    if speculative is None or "target" not in found:
        return
    role = speculative.get("model")
    method = str(speculative.get("method", ""))
    methods = {part.strip() for part in method.split(",")}
    if not isinstance(role, str) or role not in found:
        role = "draft" if methods & set(_DRAFTS) and "draft" in found else None
    if role is None:
        return
    if methods & set(_HEADS):
        require_head_fits(found["target"], found[role])
    elif methods & set(_DRAFTS) and not speculative.get("use_heterogeneous_vocab"):
        require_same_tokens(found["target"], found[role])


def require_same_tokens(target: Checkpoint, draft: Checkpoint) -> None:
    """UserError unless every token of the draft has the same id in the target."""
    if target.path == draft.path:
        return
    first, second = tokens(target.path), tokens(draft.path)
    if not first or not second:
        return
    moved = [t for t, number in second.items() if t in first and first[t] != number]
    unknown = [t for t in second if t not in first]
    if not moved and not unknown:
        return
    shown = ", ".join(f"{t!r}: {first.get(t, 'none')} and {second[t]}" for t in (moved + unknown)[:_SHOWN])
    raise UserError(
        f"draft and target do not share one tokenizer: {len(moved)} tokens have another id, {len(unknown)} are unknown "
        f"to the target ({shown})",
        place=f"target {target.origin}, draft {draft.origin}",
        fix="take a draft of the target's own family; equal vocabulary sizes are not enough",
        code="vocabulary_mismatch",
    )


def tokens(path: Path) -> dict[str, int]:
    """Token -> id of a GGUF file or a Hugging Face folder; empty when the format is not known here."""
    if path.is_file():
        return _gguf_tokens(path)
    tokenizer = path / "tokenizer.json"
    if not tokenizer.exists():
        return {}
    try:
        content = json.loads(tokenizer.read_text(encoding="utf-8"))
        model = content.get("model", {})
        vocab = model.get("vocab", {})
        known = {t: n for n, (t, _) in enumerate(vocab)} if isinstance(vocab, list) else dict(vocab)
        known |= {one["content"]: one["id"] for one in content.get("added_tokens", [])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return known


def _gguf_tokens(path: Path) -> dict[str, int]:
    try:
        from gguf import GGUFReader

        field = GGUFReader(path).fields.get("tokenizer.ggml.tokens")
    except (ImportError, ValueError, OSError):
        return {}
    return {} if field is None else {str(token): number for number, token in enumerate(field.contents())}


def require_head_fits(target: Checkpoint, head: Checkpoint) -> None:
    """UserError if the head's hidden size, vocabulary or named target is not the target's."""
    own, other = _config(target.path), _config(head.path)
    if not own or not other:
        return
    faults = []
    inner = _inner(other)
    fault = _states_fault(own.get("hidden_size"), inner, _input_of_weights(head.path))
    if fault:
        faults.append(fault)
    size, vocabulary = own.get("vocab_size"), inner.get("vocab_size")
    if size and vocabulary and size != vocabulary:
        faults.append(f"it was made for a vocabulary of {vocabulary}, the target has {size}")
    if faults:
        named = _verifier(other)
        raise UserError(
            f"the head does not fit the target: {'; '.join(faults)}",
            place=f"target {target.origin}, head {head.origin}" + (f" (made for {named})" if named else ""),
            fix="take a head that was trained for exactly this target",
            code="wrong_head",
        )


def _config(path: Path) -> dict[str, Any]:
    try:
        content = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _inner(config: dict[str, Any]) -> dict[str, Any]:
    """The layer's own configuration: heads in the speculators format keep it one level down."""
    inner = config.get("transformer_layer_config")
    return {**config, **inner} if isinstance(inner, dict) else config


def _verifier(config: dict[str, Any]) -> str | None:
    verifier = (config.get("speculators_config") or {}).get("verifier") or {}
    name = verifier.get("name_or_path")
    return name if isinstance(name, str) else None


def _states_fault(hidden: Any, head: dict[str, Any], width: int | None) -> str | None:
    """Why the head cannot read hidden states of this size; None where it can, or where that is not sure.

    `width` is what its `fc` takes in: EAGLE joins the token's embedding with one hidden state (2 H), EAGLE3 the states
    of as many layers as its config names, three by default. Where the config names none, every usual number counts.
    """
    if not isinstance(hidden, int) or hidden <= 0:
        return None
    told = f"it reads hidden states of {{}} numbers, the target's have {hidden}"
    said = head.get("target_hidden_size")
    if isinstance(said, int):
        return told.format(said) if said != hidden else None
    own = head.get("hidden_size")
    if width is None:
        return told.format(own) if isinstance(own, int) and own != hidden else None
    joined = _joined(head)
    if joined is not None:
        fits = width == joined * hidden
        made_for = width // joined if width % joined == 0 else None
    else:
        fits = width in [number * hidden for number in _USUAL]
        made_for = own if isinstance(own, int) and width in [number * own for number in _USUAL] else None
    if fits:
        return None
    if made_for:
        return told.format(made_for)
    if joined is None and width % hidden == 0:
        return None
    return f"it reads {width} numbers at once, and the target's hidden states have {hidden}"


def _joined(head: dict[str, Any]) -> int | None:
    """How many vectors the head's `fc` takes side by side, where its config says so."""
    for block in (head, head.get("eagle_config")):
        layers = block.get(_LAYERS) if isinstance(block, dict) else None
        if isinstance(layers, list) and layers:
            return len(layers)
    architectures = head.get("architectures")
    first = [architectures[0]] if isinstance(architectures, list) and architectures else []
    names = [str(name).lower() for name in [head.get("speculators_model_type"), *first]]
    return 2 if any("eagle" in name and "eagle3" not in name for name in names) else None


def _input_of_weights(path: Path) -> int | None:
    """How many numbers the head's `fc.weight` takes in; None for heads that have none."""
    for file in sorted(path.glob("*.safetensors")):
        try:
            with file.open("rb") as raw:
                (size,) = struct.unpack("<Q", raw.read(8))
                header = json.loads(raw.read(min(size, 100_000_000)))
            shape = header["fc.weight"]["shape"]
        except (OSError, ValueError, KeyError, TypeError, struct.error):
            continue
        if len(shape) == 2:
            return int(shape[1])
    return None
