"""Draft and target share every token's id; a head is made for its target (M12)."""

import json
import struct
from pathlib import Path

import pytest

from specdec_lab.checkpoints import Checkpoint
from specdec_lab.checkpoints.compatibility import require_compatible, tokens
from specdec_lab.records.errors import UserError


def model(folder: Path, vocab=None, config=None, shapes=None) -> Checkpoint:
    folder.mkdir()
    if vocab is not None:
        content = {"model": {"type": "BPE", "vocab": vocab}, "added_tokens": [{"id": 99, "content": "<end>"}]}
        (folder / "tokenizer.json").write_text(json.dumps(content))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
    if shapes is not None:
        header = json.dumps(
            {n: {"dtype": "BF16", "shape": s, "data_offsets": [0, 0]} for n, s in shapes.items()}
        ).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    return Checkpoint(path=folder, digest="d", size_bytes=1, origin=folder.name)


DRAFT = {"method": "draft_model", "model": "draft", "num_speculative_tokens": 3}
HEAD = {"method": "eagle3", "model": "draft", "num_speculative_tokens": 3}


def test_m12_equal_sizes_with_other_ids_are_refused_with_examples(tmp_path):
    found = {"target": model(tmp_path / "t", {"a": 0, "b": 1}), "draft": model(tmp_path / "d", {"a": 1, "b": 0})}
    with pytest.raises(UserError, match="2 tokens have another id") as error:
        require_compatible(DRAFT, found)
    assert error.value.code == "vocabulary_mismatch"
    assert "'a': 0 and 1" in error.value.cause


def test_m12_tokens_that_the_target_lacks_are_refused_and_fewer_are_fine(tmp_path):
    large = model(tmp_path / "large", {"a": 0, "b": 1, "c": 2})
    small = model(tmp_path / "small", {"a": 0, "b": 1})
    require_compatible(DRAFT, {"target": large, "draft": small})
    with pytest.raises(UserError, match="1 are unknown"):
        require_compatible(DRAFT, {"target": small, "draft": large})


def test_a_declared_heterogeneous_vocabulary_and_unknown_formats_are_let_through(tmp_path):
    found = {"target": model(tmp_path / "t", {"a": 0}), "draft": model(tmp_path / "d", {"a": 1})}
    require_compatible({**DRAFT, "use_heterogeneous_vocab": True}, found)
    require_compatible({"method": "ngram", "num_speculative_tokens": 3}, found)
    require_compatible(DRAFT, {"target": model(tmp_path / "x"), "draft": found["draft"]})


@pytest.mark.parametrize(
    ("config", "shapes", "text"),
    [
        ({"hidden_size": 2048, "vocab_size": 100}, {"fc.weight": [2048, 6144]}, "2048 numbers, the target's have 4096"),
        ({"hidden_size": 4096, "vocab_size": 90}, None, "vocabulary of 90"),
        (
            {
                "transformer_layer_config": {"hidden_size": 1024, "vocab_size": 100},
                "speculators_config": {"verifier": {"name_or_path": "org/other"}},
            },
            None,
            "made for org/other",
        ),
    ],
)
def test_m12_a_head_for_another_target_is_refused(tmp_path, config, shapes, text):
    target = model(tmp_path / "t", config={"hidden_size": 4096, "vocab_size": 100})
    head = model(tmp_path / "h", config=config, shapes=shapes)
    with pytest.raises(UserError) as error:
        require_compatible(HEAD, {"target": target, "draft": head})
    assert error.value.code == "wrong_head"
    assert text in str(error.value)


def test_a_head_smaller_inside_but_made_for_the_targets_states_fits(tmp_path):
    target = model(tmp_path / "t", config={"hidden_size": 4096, "vocab_size": 100})
    head = model(
        tmp_path / "h",
        config={"hidden_size": 1024, "vocab_size": 100, "draft_vocab_size": 50},
        shapes={"fc.weight": [1024, 12288]},
    )
    require_compatible(HEAD, {"target": target, "draft": head})


def fits(folder, hidden, config, shape) -> str:
    """What is said against a head with this `fc`; empty if nothing is."""
    target = model(folder / "t", config={"hidden_size": hidden, "vocab_size": 100})
    head = model(folder / "h", config={"vocab_size": 100, **config}, shapes={"fc.weight": shape})
    try:
        require_compatible(HEAD, {"target": target, "draft": head})
    except UserError as error:
        return str(error)
    return ""


EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"]}
FOUR = {"eagle_aux_hidden_state_layer_ids": [1, 9, 17, 25]}


@pytest.mark.parametrize("hidden", [1536, 3072, 4096])
@pytest.mark.parametrize(
    ("joined", "more"),
    [
        (2, {}),
        (2, {"architectures": ["EagleLlamaForCausalLM"]}),
        (2, {"speculators_model_type": "eagle"}),
        (3, {}),
        (3, EAGLE3),
        (3, {"architectures": ["Eagle3LlamaForCausalLM"]}),
        (3, {"speculators_model_type": "eagle3"}),
        (4, {}),
        (4, {**EAGLE3, **FOUR}),
        (4, {**EAGLE3, "eagle_config": FOUR}),
    ],
)
def test_heads_of_every_kind_fit_the_size_that_they_were_made_for(tmp_path, hidden, joined, more):
    assert fits(tmp_path, hidden, {"hidden_size": hidden, **more}, [hidden, joined * hidden]) == ""


@pytest.mark.parametrize(
    ("hidden", "config", "shape", "said"),
    [
        (2048, {"hidden_size": 4096}, [4096, 12288], "states of 4096 numbers, the target's have 2048"),
        (4096, {"hidden_size": 3072}, [3072, 9216], "states of 3072 numbers, the target's have 4096"),
        (4096, {"hidden_size": 3072}, [3072, 6144], "states of 3072 numbers, the target's have 4096"),
        (3072, {"hidden_size": 4096, **FOUR}, [4096, 16384], "states of 4096 numbers, the target's have 3072"),
        (4096, {"hidden_size": 2048, "speculators_model_type": "eagle"}, [2048, 4096], "states of 2048 numbers"),
        (4096, {"hidden_size": 1024, "target_hidden_size": 5120}, [1024, 15360], "states of 5120 numbers"),
        (4096, {"hidden_size": 1000}, [1000, 9000], "reads 9000 numbers at once"),
    ],
)
def test_heads_that_were_surely_made_for_another_size_are_refused(tmp_path, hidden, config, shape, said):
    assert said in fits(tmp_path, hidden, config, shape)


@pytest.mark.parametrize(
    ("hidden", "config", "shape"),
    [
        (3072, {"hidden_size": 4096}, [4096, 12288]),  # three layers of 4096, or four of 3072
        (2048, {"hidden_size": 1024}, [1024, 10240]),  # five layers, and the config does not say how many
        (4096, {"hidden_size": 1024, "target_hidden_size": 4096}, [1024, 12288]),
    ],
)
def test_a_shape_that_can_be_read_in_two_ways_is_let_through(tmp_path, hidden, config, shape):
    assert fits(tmp_path, hidden, config, shape) == ""


def test_tokens_of_lists_and_damaged_files(tmp_path):
    folder = model(tmp_path / "u").path
    (folder / "tokenizer.json").write_text(
        json.dumps({"model": {"type": "Unigram", "vocab": [["x", -1.0], ["y", -2.0]]}})
    )
    assert tokens(folder) == {"x": 0, "y": 1}
    (folder / "tokenizer.json").write_text("{")
    assert tokens(folder) == {}
