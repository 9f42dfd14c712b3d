"""`workload.body` takes further fields of a request, none that the lab sets or that changes what is counted (D5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdec_lab.client.request import Endpoint
from specdec_lab.client.request import body as request_body
from specdec_lab.config.load import load_config
from specdec_lab.config.problems import ConfigError
from specdec_lab.config.resolve import Matrix, resolve
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import Sampling

CONFIG = """name: x
engine: {software: SOFTWARE, launcher: attach, base_url: http://127.0.0.1:9, served_model: m, gpus: 0}
modes: {baseline: {}}
workload: {body: BODY}
"""


def matrix(folder: Path, body: dict[str, object], software: str = "vllm") -> Matrix:
    path = folder / "c.yaml"
    path.write_text(CONFIG.replace("BODY", json.dumps(body)).replace("SOFTWARE", software), encoding="utf-8")
    return resolve(load_config([path]), kinds=["chat"], known=["chat"])


def fix(folder: Path, body: dict[str, object], software: str = "vllm") -> str:
    with pytest.raises(ConfigError) as caught:
        matrix(folder, body, software)
    (problem,) = caught.value.problems
    assert problem.path == ("workload", "body", *body)
    return problem.fix


@pytest.mark.parametrize(
    ("name", "belongs"),
    [
        ("temperature", "workload.temperature"),
        ("model", "engine.served_model"),
        ("messages", "workload.prompts"),
        ("prompt", "workload.prompts"),
        ("stream", "always streams"),
        ("seed", "sends one"),
        ("max_tokens", "workload.max_tokens"),
        ("max_completion_tokens", "workload.max_tokens"),
        ("max_new_tokens", "workload.max_tokens"),
        ("n_predict", "workload.max_tokens"),
        ("ignore_eos", "workload.ignore_eos"),
        ("min_tokens", "workload.ignore_eos"),
        ("n", "one answer"),
        ("best_of", "one answer"),
        ("use_beam_search", "one answer"),
        ("echo", "Leave it out"),
        ("cache_prompt", "engine.args"),
        ("speculative.n_max", "`speculative` block"),
        ("extra_body", "themselves"),
    ],
)
def test_what_the_lab_sets_or_counts_is_refused_with_its_own_place(tmp_path: Path, name: str, belongs: str) -> None:
    assert belongs in fix(tmp_path, {name: 2})


def test_every_field_that_the_client_writes_is_refused_or_its_own_options_are(tmp_path: Path) -> None:
    prompt = Prompt(id="1", kind="k", messages=[Message(role="user", content="x")], max_tokens=5)
    sent = request_body(Endpoint("http://x", "m"), prompt, sampling=Sampling(), ignore_eos=True)
    for name in sent:
        if name != "top_p":
            assert fix(tmp_path, {name: sent[name]})


def test_top_p_and_other_fields_of_a_request_are_the_users(tmp_path: Path) -> None:
    body = {
        "top_p": 0.5,
        "top_k": 3,
        "stop": ["x"],
        "logprobs": True,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert matrix(tmp_path, body).sessions["baseline"].sampling.extra == body


def test_the_counts_of_a_stream_stay_on(tmp_path: Path) -> None:
    assert "include_usage" in fix(tmp_path, {"stream_options": {"include_usage": False}})
    assert "include_usage" in fix(tmp_path, {"stream_options": None})
    running = {"stream_options": {"continuous_usage_stats": True}}
    assert matrix(tmp_path, running).sessions["baseline"].sampling.extra == running


@pytest.mark.parametrize(
    ("software", "name"),
    [("vllm", "return_token_ids"), ("sglang", "return_token_ids"), ("llama_cpp", "timings_per_token")],
)
def test_what_an_engine_is_asked_for_to_count_tokens_stays_on(tmp_path: Path, software: str, name: str) -> None:
    assert fix(tmp_path, {name: False}, software) == "Leave it out."
