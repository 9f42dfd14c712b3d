"""What cannot name an image is refused where the config is checked, with the right form (E5)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdec_lab.config import image
from specdec_lab.config.load import load_config
from specdec_lab.config.problems import ConfigError

DIGEST = "sha256:" + "0a" * 32


@pytest.mark.parametrize(
    "reference",
    [
        "vllm",
        "vllm/vllm-openai:v0.33.0",
        f"vllm/vllm-openai@{DIGEST}",
        f"vllm/vllm-openai:v0.33.0@{DIGEST}",
        DIGEST,
        "localhost:5000/a/b:1",
        "registry:5000/a:1",
        "127.0.0.1:5000/a:1",
        "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.2.0",
        "Registry.Example.com/team/a__b-c.d:V1_x",
        "lmsysorg/sglang:v0.5.23",
    ],
)
def test_what_names_an_image(reference: str) -> None:
    assert image.fault(reference) is None


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("https://hub.docker.com/r/vllm/vllm-openai", "an address of the web"),
        ("docker://vllm/vllm-openai:v1", "an address of the web"),
        ("VLLM/vllm-openai:v0.33.0", "`VLLM/vllm-openai` has capital letters"),
        ("vllm/vLLM", "capital letters"),
        ("vllm/vllm-openai:", "no tag after the colon"),
        ("vllm/vllm-openai:v1:2", "no name of an image"),
        ("vllm/vllm-openai:-x", "`-x` is no tag"),
        ("vllm/vllm-openai@sha256:ABC", "`sha256:ABC` is no digest"),
        (f"vllm/vllm-openai@{DIGEST.upper()}", "is no digest"),
        (f"vllm/vllm-openai@{DIGEST}0", "is no digest"),
        ("vllm/vllm-openai@", "is no digest"),
        ("vllm vllm:1", "blank"),
        (" vllm:1", "blank"),
        ("", "empty"),
        ("/vllm:1", "no name of an image"),
        ("vllm//x:1", "no name of an image"),
        ("vllm/-x:1", "no name of an image"),
    ],
)
def test_what_cannot_name_an_image_is_refused_in_the_config(tmp_path: Path, reference: str, told: str) -> None:
    config = {
        "name": "x",
        "engine": {"software": "vllm", "image": reference},
        "checkpoints": {"target": {"hub": "a/b"}},
        "modes": {"baseline": {}},
    }
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    (problem,) = caught.value.problems
    assert problem.path == ("engine", "image")
    assert told in problem.cause
    assert "lower case" in problem.fix
    assert "64 digits" in problem.fix
