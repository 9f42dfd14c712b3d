"""What is generated from the config's models: the JSON Schema and the reference page. A test keeps both in step.

`python -m specdec_lab.config.reference` writes them again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from ..records.base import strict_dumps, write_text_atomic
from . import models

SCHEMA = Path(__file__).with_name("schema.json")
PAGE = Path("docs/config.md")
"""Relative to the repository."""

_INTRO = """# Config reference

Made from the models in `workflow/specdec_lab/config/models.py` by `make generated`. Keys that are not listed are
refused, with the nearest valid one. How to think about a config, with examples: `config/README.md`.
"""


def schema() -> str:
    """The JSON Schema of a config file."""
    made = models.LabConfig.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "specdec-lab config"
    return strict_dumps(made)


def page() -> str:
    """The reference page, in Markdown."""
    parts = [_INTRO, *_section("Top level", models.LabConfig)]
    done: set[type[models.Block]] = {models.LabConfig}
    queue: list[tuple[str, Any]] = [(name, field.annotation) for name, field in models.LabConfig.model_fields.items()]
    while queue:
        name, annotation = queue.pop(0)
        for block, where in _blocks(annotation, name):
            if block in done:
                continue
            done.add(block)
            parts.extend(_section(f"`{where}`", block))
            queue.extend((f"{where}.{key}", field.annotation) for key, field in block.model_fields.items())
    return "\n".join(parts)


def _blocks(annotation: Any, where: str) -> list[tuple[type[models.Block], str]]:
    if isinstance(annotation, type) and issubclass(annotation, models.Block):
        return [(annotation, where)]
    suffix = {dict: ".<name>", list: "[]"}.get(get_origin(annotation), "")
    return [found for arg in get_args(annotation) for found in _blocks(arg, where + suffix)]


def _section(title: str, block: type[models.Block]) -> list[str]:
    lines = [
        f"## {title}",
        "",
        (block.__doc__ or "").strip().split("\n")[0],
        "",
        "| key | type | default | meaning |",
        "|---|---|---|---|",
    ]
    for key, field in block.model_fields.items():
        meaning = field.description or ""
        if field.examples:
            meaning += f" Example: `{_value(field.examples[0])}`."
        lines.append(
            f"| `{key}` | {_type(field.annotation)} | {_default(field)} | {meaning.replace('|', chr(92) + '|')} |"
        )
    return [*lines, ""]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if isinstance(field.default, models.Block):
        return "see below"
    return f"`{_value(field.default)}`"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _type(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in args)
    if origin in (Union, UnionType):
        return " or ".join(_type(arg) for arg in args if arg is not type(None)) + (
            " or null" if type(None) in args else ""
        )
    if origin is dict:
        return f"mapping to {_type(args[1])}"
    if origin is list:
        return f"list of {_type(args[0])}"
    if hasattr(annotation, "__metadata__"):
        return _type(args[0])
    if isinstance(annotation, type) and issubclass(annotation, models.Block):
        return "block"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(annotation, "any")


def main() -> None:
    """Write both files; run from the repository's root."""
    if not PAGE.parent.is_dir():
        sys.exit("Run this from the root of the repository.")
    write_text_atomic(SCHEMA, schema())
    write_text_atomic(PAGE, page())


if __name__ == "__main__":
    main()
