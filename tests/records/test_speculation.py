"""K and the method, read in one place from every engine's own words."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_lab import engines
from specdec_lab.config.simplicity import simple_first
from specdec_lab.records.spec import ServerSpec, SessionSpec, looks_up


def server(engine: str, block: dict[str, Any] | None) -> ServerSpec:
    launcher = "attach" if engine == "openai" else "docker"
    return ServerSpec(engine=engine, launcher=launcher, image="image:1", speculative=block)


K = [
    ("vllm", {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}, 5),
    ("vllm", {"method": "mtp"}, None),
    ("nim", {"method": "eagle3", "model": "draft", "num_speculative_tokens": 3}, 3),
    ("llama_cpp", {"method": "draft-simple", "model": "draft", "draft-n-max": 4, "draft-n-min": 2}, 4),
    ("llama_cpp", {"method": "draft-simple", "model": "draft", "spec-draft-n-max": 4}, 4),
    ("llama_cpp", {"method": "ngram-cache", "draft_n_max": 6}, 6),
    ("llama_cpp", {"method": "ngram-simple", "ngram-simple-size-n": 4, "ngram-simple-size-m": 8}, 8),
    ("llama_cpp", {"method": "ngram-map-k", "ngram-map-k-size-n": 4, "ngram-map-k-size-m": 9}, 9),
    ("llama_cpp", {"method": "ngram-map-k4v", "ngram-map-k4v-size-n": 4, "ngram-map-k4v-size-m": 7}, 7),
    ("llama_cpp", {"method": "ngram-mod", "ngram-mod-n-match": 24, "ngram-mod-n-max": 64}, 64),
    ("llama_cpp", {"method": "ngram-simple"}, None),
    ("sglang", {"method": "EAGLE3", "model": "draft", "num-steps": 3, "eagle-topk": 1, "num-draft-tokens": 4}, 3),
    ("sglang", {"method": "EAGLE3", "model": "draft", "speculative_num_steps": 5, "eagle_topk": 4}, 5),
    ("sglang", {"method": "NGRAM", "num-draft-tokens": 8}, 7),
    ("openai", {"method": "an old llama-server", "draft-max": 16}, 16),
    ("vllm", None, None),
]


@pytest.mark.parametrize(("engine", "block", "k"), K)
def test_k_is_read_from_what_the_engine_calls_it(engine: str, block: dict[str, Any] | None, k: int | None) -> None:
    assert server(engine, block).draft_length == k


@pytest.mark.parametrize(("engine", "block", "k"), [one for one in K if one[1] is not None and one[0] != "openai"])
def test_these_are_words_that_the_engine_itself_takes(engine: str, block: dict[str, Any], k: int | None) -> None:
    assert engines.get(engine).problems(server(engine, block), ["target", "draft"]) == []


@pytest.mark.parametrize("value", [True, 0, -1, "4", None])
def test_what_is_no_length_is_no_k(value: object) -> None:
    assert server("vllm", {"method": "ngram", "num_speculative_tokens": value}).draft_length is None


def test_the_method_is_the_engines_word_and_a_plain_server_has_none() -> None:
    assert server("sglang", {"method": "EAGLE3"}).method == "EAGLE3"
    assert server("vllm", None).method is None


def test_a_method_looks_up_only_when_all_its_parts_do() -> None:
    lookups = ["ngram", "ngram_gpu", "NGRAM", "suffix", "ngram-map-k4v", "ngram-cache", "ngram-simple,ngram-mod"]
    assert [method for method in lookups if not looks_up(method)] == []
    models = ["draft_model", "eagle3", "EAGLE3", "mtp", "draft-simple", "ngram-mod,draft-simple", "NEXTN", None]
    assert [method for method in models if looks_up(method)] == []


def test_a_lookup_beside_a_draft_model_is_as_demanding_as_the_draft_model() -> None:
    methods = ["ngram-mod,draft-simple", "draft-eagle3", "ngram-mod"]
    sessions = {
        method: SessionSpec(server=server("llama_cpp", {"method": method}), checkpoints={}, against=None)
        for method in methods
    }
    assert list(simple_first(sessions)) == ["ngram-mod", "draft-eagle3", "ngram-mod,draft-simple"]
