"""A checkpoint whose files are not what a server needs is refused before anything starts, with the file (C6, M18)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from specdec_lab import checkpoints
from specdec_lab.preflight import path_fault
from specdec_lab.records.errors import UserError
from specdec_lab.records.spec import CheckpointSpec

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 16060556376\n"
SHARDS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = json.dumps({"weight_map": dict(zip("ab", SHARDS, strict=True))}).encode()
BIN_INDEX = INDEX.replace(b"model-", b"pytorch_model-").replace(b"safetensors", b"bin")


def safetensors(length: int = 8, *, missing: int = 0) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [length], "data_offsets": [0, length]}}).encode()
    return struct.pack("<Q", len(header)) + header + b"w" * (length - missing)


def folder(at: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(content)
    at.mkdir(exist_ok=True)
    return at


CONFIG = {"config.json": b"{}"}
WHOLE: dict[str, dict[str, bytes]] = {
    "one file": {**CONFIG, "model.safetensors": safetensors()},
    "a note about the weights": {**CONFIG, "model.safetensors": safetensors(), "README.md": b"<br> see the site"},
    "shards": {**CONFIG, "model.safetensors.index.json": INDEX, **dict.fromkeys(SHARDS, safetensors())},
    "pytorch": {**CONFIG, "pytorch_model.bin": b"PK"},
    "the index of a format that was left out": {
        **CONFIG,
        "model.safetensors": safetensors(),
        "pytorch_model.bin.index.json": BIN_INDEX,
    },
    "a folder in it": {**CONFIG, "sub/model.safetensors": safetensors()},
    "others of which only a pointer is here": {
        **CONFIG,
        "model.safetensors": safetensors(),
        "pytorch_model.bin": POINTER,
        "picture.png": POINTER,
        "original/consolidated.00.pth": POINTER,
    },
    "one that no index names": {
        **CONFIG,
        "model.safetensors.index.json": INDEX,
        **dict.fromkeys(SHARDS, safetensors()),
        "consolidated.safetensors": POINTER,
    },
    "a page for people": {**CONFIG, "model.safetensors": safetensors(), "index.html": b"<!DOCTYPE html>"},
    "gguf": {"model.gguf": b"GGUF"},
    "gguf in parts": {f"m-0000{n}-of-00002.gguf": b"GGUF" for n in (1, 2)},
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_whole_is_taken(tmp_path: Path, name: str) -> None:
    path = folder(tmp_path / "model", WHOLE[name])
    assert path_fault(CheckpointSpec(path=str(path))) is None
    assert checkpoints.locate(CheckpointSpec(path=str(path))).size_bytes > 0


BROKEN: dict[str, tuple[dict[str, bytes], str, str]] = {
    "nothing": ({}, "there are no weights in", "files of weights too"),
    "a configuration alone": (CONFIG, "only config.json", "files of weights too"),
    "weights of a hidden folder": ({**CONFIG, ".cache/model.safetensors": safetensors()}, "no weights", "weights too"),
    "pointer": ({**CONFIG, "model.safetensors": POINTER}, "model.safetensors is a pointer of Git LFS", "git lfs pull"),
    "a pointer beside weights": (
        {"tokenizer.json": POINTER, "model.safetensors": safetensors()},
        "tokenizer.json is a pointer of Git LFS",
        "git lfs pull",
    ),
    "one of two shards": (
        {**CONFIG, "model.safetensors.index.json": INDEX, SHARDS[0]: safetensors()},
        f"{SHARDS[1]} of 2 files of weights is missing",
        "fetch what is missing",
    ),
    "one of two files for PyTorch": (
        {**CONFIG, "pytorch_model.bin.index.json": BIN_INDEX, "pytorch_model-00001-of-00002.bin": b"PK"},
        "pytorch_model-00002-of-00002.bin of 2 files",
        "fetch what is missing",
    ),
    "an index that is cut": (
        {"model.safetensors.index.json": INDEX[:20], "model.safetensors": safetensors()},
        "model.safetensors.index.json cannot be read",
        "anew",
    ),
    "a copy that broke off": (
        {**CONFIG, "model.safetensors": safetensors(missing=3)},
        f"cut short: {len(safetensors()) - 3} bytes of {len(safetensors())}",
        "anew",
    ),
    "a copy that broke off in its header": ({"model.safetensors": safetensors()[:20]}, "its beginning only", "anew"),
    "a web page": ({"model.safetensors": b"<!DOCTYPE html><html>"}, "is a web page", "login"),
    "a web page for the tokenizer": (
        {"tokenizer.json": b"<html>", "model.safetensors": safetensors()},
        "tokenizer.json is a web page",
        "anew",
    ),
    "an empty file": ({"model.gguf": b""}, "model.gguf is empty", "anew"),
    "one of two parts": ({"m-00001-of-00002.gguf": b"GGUF"}, "m-00002-of-00002.gguf is missing", "all parts"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_whole_is_refused_before_a_start(tmp_path: Path, name: str) -> None:
    files, cause, fix = BROKEN[name]
    spec = CheckpointSpec(path=str(folder(tmp_path / "model", files)))
    told = path_fault(spec)
    assert told is not None
    assert cause in told[0]
    assert fix in told[1]
    with pytest.raises(UserError) as caught:
        checkpoints.locate(spec)
    assert caught.value.cause == told[0]


def test_a_link_to_nowhere_is_told_with_where_it_leads(tmp_path: Path) -> None:
    path = folder(tmp_path / "model", {**CONFIG, "other.safetensors": safetensors()})
    (path / "model.safetensors").symlink_to("/nonexistent/blob")
    told = path_fault(CheckpointSpec(path=str(path)))
    assert told is not None
    assert "model.safetensors is a link to /nonexistent/blob" in told[0]


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html>", "is a web page"),
        (b"\n<html lang=en>", "is a web page"),
        (POINTER, "a pointer of Git LFS"),
        (b"PK\x03\x04", "is no GGUF file"),
    ],
)
def test_a_file_that_is_not_what_its_name_says(tmp_path: Path, content: bytes, cause: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    told = path_fault(CheckpointSpec(path=str(path)))
    assert told is not None
    assert cause in told[0]


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder(tmp_path / "model", WHOLE["one file"])
    opened: Callable[..., object] = Path.open

    def refuse(self: Path, *args: str) -> object:
        if self.name == "model.safetensors":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *args)

    monkeypatch.setattr(Path, "open", refuse)
    told = path_fault(CheckpointSpec(path=str(path)))
    assert told is not None
    assert "model.safetensors cannot be read (Permission denied)" in told[0]
