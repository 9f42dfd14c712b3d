"""Packing for a machine without network: what is taken from the lock file, and the checkpoints that are made there."""

import importlib.util
import json
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from specdec_lab import prompts

OFFLINE = Path(__file__).resolve().parents[2] / "containers" / "offline"


@pytest.fixture(autouse=True)
def _beside_each_other(monkeypatch):
    """A script finds what lies in its own folder."""
    monkeypatch.syspath_prepend(OFFLINE)


def tool(name: str):
    spec = importlib.util.spec_from_file_location(f"offline_{name}", OFFLINE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lock_file_is_read_for_the_other_python_and_without_the_tools_of_this_one():
    lock = (OFFLINE.parents[1] / "requirements.lock").read_text(encoding="utf-8")
    wanted = dict(line.split(" ", 1)[0].split("==") for line in tool("pack").locked(lock))
    assert wanted["numpy"].startswith("2.5"), "the numpy of Python 3.12, not that of 3.11"
    assert {"snakemake", "pydantic", "httpx", "uvloop", "scipy", "nvidia-ml-py"} <= set(wanted)
    assert not {"xllamacpp", "mypy", "pywin32", "colorama"} & set(wanted)
    assert all("--hash=sha256:" in line for line in tool("pack").locked(lock))


def test_a_package_without_a_wheel_is_named_so_that_it_is_built():
    said = (
        "ERROR: Could not find a version that satisfies the requirement connection-pool==0.0.3 (from versions: 0.0.1)"
    )
    assert tool("pack").without_wheel(said) == "connection-pool"
    assert tool("pack").without_wheel("ERROR: no route to host") == ""


@pytest.mark.parametrize("release", ["0.33.0", "0.24.0"])
def test_every_release_has_its_pins(release):
    pins = (OFFLINE / f"vllm-{release}.txt").read_text(encoding="utf-8").split()
    assert release in tool("pack").RELEASES
    assert all("==" in pin for pin in pins)


@pytest.fixture
def target(tmp_path):
    """A Llama of four layers and eight numbers, as the bundled model's folder looks."""
    folder = tmp_path / "target"
    folder.mkdir()
    config = {"num_hidden_layers": 30, "hidden_size": 8, "intermediate_size": 16, "num_attention_heads": 2,
              "num_key_value_heads": 1, "vocab_size": 9000, "architectures": ["LlamaForCausalLM"]}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (folder / name).write_text("{}")
    tensors = {f"model.layers.{n}.input_layernorm.weight": ("BF16", [1], struct.pack("<H", n)) for n in range(30)}
    tool("shapes").write_safetensors(
        folder / "model.safetensors", {"model.norm.weight": ("BF16", [1], b"\x07\x00"), **tensors}
    )
    return folder


def test_a_draft_leaves_out_middle_layers_and_numbers_the_others_anew(target, tmp_path):
    shapes = tool("shapes")
    made = tmp_path / "draft"
    made.mkdir()
    shapes.draft(target, made)
    kept = shapes.tensors_of(*shapes.read_safetensors(made / "model.safetensors"))
    assert shapes.config_of(made)["num_hidden_layers"] == 27
    numbers = [struct.unpack("<H", kept[f"model.layers.{n}.input_layernorm.weight"][2])[0] for n in range(27)]
    assert numbers == [n for n in range(30) if n not in (12, 16, 20)]
    assert kept["model.norm.weight"][2] == b"\x07\x00"
    assert (made / "tokenizer.json").exists()


def test_a_random_head_fits_its_target(target, tmp_path):
    shapes = tool("shapes")
    made = tmp_path / "head"
    made.mkdir()
    shapes.head(target, made)
    tensors = shapes.tensors_of(*shapes.read_safetensors(made / "model.safetensors"))
    config = shapes.config_of(made)
    assert config["architectures"] == ["LlamaForCausalLMEagle3"]
    assert tensors["fc.weight"][1] == [8, 24]
    assert tensors["t2d"][2].count(1) == config["draft_vocab_size"] == len(tensors["d2t"][2]) // 8
    for dtype, shape, raw in tensors.values():
        count = 1
        for n in shape:
            count *= n
        assert len(raw) == count * {"BF16": 2, "I64": 8, "BOOL": 1}[dtype]


def test_training_needs_neither_the_lab_nor_another_package_to_say_what_it_lacks():
    done = subprocess.run([sys.executable, "-S", OFFLINE / "train.py"], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "train.py needs torch, safetensors and transformers; here is no torch.\n"


def test_template_prompts_are_filled_in_and_follow_the_seed():
    from training.templates import template_prompt

    prompts, again = ([template_prompt(drawn) for _ in range(300)] for drawn in (Random(0), Random(0)))
    assert prompts == again
    assert len(set(prompts)) == 300
    assert not [one for one in prompts if "{" in one]


def test_the_prompts_are_as_many_of_each_kind_as_asked_and_have_their_own_ids(tmp_path, capsys):
    tool("prompts").main(tmp_path / "p.jsonl", 64)
    rows = prompts.load(tmp_path / "p.jsonl")
    assert {kind: sum(row.kind == kind for row in rows) for kind in ("code", "chat", "json")} == {
        "code": 64,
        "chat": 64,
        "json": 64,
    }
    assert len({row.id for row in rows}) == 192
    assert "192 prompts" in capsys.readouterr().out


def test_unpacked_programs_start_in_their_own_environment(tmp_path, monkeypatch):
    unpack = tool("unpack")
    folder = tmp_path / "env" / "vllm-0.33.0"
    packages = folder / "lib" / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (packages / "libncclstub.so").write_bytes(b"")
    unpack.programs(folder, packages, "vllm-0.33.0")
    program = (folder / "bin" / "vllm").read_text()
    assert program.startswith(f"#!{folder}/bin/python3\n")
    assert "vllm.entrypoints.cli.main" in program
    path = (packages / "zz_this_machine.pth").read_text().splitlines()
    assert path[0].startswith("import ctypes")
    assert "libncclstub.so" in path[0]
    assert all(Path(line).is_absolute() for line in path[1:])


def test_pieces_are_read_as_one(tmp_path):
    for number, piece in enumerate([b"abc", b"", b"defg"]):
        (tmp_path / f"x.part{number:02d}").write_bytes(piece)
    joined = tool("unpack").Joined(sorted(tmp_path.glob("x.part*")))
    assert joined.read() == b"abcdefg"
