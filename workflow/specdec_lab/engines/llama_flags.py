"""The llama-server flags that the lab knows: names, kinds, and where llama.cpp keeps the value.

One table serves three: the command line of the embedded server, the check of a config before any start (M18), and the
short names that people use. The names are llama.cpp's own (b11549, `common/arg.cpp`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "whole", "number", "switch", "on_off", "on_off_auto", "cache_type", "names"]

WORDS: dict[str, dict[str, int]] = {
    "on_off": {"on": 1, "off": 0},
    "on_off_auto": {"on": 1, "off": 0, "auto": -1},
    "cache_type": {
        "f32": 0,
        "f16": 1,
        "bf16": 30,
        "q8_0": 8,
        "q4_0": 2,
        "q4_1": 3,
        "iq4_nl": 20,
        "q5_0": 6,
        "q5_1": 7,
    },
}
"""The kinds that take one of a few words, with llama.cpp's number for each (ggml's, for number formats)."""


@dataclass(frozen=True)
class Flag:
    """One flag. `target` is the dotted attribute of llama.cpp's `common_params` that it sets."""

    name: str
    kind: Kind
    target: str
    short: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """Speculation methods to which the flag belongs; empty for a server flag."""
    note: str = ""


DRAFT_METHODS = ("draft-simple", "draft-eagle3", "draft-mtp", "draft-dflash", "draft-dspark")
NGRAM_METHODS = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")
METHODS = NGRAM_METHODS + DRAFT_METHODS

SERVER_FLAGS = (
    Flag("model", "text", "model.path", ("m",), note="GGUF file of the target"),
    Flag("host", "text", "hostnames", note="address to listen on; 127.0.0.1 unless given"),
    Flag("port", "whole", "port"),
    Flag("alias", "names", "model_alias", ("a",), note="model name in requests"),
    Flag("ctx-size", "whole", "n_ctx", ("c",), note="context in tokens, all slots together"),
    Flag("parallel", "whole", "n_parallel", ("np",), note="slots"),
    Flag("threads", "whole", "cpuparams.n_threads", ("t",)),
    Flag("threads-batch", "whole", "cpuparams_batch.n_threads", ("tb",)),
    Flag("batch-size", "whole", "n_batch", ("b",)),
    Flag("ubatch-size", "whole", "n_ubatch", ("ub",)),
    Flag("gpu-layers", "whole", "n_gpu_layers", ("ngl",)),
    Flag("seed", "whole", "sampling.seed", ("s",)),
    Flag("metrics", "switch", "endpoint_metrics"),
    Flag("cache-prompt", "switch", "cache_prompt", note="reuse of the last prompt's prefix"),
    Flag("cache-ram", "whole", "cache_ram_mib", ("cram",), note="MiB of the prompt cache; 0 is off"),
    Flag("fit", "on_off", "fit_params", note="adapt unset arguments to the memory"),
    Flag("flash-attn", "on_off_auto", "flash_attn_type", ("fa",)),
    Flag("cache-type-k", "cache_type", "cache_type_k", ("ctk",), note="number format of the cached keys"),
    Flag("cache-type-v", "cache_type", "cache_type_v", ("ctv",), note="number format of the cached values"),
    Flag("kv-unified", "switch", "kv_unified", ("kvu",)),
    Flag("warmup", "switch", "warmup"),
    Flag("cont-batching", "switch", "cont_batching", ("cb",)),
    Flag("chat-template", "text", "chat_template"),
    Flag("jinja", "switch", "use_jinja"),
)

SPECULATION_FLAGS = (
    Flag("spec-draft-model", "text", "speculative.draft.mparams.path", ("md", "model-draft"), DRAFT_METHODS),
    Flag("spec-draft-n-max", "whole", "speculative.draft.n_max", (), (*DRAFT_METHODS, "ngram-cache")),
    Flag("spec-draft-n-min", "whole", "speculative.draft.n_min", (), (*DRAFT_METHODS, "ngram-cache")),
    Flag("spec-draft-p-min", "number", "speculative.draft.p_min", (), DRAFT_METHODS),
    Flag("spec-draft-p-split", "number", "speculative.draft.p_split", (), DRAFT_METHODS),
    Flag("threads-draft", "whole", "speculative.draft.cpuparams.n_threads", ("td",), DRAFT_METHODS),
    Flag("threads-batch-draft", "whole", "speculative.draft.cpuparams_batch.n_threads", ("tbd",), DRAFT_METHODS),
    Flag("gpu-layers-draft", "whole", "speculative.draft.n_gpu_layers", ("ngld",), DRAFT_METHODS),
    Flag("spec-ngram-simple-size-n", "whole", "speculative.ngram_simple.size_n", (), ("ngram-simple",)),
    Flag("spec-ngram-simple-size-m", "whole", "speculative.ngram_simple.size_m", (), ("ngram-simple",)),
    Flag("spec-ngram-simple-min-hits", "whole", "speculative.ngram_simple.min_hits", (), ("ngram-simple",)),
    Flag("spec-ngram-map-k-size-n", "whole", "speculative.ngram_map_k.size_n", (), ("ngram-map-k",)),
    Flag("spec-ngram-map-k-size-m", "whole", "speculative.ngram_map_k.size_m", (), ("ngram-map-k",)),
    Flag("spec-ngram-map-k-min-hits", "whole", "speculative.ngram_map_k.min_hits", (), ("ngram-map-k",)),
    Flag("spec-ngram-map-k4v-size-n", "whole", "speculative.ngram_map_k4v.size_n", (), ("ngram-map-k4v",)),
    Flag("spec-ngram-map-k4v-size-m", "whole", "speculative.ngram_map_k4v.size_m", (), ("ngram-map-k4v",)),
    Flag("spec-ngram-map-k4v-min-hits", "whole", "speculative.ngram_map_k4v.min_hits", (), ("ngram-map-k4v",)),
    Flag("spec-ngram-mod-n-match", "whole", "speculative.ngram_mod.n_match", (), ("ngram-mod",)),
    Flag("spec-ngram-mod-n-min", "whole", "speculative.ngram_mod.n_min", (), ("ngram-mod",)),
    Flag("spec-ngram-mod-n-max", "whole", "speculative.ngram_mod.n_max", (), ("ngram-mod",)),
    Flag("lookup-cache-static", "text", "speculative.ngram_cache.lookup_cache_static", ("lcs",), ("ngram-cache",)),
    Flag("lookup-cache-dynamic", "text", "speculative.ngram_cache.lookup_cache_dynamic", ("lcd",), ("ngram-cache",)),
)

ALL_FLAGS = SERVER_FLAGS + SPECULATION_FLAGS
LONG_NAMES = {short: flag.name for flag in ALL_FLAGS for short in flag.short}
"""`np` -> `parallel`: what people write, and the name under which it is compared."""


def long_name(name: str) -> str:
    """The flag's long name for any of its spellings; unknown names come back with dashes."""
    dashed = name.replace("_", "-").lstrip("-")
    return LONG_NAMES.get(dashed, dashed)
