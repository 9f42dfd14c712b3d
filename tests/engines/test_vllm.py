"""vLLM: modes refused before any start, argv that keeps JSON whole, and facts out of real logs (M16-M18, C9, B3)."""

import json
from pathlib import Path, PurePosixPath

import pytest
from ruamel.yaml import YAML

from specdec_lab import engines
from specdec_lab.engines import vllm_log
from specdec_lab.engines.base import Named
from specdec_lab.engines.ledger import ledger
from specdec_lab.records.spec import ServerSpec

ENGINE = engines.get("vllm")
LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
CONFIGS = Path(__file__).parents[2] / "config"
PLACES = {"target": PurePosixPath("/models/target"), "draft": PurePosixPath("/models/my draft")}


def server(speculative=None, version="0.33.0", **more) -> ServerSpec:
    return ServerSpec(engine="vllm", launcher="docker", version=version, speculative=speculative, **more)


def problems(block, version="0.33.0", roles=("target", "draft")):
    return ENGINE.problems(server(block, version), roles)


GOOD = {
    "ngram": {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4},
    "ngram_gpu": {"method": "ngram_gpu", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4},
    "draft_model": {"method": "draft_model", "model": "draft", "num_speculative_tokens": 5},
    "suffix": {"method": "suffix"},
    "eagle": {"method": "eagle", "model": "draft", "num_speculative_tokens": 3},
    "eagle3": {"method": "eagle3", "model": "draft", "num_speculative_tokens": 3},
    "mtp": {"method": "mtp", "num_speculative_tokens": 1},
    "dflash": {"method": "dflash", "model": "draft", "num_speculative_tokens": 7},
    "dspark": {"method": "dspark", "model": "draft", "num_speculative_tokens": 7, "enable_adaptive_verification": True},
    "dynamic K": {
        "method": "eagle3",
        "model": "draft",
        "num_speculative_tokens": 5,
        "num_speculative_tokens_per_batch_size": [[1, 4, 5], [5, 32, 2], [33, 64, 0]],
    },
}


@pytest.mark.parametrize("name", GOOD)
def test_m16_every_method_of_033_is_a_config_entry(name):
    assert problems(GOOD[name]) == []


@pytest.mark.parametrize("method", ["medusa", "mlp_speculator"])
def test_m18_removed_methods_are_refused_with_advice_and_allowed_where_they_exist(method):
    block = {"method": method, "model": "draft", "num_speculative_tokens": 3}
    assert "removed from vLLM in 0.33" in problems(block)[0].message
    assert "eagle3" in problems(block)[0].hint
    assert problems(block, "0.32.0") == []


