"""The confounder ledger (B3, M17): what else differed between two servers than the speculation that was asked for.

A pure function over two servers' facts. Each entry says whether it was asked for in the config or came with the
speculation by itself; none of it is an error, all of it is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field, JsonValue

from ..records.base import Record, canonical

Origin = Literal["argument", "engine"]

MEANING = {
    "model_runner": "another model runner: other kernels and another scheduler",
    "async_scheduling": "asynchronous scheduling hides CPU work behind the GPU; without it each step costs more",
    "max_num_scheduled_tokens": "fewer tokens per step, so that prefill of a full batch takes longer",
    "max_num_batched_tokens": "another token budget per step",
    "kv_cache_tokens": "another KV cache size: matters when many or long requests run at once",
    "kv_cache_gib": "another KV cache size",
    "max_full_length_requests": "follows from the KV cache's size",
    "cuda_graphs": "other CUDA graphs: launch overhead differs",
    "largest_cuda_graph": "batches above this size run without a graph",
    "cuda_graph_gib": "memory of the captured graphs",
    "attention_backend": "another attention kernel: speed and rounding differ",
    "flash_attention": "another attention kernel version",
    "enforce_eager": "no graphs and no compilation at all",
    "prefix_caching": "a prefix cache lets later requests skip work",
    "dtype": "another number format: speed and text differ",
    "model_gib": "memory of the weights, the draft's included",
    "max_model_len": "another context limit",
    "target_shortened_to": "the draft's shorter context shortened the target's",
    "seed": "another seed",
    "slots": "another number of parallel slots",
    "slot_context": "another context per slot",
    "threads": "another number of threads",
    "kv_unified": "another layout of the KV cache",
    "version": "another engine version",
}
EXPECTED = {
    "speculative",
    "eagle3_layers",
    "draft_max_model_len",
    "start_s",
    "compile_s",
    "system",
    "package",
    "software",
    "build",
}
"""Facts that differ by nature (the speculation itself), by chance (how long a start took), or not at all."""
_VOLATILE_ARGS = {
    "port",
    "host",
    "model",
    "model_tag",
    "alias",
    "served_model_name",
    "speculative_config",
}
_DRAFTING = (
    "spec-",
    "spec_",
    "speculative",
    "threads-draft",
    "threads-batch-draft",
    "gpu-layers-draft",
    "lookup-cache",
)
_RELATIVE_NOISE = {
    "kv_cache_tokens": 0.002,
    "kv_cache_gib": 0.002,
    "model_gib": 0.002,
    "cuda_graph_gib": 0.05,
    "max_full_length_requests": 0.002,
}
"""Differences below this share come from memory profiling and mean nothing."""


class LedgerEntry(Record):
    """One difference between two servers."""

    what: str
    origin: Origin = Field(description="argument: the config asked for it. engine: it came with the speculation.")
    baseline: JsonValue
    mode: JsonValue
    meaning: str = ""


def ledger(baseline: Mapping[str, JsonValue], mode: Mapping[str, JsonValue]) -> list[LedgerEntry]:
    """Differences between the facts of a baseline's server and a mode's, arguments first.

    A fact that only one side states is compared with null: an engine mentions some things only when it changes them.
    """
    return [*_arguments(baseline.get("args"), mode.get("args")), *_engine(baseline, mode)]


def _arguments(first: JsonValue, second: JsonValue) -> list[LedgerEntry]:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return []
    names = sorted(
        name for name in {*first, *second} - _VOLATILE_ARGS if not any(name.startswith(word) for word in _DRAFTING)
    )
    return [
        LedgerEntry(what=name, origin="argument", baseline=first.get(name), mode=second.get(name))
        for name in names
        if canonical(first.get(name)) != canonical(second.get(name))
    ]


def _engine(first: Mapping[str, JsonValue], second: Mapping[str, JsonValue]) -> list[LedgerEntry]:
    names = [name for name in MEANING if name in first or name in second]
    names += sorted(({*first, *second} - MEANING.keys()) - EXPECTED - {"args"})
    return [
        LedgerEntry(
            what=name,
            origin="engine",
            baseline=first.get(name),
            mode=second.get(name),
            meaning=MEANING.get(name, ""),
        )
        for name in names
        if not _same(name, first.get(name), second.get(name))
    ]


def _same(name: str, first: JsonValue, second: JsonValue) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float) and not isinstance(first, bool):
        allowed = _RELATIVE_NOISE.get(name, 0.0) * max(abs(first), abs(second))
        return abs(first - second) <= allowed
    return canonical(first) == canonical(second)
