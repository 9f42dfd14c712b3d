"""SGLang, NIM and generic endpoints: what is refused, and what they are given (M20)."""

from pathlib import PurePosixPath

import pytest

from specdec_lab import engines
from specdec_lab.records.errors import UserError
from specdec_lab.records.spec import ServerSpec

PLACES = {"target": PurePosixPath("/m/t"), "draft": PurePosixPath("/m/d")}


def spec(engine, speculative=None, launcher="docker", **more) -> ServerSpec:
    return ServerSpec(engine=engine, launcher=launcher, speculative=speculative, **more)


def test_sglang_gets_its_own_flag_names():
    block = {"method": "EAGLE3", "model": "draft", "num-steps": 3, "eagle_topk": 1, "num-draft-tokens": 4}
    engine = engines.get("sglang")
    assert engine.problems(spec("sglang", block), PLACES) == []
    argv = engine.argv(spec("sglang", block), PLACES, host="0.0.0.0", port=8000)
    at = argv.index("--speculative-algorithm")
    assert argv[at:] == [
        "--speculative-algorithm",
        "EAGLE3",
        "--speculative-draft-model-path",
        "/m/d",
        "--speculative-num-steps",
        "3",
        "--speculative-eagle-topk",
        "1",
        "--speculative-num-draft-tokens",
        "4",
    ]
    assert {"--enable-metrics", "--disable-radix-cache"} <= set(argv)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"method": "EAGLE4"}, "no speculative algorithm"),
        ({"method": "EAGLE3"}, "needs `model`"),
        ({"method": "NGRAM", "ngram-capacityy": 3}, "unknown option"),
        ({"method": "NGRAM", "num-draft-tokens": 0}, "at least 1"),
        ({"method": "EAGLE", "model": "head"}, "no checkpoint has the role"),
    ],
)
def test_sglang_modes_are_checked_before_a_start(block, text):
    assert text in engines.get("sglang").problems(spec("sglang", block), PLACES)[0].message


def test_sglang_acceptance_thresholds_below_one_are_lossy():
    engine = engines.get("sglang")
    assert engine.lossy(spec("sglang", {"method": "NGRAM", "accept-threshold-single": 0.9}))
    assert not engine.lossy(spec("sglang", {"method": "NGRAM", "accept-threshold-single": 1.0}))


def test_a_nim_is_its_own_image_and_passes_the_speculation_on():
    engine = engines.get("nim")
    assert "image" in engine.problems(spec("nim"), [])[0].hint
    block = {"method": "ngram", "num_speculative_tokens": 5}
    argv = engine.argv(spec("nim", block, image="nvcr.io/nim/x:2.0"), {}, host="0.0.0.0", port=8000)
    assert argv == ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 5}']
    assert engine.metrics_path == "/v1/metrics"


def test_a_generic_endpoint_can_only_be_attached_to_under_its_models_name():
    engine = engines.get("openai")
    found = engine.problems(spec("openai"), [])
    assert [f.code for f in found] == ["bad_args", "bad_args"]
    assert engine.problems(spec("openai", launcher="attach", served_model="m"), []) == []
    assert engine.metrics_path is None


def test_an_unknown_engine_is_refused_with_the_list():
    with pytest.raises(UserError, match="vllm, llama_cpp, sglang, nim, openai"):
        engines.get("tgi")


@pytest.mark.parametrize("name", engines.NAMES)
def test_every_engine_keeps_the_protocol(name):
    engine = engines.get(name)
    assert engine.name == name
    assert engine.ready_path.startswith("/")
    assert engine.version("http://127.0.0.1:9") is None
    assert engine.facts(["nothing of note"]) == {}