@pytest.mark.parametrize(
    ("change", "text", "hint"),
    [
        ({"method": "ngrams"}, "no speculative method", "ngram"),
        ({"method": None}, "`method` is missing", "suffix"),
        ({"method": "qwen3_next_mtp"}, "old name", "mtp"),
        ({"method": "extract_hidden_states"}, "cannot be measured", ""),
        ({"num_speculative_tokens": 0}, "at least 1", ""),
        ({"num_speculative_tokens": 2.5}, "whole number", ""),
        ({"num_speculative_tokens": True}, "whole number", ""),
        ({"num_speculative_tokens": None}, "needs `num_speculative_tokens`", "usual start"),
        ({"prompt_lookup_maxx": 4}, "unknown option", "prompt_lookup_max"),
        ({"prompt_lookup_min": 6, "prompt_lookup_max": 4}, "larger than", ""),
        ({"suffix_decoding_max_tree_depth": 8}, "does nothing for ngram", "suffix"),
        ({"tensor_parallel_size": 2}, "not an option", "draft_tensor_parallel_size"),
        ({"model": "draft"}, "takes no `model`", ""),
        ({"method": "eagle3"}, "needs `model`", "checkpoints"),
        ({"method": "eagle3", "model": "head"}, "no checkpoint has the role", "draft"),
        ({"rejection_sample_method": "typical"}, "cannot be", "standard"),
        ({"rejection_sample_method": "synthetic"}, "exactly one", ""),
        ({"synthetic_acceptance_length": 3}, "needs `rejection_sample_method: synthetic`", ""),
        ({"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 7}, "cannot be above 6", ""),
        ({"num_speculative_tokens_per_batch_size": [[2, 4, 5]]}, "does not start at 1", ""),
        ({"num_speculative_tokens_per_batch_size": [[1, 4, 5], [4, 8, 2]]}, "overlaps", ""),
        ({"num_speculative_tokens_per_batch_size": 5}, "list of triples", ""),
        ({"num_speculative_tokens_per_batch_size": [[1, 4]]}, "no triple", ""),
        ({"suffix_decoding_min_token_prob": 1.5, "method": "suffix", "prompt_lookup_max": None}, "at most 1", ""),
    ],
)
def test_m18_what_is_wrong_is_said_before_any_start(change, text, hint):
    block = {k: v for k, v in {**GOOD["ngram"], **change}.items() if not (k == "method" and v is None)}
    if change.get("method") in ("eagle3", "suffix"):
        del block["prompt_lookup_max"]
    found = problems(block)
    assert any(text in f.message and hint in f.hint for f in found), found
    assert all(f.hint for f in found), "every fault says how to mend it"


def test_versions_gate_methods_and_options():
    assert "came with vLLM 0.32" in problems(GOOD["dspark"], "0.30.1")[0].message
    block = {**GOOD["eagle3"], "draft_lm_head_quantization": "fp8"}
    assert "came with vLLM 0.33" in problems(block, "0.32.0")[0].message
    spec = ServerSpec(engine="vllm", launcher="docker", image="vllm/vllm-openai:v0.32.0", speculative=GOOD["eagle3"])
    assert ENGINE.problems(spec, ["target", "draft"]) == []


def test_lossy_verification_is_known():
    assert ENGINE.lossy(server({**GOOD["eagle3"], "rejection_sample_method": "fly"}))
    assert ENGINE.lossy(server({**GOOD["eagle3"], "rejection_sample_method": "synthetic"}))
    assert not ENGINE.lossy(server({**GOOD["eagle3"], "rejection_sample_method": "block"}))


def test_c9_the_speculative_config_is_one_element_of_json_equal_to_the_config():
    block = {
        "method": "eagle3",
        "model": "draft",
        "num_speculative_tokens": 3,
        "flag": True,
        "x": None,
        "n": {"a": "it's"},
    }
    argv = ENGINE.argv(server(block), PLACES, host="0.0.0.0", port=8000)
    at = argv.index("--speculative-config")
    assert at == len(argv) - 2
    assert json.loads(argv[-1]) == {**block, "model": "/models/my draft"}


def test_m17_flags_are_the_same_in_every_mode_and_fair_by_default():
    args = {"max-model-len": 8192, "gpu_memory_utilization": 0.9, "compilation-config": {"mode": 3}}
    plain = ENGINE.argv(server(args=args), PLACES, host="0.0.0.0", port=8000)
    ngram = ENGINE.argv(server(GOOD["ngram"], args=args), PLACES, host="0.0.0.0", port=8000)
    assert ngram[: len(plain)] == plain
    assert plain[0] == "/models/target"
    assert {"--no-enable-prefix-caching", "--generation-config", "--seed"} <= set(plain)
    assert plain[plain.index("--gpu-memory-utilization") + 1] == "0.9"
    assert json.loads(plain[plain.index("--compilation-config") + 1]) == {"mode": 3}


@pytest.mark.parametrize("name", ["port", "speculative_config", "served-model-name", "model", "api-key"])
def test_arguments_that_are_the_labs_own_are_refused(name):
    assert ENGINE.problems(server(args={name: "x"}), [])[0].code == "bad_args"


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (2048.0, "write 2048"),
        (2048.5, "write a whole number"),
        (True, "write a whole number"),
        (2048, None),
        ("8k", None),
        (None, None),
    ],
)
def test_a_whole_number_written_with_a_point_is_refused_before_any_start(value, hint):
    found = ENGINE.problems(server(args={"max_model_len": value}), ["target"])
    assert [(f.code, f.hint) for f in found] == ([] if hint is None else [("bad_args", hint)])
    assert ENGINE.problems(server(args={"gpu-memory-utilization": 1.0}), ["target"]) == []


def test_switching_counters_off_is_refused():
    assert "counters" in ENGINE.problems(server(args={"disable-log-stats": True}), [])[0].message


