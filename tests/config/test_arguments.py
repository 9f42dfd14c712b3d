"""Each flag of a server is written once, in one spelling, and speculation stands in its own block alone (M17)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdec_lab.config.load import load_config
from specdec_lab.config.problems import ConfigError, Problem
from specdec_lab.config.resolve import Matrix, resolve

CONFIG = {
    "name": "x",
    "engine": {"software": "vllm", "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0"},
    "checkpoints": {"target": {"hub": "a/b"}},
    "modes": {"baseline": {}, "ngram": {"speculative": {"method": "ngram", "num_speculative_tokens": 5}}},
}


def matrix(folder: Path, args: dict[str, object], differs: dict[str, object] | None = None, **engine: str) -> Matrix:
    config = json.loads(json.dumps(CONFIG))
    config["engine"] |= {"args": args, **engine}
    if differs is not None:
        config["modes"]["ngram"]["differs"] = {"why": "tried", "args": differs}
    path = folder / "c.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return resolve(load_config([path]), kinds=["chat"], known=["chat"])


def refused(folder: Path, args: dict[str, object], differs: dict[str, object] | None = None, **engine: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        matrix(folder, args, differs, **engine)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("args", "cause", "fix"),
    [
        ({"max-model-len": 8192, "max_model_len": 4096}, "are one flag", "Keep one of them"),
        ({"tp": 1, "tensor-parallel-size": 2}, "`tp` and `tensor-parallel-size` are one flag", "Keep one of them"),
        (
            {"enable-prefix-caching": True, "no-enable-prefix-caching": True},
            "contradict each other",
            "`enable-prefix-caching: true` or `enable-prefix-caching: false`",
        ),
        ({"no_enforce_eager": True, "enforce-eager": True}, "contradict each other", "`enforce-eager: true`"),
        ({"no-enforce-eager": False}, "says no twice", "Write `enforce-eager: true`."),
        ({"--max-model-len": 1}, "is no flag's name here", "Write `max-model-len`"),
        ({"--port": 9}, "`--port` may not stand among", "the lab sets it"),
        ({"-q": "fp8"}, "is no flag's name here", "Write `q`"),
        ({"max model len": 1}, "is no flag's name here", "Write `max-model-len`"),
        ({"max-num-seqs ": 2}, "is no flag's name here", "Write `max-num-seqs`"),
        ({"--dtype=float16": True}, "is no flag's name here", "Write `dtype: float16`"),
        ({"speculative-config.method": "ngram"}, "may not stand among", "`speculative` block"),
        ({"speculative_config.method": "ngram"}, "may not stand among", "`speculative` block"),
        ({"speculative-config": "{}"}, "may not stand among", "`speculative` block"),
        ({"speculative-conf": "{}"}, "may not stand among", "`speculative` block"),
        ({"spec-method": "ngram"}, "may not stand among", "`speculative` block"),
        ({"sc": "{}"}, "may not stand among", "`speculative` block"),
    ],
)
def test_a_flag_that_would_be_sent_twice_or_wrongly_is_refused(
    tmp_path: Path, args: dict[str, object], cause: str, fix: str
) -> None:
    problem = refused(tmp_path, args)
    assert problem.path == ("engine", "args", list(args)[-1])
    assert cause in problem.cause
    assert fix in problem.fix
    assert problem.modes == ("baseline", "ngram")


def test_speculation_among_the_args_of_a_nim_is_refused_too(tmp_path: Path) -> None:
    problem = refused(tmp_path, {"speculative-config": "{}"}, software="nim", image="nvcr.io/nim/x:1")
    assert "`speculative` block" in problem.fix


def test_a_mode_that_differs_in_another_spelling_is_told_the_one_that_replaces(tmp_path: Path) -> None:
    problem = refused(tmp_path, {"max-model-len": 8192}, {"max_model_len": 4096})
    assert problem.path == ("modes", "ngram", "differs", "args", "max_model_len")
    assert "replaces what is spelled `max-model-len`" in problem.fix
    assert matrix(tmp_path, {"max-model-len": 8192}, {"max-model-len": 4096})
    assert matrix(tmp_path, {"enforce-eager": True}, {"enforce-eager": None, "no-enforce-eager": True})


def test_ordinary_flags_stay_as_they_are(tmp_path: Path) -> None:
    args = {
        "max-model-len": 8192,
        "no-enable-prefix-caching": True,
        "compilation-config.mode": 3,
        "hf-overrides": {"a": 1},
        "num_scheduler_steps": 1,
    }
    assert matrix(tmp_path, args).sessions["ngram"].server.args == args


def test_an_option_of_speculation_in_two_spellings_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "name: x\nengine: {software: llama_cpp, launcher: process, gpus: 0}\n"
        "checkpoints: {target: {bundled: smollm2-135m-q4_1}}\nmodes:\n  baseline: {}\n"
        "  m: {speculative: {method: ngram-simple, ngram-simple-size-n: 4, ngram_simple_size_n: 6}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        resolve(load_config([path]), kinds=["chat"], known=["chat"])
    (problem,) = caught.value.problems
    assert problem.cause == "`ngram-simple-size-n` and `ngram_simple_size_n` are one option"
    assert problem.path[-1] == "ngram_simple_size_n"
