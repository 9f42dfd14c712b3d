"""Checkpoints: one source each, paths with a digest of their bytes, the bundled model pinned (M11)."""

import json
import struct

import pytest

from specdec_lab import checkpoints
from specdec_lab.records.errors import UserError
from specdec_lab.records.spec import CheckpointSpec


def safetensors(content: bytes) -> bytes:
    """A file of weights with one tensor."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [len(content)], "data_offsets": [0, len(content)]}}).encode()
    return struct.pack("<Q", len(header)) + header + content


@pytest.mark.parametrize("given", [{}, {"path": "x", "hub": "a/b"}])
def test_a_checkpoint_names_exactly_one_source(given):
    with pytest.raises(UserError, match="one source"):
        checkpoints.locate(CheckpointSpec(**given))


def test_the_digest_of_a_path_is_that_of_its_bytes_not_of_its_place(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("a", "b"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "w.safetensors").write_bytes(safetensors(b"weights"))
    first, second = (checkpoints.locate(CheckpointSpec(path=str(tmp_path / name))) for name in ("a", "b"))
    assert first.digest == second.digest
    (tmp_path / "b" / "sub" / "w.safetensors").write_bytes(safetensors(b"WEIGHTS"))
    assert checkpoints.locate(CheckpointSpec(path=str(tmp_path / "b"))).digest != first.digest


def test_a_path_that_is_not_there_says_so(tmp_path):
    with pytest.raises(UserError, match="no such checkpoint") as error:
        checkpoints.locate(CheckpointSpec(path=str(tmp_path / "none.gguf")))
    assert error.value.code == "not_fetched"


def test_an_unknown_bundled_model_is_refused_with_the_list():
    with pytest.raises(UserError, match="no bundled model"):
        checkpoints.locate(CheckpointSpec(bundled="llama"))


def test_c6_a_damaged_bundled_model_is_not_taken_for_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"half a download")
    with pytest.raises(UserError) as error:
        checkpoints.locate(CheckpointSpec(bundled="smollm2-135m-q4_1"))
    assert error.value.code == "not_fetched"


def test_c6_an_unwritable_cache_is_a_clear_message(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot be written") as error:
        checkpoints.fetch(CheckpointSpec(bundled="smollm2-135m-q4_1"))
    assert "SPECDEC_CACHE_DIR" in error.value.fix


@pytest.mark.parametrize("revision", ["main", "abc123"])
def test_m11_a_hub_checkpoint_must_be_pinned_to_a_commit(revision):
    with pytest.raises(UserError, match="not pinned"):
        checkpoints.locate(CheckpointSpec(hub="owner/name", revision=revision))