def test_the_deploy_command_keeps_prefix_caching_and_the_speculation():
    spec = server(GOOD["eagle3"], args={"max-model-len": 8192, "enable-prefix-caching": False, "seed": 0})
    models = {"target": Named("org/model"), "draft": Named("org/head")}
    command = ENGINE.deploy_args(spec, models, host="127.0.0.1", port=8000)
    assert command[:7] == ["org/model", "--host", "127.0.0.1", "--port", "8000", "--max-model-len", "8192"]
    assert json.loads(command[-1])["model"] == "org/head"
    assert "--no-enable-prefix-caching" not in command


def facts(name):
    return ENGINE.facts((LOGS / f"{name}.log").read_text(encoding="utf-8").splitlines())


def test_b3_facts_of_a_gpu_server_as_it_really_runs():
    found = facts("vllm_ok_033_draft")
    expected = {
        "version": "0.33.0",
        "model_runner": "V2",
        "max_num_batched_tokens": 8192,
        "kv_cache_tokens": 432096,
        "kv_cache_gib": 65.93,
        "cuda_graphs": "FULL_AND_PIECEWISE",
        "attention_backend": "FLASH_ATTN",
        "dtype": "bfloat16",
        "prefix_caching": False,
        "seed": 0,
    }
    assert {k: found[k] for k in expected} == expected
    assert found["args"]["speculative_config"]["num_speculative_tokens"] == 4
    assert "async_scheduling" not in found


def test_b3_older_versions_and_their_two_line_kv_size_are_read_too():
    found = facts("vllm_ok_024_draft")
    assert (found["model_runner"], found["async_scheduling"]) == ("V1", False)
    assert (found["max_num_scheduled_tokens"], found["kv_cache_tokens"]) == (7168, 431280)


def test_b3_the_ledger_tells_what_came_with_the_speculation():
    draft = {entry.what: entry for entry in ledger(facts("vllm_ok_033_b8"), facts("vllm_ok_033_draft"))}
    assert (draft["kv_cache_tokens"].baseline, draft["kv_cache_tokens"].mode) == (557600, 432096)
    assert draft["model_gib"].origin == "engine"
    assert "max_num_batched_tokens" not in draft
    old = {entry.what for entry in ledger(facts("vllm_ok_033_b8"), facts("vllm_ok_024_draft"))}
    assert {"model_runner", "async_scheduling", "max_num_scheduled_tokens", "version"} <= old


def test_b3_two_servers_that_differ_in_memory_noise_only_have_an_empty_ledger():
    assert ledger(facts("vllm_ok_033_baseline"), facts("vllm_ok_033_ngram")) == []


def test_b3_how_long_compiling_took_is_a_fact_and_no_difference_between_servers():
    first, second = facts("vllm_ok_033_b8"), facts("vllm_ok_033_eagle3")
    assert (first["compile_s"], second["compile_s"]) == (19.5, 23.04)
    assert "compile_s" not in {entry.what for entry in ledger(first, second)}


def test_m17_larger_cuda_graphs_that_came_with_the_speculation_are_told():
    """Seen with max-num-seqs 64: vLLM captures up to 2 * 64 * (1 + K) tokens, so 128 in a baseline and 512 at K = 5."""
    (entry,) = ledger({"largest_cuda_graph": 128}, {"largest_cuda_graph": 512})
    assert (entry.what, entry.origin, entry.baseline, entry.mode) == ("largest_cuda_graph", "engine", 128, 512)


@pytest.mark.parametrize("name", ["config.yaml", "examples/h200-smollm2.yaml", "examples/h200-llama8b-ceiling.yaml"])
def test_m17_a_config_that_limits_the_sequences_also_fixes_the_graphs(name):
    args = YAML(typ="safe").load(CONFIGS / name)["engine"]["args"]
    assert "max-num-seqs" in args
    assert args["max-cudagraph-capture-size"] == 512


def test_m17_an_argument_that_differs_is_told_as_such():
    first = {"args": {"port": 1, "max_model_len": 8192, "served_model_name": ["a"]}}
    second = {"args": {"port": 2, "max_model_len": 4096, "speculative_config": {"method": "ngram"}}}
    found = ledger(first, second)
    assert [(e.what, e.origin, e.baseline, e.mode) for e in found] == [("max_model_len", "argument", 8192, 4096)]


def test_an_unreadable_argument_line_is_left_out_not_guessed():
    assert "args" not in vllm_log.read(["INFO non-default args: {'x': <object at 0x7f>}"])
