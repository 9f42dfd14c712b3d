"""What vLLM's log says of the server as it really runs (B3): text to facts, for 0.24 to 0.33, GPU and CPU.

Pure: lines in, facts out. A fact that the log does not state is left out, never guessed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from pydantic import JsonValue

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _number(text: str) -> int | float:
    plain = text.replace(",", "")
    return float(plain) if "." in plain else int(plain)


_FIRST: dict[str, re.Pattern[str]] = {
    "version": re.compile(r"Initializing a V1 LLM engine \(v?([^)]+)\)"),
    "max_num_batched_tokens": re.compile(r"Chunked prefill is enabled with max_num_batched_tokens=([\d,]+)"),
    "max_num_scheduled_tokens": re.compile(r"max_num_scheduled_tokens is set to ([\d,]+)"),
    "max_model_len": re.compile(r"Using max model len ([\d,]+)"),
    "kv_cache_tokens": re.compile(r"(?:GPU|CPU|GPU \+ host) KV cache size: ([\d,]+) tokens"),
    "max_full_length_requests": re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.,]+)x"),
    "kv_cache_gib": re.compile(r"Available KV cache memory: ([\d.]+) GiB"),
    "model_gib": re.compile(r"Model loading took ([\d.]+) GiB"),
    "start_s": re.compile(r"init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s"),
    "compile_s": re.compile(r"init engine \(.*\) took [\d.]+ s \(compilation: ([\d.]+) s\)"),
    "attention_backend": re.compile(r"Using (\w+) (?:attention )?backend"),
    "flash_attention": re.compile(r"Using FlashAttention version (\d+)"),
    "eagle3_layers": re.compile(r"Using Eagle3 auxiliary layers from (?:config|model): (\([^)]*\))"),
    "draft_max_model_len": re.compile(
        r"Overriding draft model max (?:model len|position_embeddings) from \d+ to ([\d,]+)"
    ),
    "target_shortened_to": re.compile(r"reducing max_model_len to ([\d,]+)"),
}
_LAST: dict[str, re.Pattern[str]] = {
    "cuda_graph_gib": re.compile(r"Graph capturing finished in [\d.]+ secs?, took ([\d.]+) GiB"),
}
_ENGINE: dict[str, re.Pattern[str]] = {
    "speculative": re.compile(r"speculative_config=(SpeculativeConfig\([^)]*\)|None)"),
    "dtype": re.compile(r"dtype=torch\.(\w+)"),
    "kv_cache_dtype": re.compile(r"kv_cache_dtype=(\w+)"),
    "quantization": re.compile(r"(?<!\w)quantization=(\w+)"),
    "enforce_eager": re.compile(r"enforce_eager=(\w+)"),
    "prefix_caching": re.compile(r"enable_prefix_caching=(\w+)"),
    "chunked_prefill": re.compile(r"enable_chunked_prefill=(\w+)"),
    "seed": re.compile(r"(?<!\w)seed=(\d+)"),
    "tensor_parallel_size": re.compile(r"tensor_parallel_size=(\d+)"),
    "device": re.compile(r"device_config=(\w+)"),
    "cuda_graphs": re.compile(r"'cudagraph_mode': <CUDAGraphMode\.(\w+)"),
    "largest_cuda_graph": re.compile(r"'max_cudagraph_capture_size': (\d+)"),
    "compile_mode": re.compile(r"'mode': <CompilationMode\.(\w+)"),
}
_ARGS = re.compile(r"non-default args: (\{.*\})")
_OVERRIDDEN_SAMPLING = re.compile(r"[Dd]efault (?:vLLM )?sampling parameters have been overridden")
_ASYNC = (
    (re.compile(r"Async(?:hronous)? scheduling (?:is|will be) enabled"), True),
    (re.compile(r"Async(?:hronous)? scheduling is disabled"), False),
    (re.compile(r"Async scheduling not supported with .* will be disabled"), False),
)
_RUNNER = ((re.compile(r"Using V2 Model Runner"), "V2"), (re.compile(r"using the V1 model runner instead"), "V1"))
_VALUES: dict[str, JsonValue] = {"True": True, "False": False, "None": None}


def _value(text: str) -> JsonValue:
    if text in _VALUES:
        return _VALUES[text]
    return _number(text) if re.fullmatch(r"[\d,]+(\.\d+)?", text) else text


def plain(value: object) -> JsonValue:
    """A Python value out of a log as JSON."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def read(lines: Iterable[str]) -> dict[str, JsonValue]:
    """The facts of one log."""
    facts: dict[str, JsonValue] = {}
    for raw in lines:
        line = _COLOUR.sub("", raw)
        if "non-default args" in line and (hit := _ARGS.search(line)) and "args" not in facts:
            facts.update(_arguments(hit[1]))
        if "Initializing a V1 LLM engine" in line:
            facts.update({k: _value(hit[1]) for k, p in _ENGINE.items() if (hit := p.search(line)) is not None})
        for name, pattern in _FIRST.items():
            if name not in facts and (hit := pattern.search(line)):
                facts[name] = hit[1] if name in ("version", "eagle3_layers") else _value(hit[1])
        for name, pattern in _LAST.items():
            if hit := pattern.search(line):
                facts[name] = _value(hit[1])
        for patterns, name in ((_ASYNC, "async_scheduling"), (_RUNNER, "model_runner")):
            for pattern, said in patterns:
                if pattern.search(line):
                    facts[name] = said
        if _OVERRIDDEN_SAMPLING.search(line):
            facts["sampling_defaults_overridden"] = line.split("] ", 1)[-1].strip()
    return facts


def _arguments(text: str) -> dict[str, JsonValue]:
    """The argument line, without what differs between any two servers: names, places, ports."""
    try:
        said = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {"args": {str(k): plain(v) for k, v in sorted(said.items())}}
