"""vLLM's speculative methods and their options as data, checked before any start (M16, M18, C9).

Source: `vllm/config/speculative.py` of 0.32 and 0.33 (class SpeculativeConfig and its validators).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from ..nearest import nearest
from ..records.base import Finding
from .base import Named
from .flags import word
from .options import Option, bad_speculation

Version = tuple[int, int]
NEWEST: Version = (0, 33)


@dataclass(frozen=True)
class Method:
    """One method: in which versions it is there, and what it drafts with."""

    name: str
    since: Version = (0, 11)
    until: Version | None = None
    """First version without it."""
    model: str = "none"
    """`needed`: another checkpoint drafts; `none`: nothing does, or the target itself."""
    options: tuple[str, ...] = ()
    needs_k: bool = True
    instead: str = ""
    """For a removed method: what to use."""


_AUTOREGRESSIVE = (
    "draft_tensor_parallel_size",
    "max_model_len",
    "quantization",
    "moe_backend",
    "attention_backend",
    "kv_cache_dtype",
    "revision",
    "code_revision",
    "draft_load_config",
    "enforce_eager",
    "parallel_drafting",
    "disable_padded_drafter_batch",
    "draft_sample_method",
    "num_speculative_tokens_per_batch_size",
)
_EAGLE = (
    *_AUTOREGRESSIVE,
    "disable_eagle_block_drop",
    "draft_lm_head_quantization",
    "use_local_argmax_reduction",
)
_LOOKUP = ("prompt_lookup_min", "prompt_lookup_max")
_ALWAYS = (
    "method",
    "model",
    "num_speculative_tokens",
    "rejection_sample_method",
    "fly_window_size",
    "fly_entropy_threshold",
    "fly_entropy_top_k",
    "synthetic_acceptance_rates",
    "synthetic_acceptance_length",
    "disable_lookahead_block_hashes",
)

METHODS = {
    method.name: method
    for method in (
        Method("ngram", options=(*_LOOKUP, "num_speculative_tokens_per_batch_size")),
        Method("ngram_gpu", since=(0, 32), options=_LOOKUP),
        Method("draft_model", since=(0, 14), model="needed", options=(*_AUTOREGRESSIVE, "use_heterogeneous_vocab")),
        Method(
            "suffix",
            needs_k=False,
            options=(
                "suffix_decoding_max_tree_depth",
                "suffix_decoding_max_cached_requests",
                "suffix_decoding_max_spec_factor",
                "suffix_decoding_min_token_prob",
            ),
        ),
        Method("eagle", model="needed", options=_EAGLE),
        Method("eagle3", model="needed", options=_EAGLE),
        Method("mtp", options=(*_EAGLE, "index_share_for_mtp_iteration")),
        Method("dflash", since=(0, 20), model="needed", options=_AUTOREGRESSIVE),
        Method(
            "dspark",
            since=(0, 32),
            model="needed",
            options=(*_AUTOREGRESSIVE, "enable_adaptive_verification", "dspark_draft_topk", "xpress_topc"),
        ),
        Method("medusa", until=(0, 33), model="needed", instead="eagle3, or draft_model with a small model"),
        Method("mlp_speculator", until=(0, 33), model="needed", instead="eagle3, or draft_model with a small model"),
    )
}
WITHOUT_MEANING_HERE = {
    "custom_class": "a class of your own in the server's environment; the lab does not measure it",
    "extract_hidden_states": "it extracts hidden states and does not speed anything up",
}
OPTIONS = {
    "num_speculative_tokens": Option("whole", least=1),
    "prompt_lookup_min": Option("whole", least=1),
    "prompt_lookup_max": Option("whole", least=1),
    "draft_tensor_parallel_size": Option("whole", least=1),
    "max_model_len": Option("whole", least=1),
    "enforce_eager": Option("switch"),
    "parallel_drafting": Option("switch"),
    "disable_padded_drafter_batch": Option("switch"),
    "disable_eagle_block_drop": Option("switch"),
    "disable_lookahead_block_hashes": Option("switch"),
    "use_heterogeneous_vocab": Option("switch"),
    "use_local_argmax_reduction": Option("switch"),
    "enable_adaptive_verification": Option("switch"),
    "draft_sample_method": Option(choices=("greedy", "probabilistic")),
    "draft_lm_head_quantization": Option(choices=("fp8", "nvfp4")),
    "rejection_sample_method": Option(choices=("standard", "block", "synthetic", "fly")),
    "fly_window_size": Option("whole", least=1),
    "fly_entropy_threshold": Option("number", least=0),
    "fly_entropy_top_k": Option("whole", least=1),
    "synthetic_acceptance_length": Option("number", least=1),
    "suffix_decoding_max_tree_depth": Option("whole", least=1),
    "suffix_decoding_max_cached_requests": Option("whole", least=0),
    "suffix_decoding_max_spec_factor": Option("number", least=0),
    "suffix_decoding_min_token_prob": Option("number", least=0, most=1),
}
LOSSY_REJECTION = ("fly", "synthetic")
_SINCE_0_33 = ("draft_lm_head_quantization", "xpress_topc", "disable_lookahead_block_hashes")


def version_of(text: str | None) -> Version:
    """(0, 33) out of "0.33.0+cpu"; the newest known when the config names none."""
    hit = re.match(r"v?(\d+)\.(\d+)", text or "")
    return (int(hit[1]), int(hit[2])) if hit else NEWEST


def offered(version: Version) -> list[str]:
    """Methods that this version has."""
    return [m.name for m in METHODS.values() if m.since <= version and (m.until is None or version < m.until)]


def problems(block: Mapping[str, JsonValue], roles: Iterable[str], version: Version) -> Iterator[Finding]:
    """Everything wrong with a `speculative` block that vLLM would only say after half a minute, or never."""
    name = block.get("method")
    if not isinstance(name, str):
        yield bad_speculation("`method` is missing", f"one of: {', '.join(offered(version))}")
        return
    refusal = _refused(name, version)
    if refusal is not None:
        yield refusal
        return
    method = METHODS[name]
    yield from _unknown_options(method, block, version)
    for option, value in block.items():
        yield from OPTIONS.get(option, Option()).problems(option, value)
    if method.needs_k and name != "mtp" and block.get("num_speculative_tokens") is None:
        yield bad_speculation(f"{name} needs `num_speculative_tokens`", "3 to 5 is a usual start")
    yield from _draft(method, block, set(roles))
    yield from _together(block)


def _refused(name: str, version: Version) -> Finding | None:
    method = METHODS.get(name)
    shown = f"{version[0]}.{version[1]}"
    if name in WITHOUT_MEANING_HERE:
        return bad_speculation(
            f"the method {name!r} cannot be measured: {WITHOUT_MEANING_HERE[name]}", "another method"
        )
    if method is None and name.endswith("_mtp"):
        return bad_speculation(f"{name!r} is an old name", "write `method: mtp`")
    if method is None:
        return bad_speculation(f"vLLM has no speculative method {name!r}", nearest(name, offered(version)))
    if method.until is not None and version >= method.until:
        gone = f"{method.until[0]}.{method.until[1]}"
        return bad_speculation(f"{name!r} was removed from vLLM in {gone} (this is {shown})", f"use {method.instead}")
    if version < method.since:
        since = f"{method.since[0]}.{method.since[1]}"
        return bad_speculation(f"{name!r} came with vLLM {since} (this is {shown})", "use a newer engine version")
    return None


def _unknown_options(method: Method, block: Mapping[str, JsonValue], version: Version) -> Iterator[Finding]:
    valid = (*_ALWAYS, *method.options)
    everywhere = {option for other in METHODS.values() for option in other.options}
    for option in block:
        if option == "tensor_parallel_size":
            yield bad_speculation(f"`{option}` is not an option here", "write `draft_tensor_parallel_size`")
        elif option not in valid and option in everywhere:
            owners = [m.name for m in METHODS.values() if option in m.options]
            yield bad_speculation(f"`{option}` does nothing for {method.name}", f"it belongs to {', '.join(owners)}")
        elif option not in valid:
            yield bad_speculation(f"unknown option `{option}`", nearest(option, valid))
        elif option in _SINCE_0_33 and version < (0, 33):
            yield bad_speculation(f"`{option}` came with vLLM 0.33", "use a newer engine version")


def _draft(method: Method, block: Mapping[str, JsonValue], roles: set[str]) -> Iterator[Finding]:
    role = block.get("model")
    if method.model == "needed" and role is None:
        yield bad_speculation(f"{method.name} needs `model`", "name one of the config's checkpoints")
    elif method.model == "none" and role is not None:
        yield bad_speculation(
            f"{method.name} takes no `model`", "leave it out; the target drafts for itself, or nothing does"
        )
    elif role is not None and role not in roles:
        yield bad_speculation(
            f"no checkpoint has the role {word(role)}", f"there are: {', '.join(sorted(roles)) or 'none'}"
        )


def _together(block: Mapping[str, JsonValue]) -> Iterator[Finding]:
    low, high, k = (block.get(n) for n in ("prompt_lookup_min", "prompt_lookup_max", "num_speculative_tokens"))
    if isinstance(low, int) and isinstance(high, int) and low > high:
        hint = "write the smaller one first, or leave one out: it takes the other's value"
        yield bad_speculation(f"`prompt_lookup_min` ({low}) is larger than `prompt_lookup_max` ({high})", hint)
    rejection = block.get("rejection_sample_method", "standard")
    synthetic = [n for n in ("synthetic_acceptance_rates", "synthetic_acceptance_length") if block.get(n) is not None]
    if rejection == "synthetic" and len(synthetic) != 1:
        yield bad_speculation("synthetic acceptance needs exactly one of rates and length", "give one of them")
    if rejection != "synthetic" and synthetic:
        yield bad_speculation(f"`{synthetic[0]}` needs `rejection_sample_method: synthetic`", "or leave it out")
    length = block.get("synthetic_acceptance_length")
    if isinstance(length, int | float) and isinstance(k, int) and length > k + 1:
        yield bad_speculation(f"`synthetic_acceptance_length` cannot be above {k + 1}", "it counts the bonus token")
    if rejection == "fly" and isinstance(k, int):
        window = block.get("fly_window_size")
        if k < 2 or (isinstance(window, int) and window >= k):
            yield bad_speculation("fly needs at least 2 draft tokens and a window below that", "raise the draft length")
    if "num_speculative_tokens_per_batch_size" in block:
        yield from _schedule(block["num_speculative_tokens_per_batch_size"])


def _schedule(value: JsonValue) -> Iterator[Finding]:
    """Dynamic K: [[first, last, K], ...], inclusive, from batch size 1 on, in order, without gaps to doubt about."""
    name = "num_speculative_tokens_per_batch_size"
    hint = "like [[1, 4, 5], [5, 32, 2]]: from, to, draft tokens"
    if not isinstance(value, list) or not value:
        yield bad_speculation(f"`{name}` must be a list of triples", hint)
        return
    expected = 1
    for triple in value:
        numbers = (
            [n for n in triple if isinstance(n, int) and not isinstance(n, bool)] if isinstance(triple, list) else []
        )
        if len(numbers) != 3 or not isinstance(triple, list) or len(triple) != 3:
            yield bad_speculation(f"`{name}` has {word(triple)}, which is no triple of whole numbers", hint)
            return
        first, last, k = numbers
        if first < expected or (expected == 1 and first != 1) or last < first or k < 0:
            yield bad_speculation(f"`{name}`: {word(triple)} is out of order, overlaps, or does not start at 1", hint)
            return
        expected = last + 1


def lossy(block: Mapping[str, JsonValue] | None) -> bool:
    """Whether this verification may change the text."""
    return block is not None and block.get("rejection_sample_method") in LOSSY_REJECTION


def argv(block: Mapping[str, JsonValue] | None, models: Mapping[str, str]) -> list[str]:
    """The option as vLLM takes it: one element of JSON (case C9), with `model` as the server finds it; [] for none."""
    if block is None:
        return []
    role = block.get("model")
    found = {"model": models[role]} if isinstance(role, str) and role in models else {}
    return ["--speculative-config", json.dumps({**block, **found}, ensure_ascii=False, allow_nan=False)]


def deploy_argv(block: Mapping[str, JsonValue] | None, models: Mapping[str, Named]) -> list[str]:
    """The same for a server in production, which is told the draft's commit where the model comes from the hub."""
    role = (block or {}).get("model")
    draft = models.get(role) if isinstance(role, str) else None
    pinned: Mapping[str, JsonValue] = {"revision": draft.revision} if draft is not None and draft.revision else {}
    return argv(None if block is None else {**block, **pinned}, {role: one.name for role, one in models.items()})
