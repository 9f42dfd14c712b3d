"""What the config alone can tell is refused before any job, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_lab.dag import Lab
from specdec_lab.records.errors import UserError

CONFIG = """name: mine
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints: {target: {bundled: smollm2-135m-q8_0}}
modes: {baseline: {}, ngram: {speculative: {method: ngram-simple}}}
"""


def load(folder: Path, more: str = "") -> Lab:
    path = folder / "mine.yaml"
    path.write_text(CONFIG + more, encoding="utf-8")
    return Lab.load([path], root=folder)


def test_fields_that_the_client_sets_are_refused_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, "workload: {body: {stream: false, max_tokens: 5, model: x, top_k: 1}}\n")
    told = str(refused.value)
    assert all(f"workload.body.{name}" in told for name in ("stream", "max_tokens", "model"))
    assert "top_k" not in told
    assert "mine.yaml:5" in told


def test_a_bundled_model_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(CONFIG.replace("smollm2-135m-q8_0", "smollm2-360m"), encoding="utf-8")
    with pytest.raises(UserError, match=r"no bundled model `smollm2-360m`") as refused:
        Lab.load([path], root=tmp_path)
    assert "smollm2-135m-q4_1" in str(refused.value)
    assert "checkpoints.target.bundled" in str(refused.value)


def test_a_file_in_the_place_of_the_results_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match=r"A file stands where"):
        load(tmp_path)
