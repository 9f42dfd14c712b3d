"""A GGUF with four-bit weights, stored again with eight bits (Q8_0).

The values stay the same up to eight-bit rounding. llama.cpp checks several tokens in one pass with a matrix kernel for
Q8_0 but, on a CPU, token by token for Q4_1: there speculation could save nothing however much was accepted.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .derived import Recipe

_FILE_TYPE_Q8_0 = 7
"""llama.cpp's number for a file that is mostly Q8_0."""


def _write(source: Path, folder: Path) -> None:
    from gguf import GGUFReader, GGUFWriter

    reader = GGUFReader(source)
    writer = GGUFWriter(folder / "model.gguf", reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        _copy_field(writer, field)
    for tensor in reader.tensors:
        weights, kind = _weights(tensor)
        writer.add_tensor(tensor.name, weights, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _copy_field(writer: Any, field: Any) -> None:
    from gguf import GGUFValueType

    if field.name.startswith("GGUF.") or field.name == "general.architecture":
        return
    value = _FILE_TYPE_Q8_0 if field.name == "general.file_type" else field.contents()
    if field.types[0] == GGUFValueType.ARRAY:
        writer.add_key_value(field.name, value, GGUFValueType.ARRAY, sub_type=field.types[-1])
    else:
        writer.add_key_value(field.name, value, field.types[0])


def _weights(tensor: Any) -> tuple[Any, Any]:
    """Rows of blocks and their kind: Q4_1 becomes Q8_0, everything else stays as it is."""
    from gguf import GGMLQuantizationType, dequantize, quantize

    if tensor.tensor_type != GGMLQuantizationType.Q4_1:
        return tensor.data, tensor.tensor_type
    values = dequantize(tensor.data, tensor.tensor_type).astype("float32")
    return quantize(values, GGMLQuantizationType.Q8_0), GGMLQuantizationType.Q8_0


RECIPE = Recipe(
    suffix="q8_0", words="stored with eight bits", version=1, key="eight_bit_recipe", main="model.gguf", write=_write
)
