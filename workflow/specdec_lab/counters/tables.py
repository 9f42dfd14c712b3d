"""The counter tables of the engines that the lab knows (M20), old names included (case B8).

Sources: vLLM 0.6.6 to 0.33.0 (`vllm/v1/spec_decode/metrics.py`, `vllm/v1/metrics/loggers.py`), llama.cpp's server
(`tools/server/server-context.cpp`), SGLang 0.5 (`srt/observability/metrics_collector.py`). NIM serves vLLM's or
SGLang's names, whichever it is built on, under `/v1/metrics`.
"""

from __future__ import annotations

from .names import MetricNames

VLLM = MetricNames(
    drafts=("vllm:spec_decode_num_drafts",),
    draft_tokens=("vllm:spec_decode_num_draft_tokens",),
    accepted_tokens=("vllm:spec_decode_num_accepted_tokens",),
    accepted_per_position=("vllm:spec_decode_num_accepted_tokens_per_pos",),
    prompt_tokens=("vllm:prompt_tokens",),
    generation_tokens=("vllm:generation_tokens",),
    requests_finished=("vllm:request_success",),
    prefix_cache_queries=("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    prefix_cache_hits=("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    preemptions=("vllm:num_preemptions",),
    running=("vllm:num_requests_running",),
    others=(
        "vllm:spec_decode_num_emitted_tokens",
        "vllm:prompt_tokens_cached",
        "vllm:external_prefix_cache_queries",
        "vllm:external_prefix_cache_hits",
        "vllm:admission_rejections",
    ),
    off_hint="A vLLM server with --disable-log-stats, or with more than one API server, hides its counters.",
)

LLAMA_CPP = MetricNames(
    drafts=("llamacpp:spec_decode_num_drafts",),
    draft_tokens=("llamacpp:spec_decode_num_draft_tokens",),
    accepted_tokens=("llamacpp:spec_decode_num_accepted_tokens",),
    accepted_per_position=("llamacpp:spec_decode_num_accepted_tokens_per_pos",),
    prompt_tokens=("llamacpp:prompt_tokens",),
    generation_tokens=("llamacpp:tokens_predicted",),
    prefix_cache_hits=("llamacpp:prompt_tokens_cached",),
    running=("llamacpp:requests_processing",),
    others=(
        "llamacpp:prompt_seconds",
        "llamacpp:tokens_predicted_seconds",
        "llamacpp:n_decode",
    ),
    always_shown=True,
    publish_lag_s=0.3,  # a request's numbers are added in one step, when it finishes
    off_hint="Start llama-server with --metrics.",
)

SGLANG = MetricNames(
    verify_calls=("sglang:spec_verify_calls",),
    prompt_tokens=("sglang:prompt_tokens",),
    generation_tokens=("sglang:generation_tokens",),
    requests_finished=("sglang:num_requests",),
    prefix_cache_hits=("sglang:cached_tokens",),
    preemptions=("sglang:num_retracted_requests",),
    running=("sglang:num_running_reqs",),
    off_hint="Start SGLang with --enable-metrics.",
)


def _either(first: MetricNames, second: MetricNames) -> MetricNames:
    """One table that reads whichever of two engines answers; their prefixes keep them apart."""

    def joined(name: str) -> tuple[str, ...]:
        one: tuple[str, ...] = getattr(first, name)
        return one + tuple(n for n in getattr(second, name) if n not in one)

    quantities = [name for name, value in vars(first).items() if isinstance(value, tuple)]
    return MetricNames(
        **{name: joined(name) for name in quantities},  # type: ignore[arg-type]
        publish_lag_s=max(first.publish_lag_s, second.publish_lag_s),
        off_hint="NIM serves its counters at /v1/metrics; check that path and that metrics are not switched off.",
    )


NIM = _either(VLLM, SGLANG)

TABLES: dict[str, MetricNames] = {"vllm": VLLM, "llama_cpp": LLAMA_CPP, "sglang": SGLANG, "nim": NIM}
"""By engine name. A generic OpenAI-compatible endpoint has none: its speculation numbers are unknown, never 0."""


def guess(*scrapes: str) -> str:
    """The engine whose counters these scrapes hold, by prefix; `vllm` when none is there."""
    prefixes = {"vllm": "vllm:", "llama_cpp": "llamacpp:", "sglang": "sglang:"}
    return max(prefixes, key=lambda engine: sum(text.count(prefixes[engine]) for text in scrapes))
