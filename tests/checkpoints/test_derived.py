"""Checkpoints made from another one: whole or not there, named by source and recipe, and with the source's values."""

from pathlib import Path

import pytest

from specdec_lab.checkpoints import derived, eight_bit
from specdec_lab.records.errors import UserError

np = pytest.importorskip("numpy")
gguf = pytest.importorskip("gguf")


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A GGUF with one four-bit matrix, one vector and a list among its metadata."""
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "tiny.Q4_1.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_file_type(3)
    writer.add_context_length(2048)
    writer.add_token_list(["a", "b\n", "Ġc"])
    values = np.random.default_rng(7).normal(size=(8, 64)).astype("float32")
    four = gguf.GGMLQuantizationType.Q4_1
    writer.add_tensor("blk.0.ffn_up.weight", gguf.quantize(values, four), raw_dtype=four)
    writer.add_tensor("output_norm.weight", np.linspace(0.5, 1.5, 64, dtype="float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_eight_bits_hold_the_values_of_four(source: Path) -> None:
    with pytest.raises(UserError) as refused:
        derived.locate(eight_bit.RECIPE, source, "d1")
    assert refused.value.code == "not_fetched"

    said: list[str] = []
    made = derived.make(eight_bit.RECIPE, source, "d1", say=said.append)
    assert (made.path.name, said) == ("model.gguf", ["tiny.Q4_1.gguf: being stored with eight bits"])
    assert made.size_bytes == made.path.stat().st_size

    before, after = gguf.GGUFReader(source), gguf.GGUFReader(made.path)
    kept = {"general.architecture": "llama", "llama.context_length": 2048, "tokenizer.ggml.tokens": ["a", "b\n", "Ġc"]}
    assert {name: after.fields[name].contents() for name in kept} == kept
    assert after.fields["general.file_type"].contents() == 7
    old, new = ({t.name: t for t in reader.tensors} for reader in (before, after))
    assert new["blk.0.ffn_up.weight"].tensor_type == gguf.GGMLQuantizationType.Q8_0
    four, eight = (
        gguf.dequantize(tensors["blk.0.ffn_up.weight"].data, tensors["blk.0.ffn_up.weight"].tensor_type)
        for tensors in (old, new)
    )
    assert np.abs(four - eight).max() <= np.abs(four).max() / 127 / 2 * 1.01
    assert np.array_equal(old["output_norm.weight"].data, new["output_norm.weight"].data)


def test_it_is_made_once_and_named_by_source_and_recipe(source: Path) -> None:
    said: list[str] = []
    first = derived.make(eight_bit.RECIPE, source, "d1", say=said.append)
    again = derived.make(eight_bit.RECIPE, source, "d1", say=said.append)
    assert again == first == derived.locate(eight_bit.RECIPE, source, "d1")
    assert len(said) == 1
    assert derived.make(eight_bit.RECIPE, source, "d2", say=said.append).digest != first.digest


def test_a_recipe_that_fails_leaves_nothing(source: Path, tmp_path: Path) -> None:
    source.write_bytes(source.read_bytes()[:200])
    with pytest.raises(Exception, match=r"."):
        derived.make(eight_bit.RECIPE, source, "d1", say=lambda _: None)
    assert list((tmp_path / "cache" / "models").iterdir()) == []
