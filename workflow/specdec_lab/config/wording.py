"""What a value must be, in plain words and with the right form to copy, in place of pydantic's own sentences (E1)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from ..nearest import closest
from . import models, scalars
from .strict_yaml import KeyPath

BLOCK_EXAMPLES: dict[type[models.Block], str] = {
    models.EngineConfig: "{software: vllm, launcher: docker}",
    models.CheckpointConfig: "{hub: owner/name}",
    models.ModeConfig: "{speculative: {method: ngram, num_speculative_tokens: 5}}",
    models.DiffersConfig: "{why: one sentence, args: {async-scheduling: false}}",
    models.WorkloadConfig: "{requests: 32}",
    models.LoadConfig: "{concurrency: [1, 4, 16]}",
    models.ProtocolConfig: "{replicates: 2}",
    models.DecisionConfig: "{margin: 0.05}",
    models.CostConfig: "{per_hour: 2.5}",
    models.ClaimConfig: "{mode: ngram, speedup: 2.0, source: who says so}",
}
"""One right form of each block, to be copied after its key."""
_PLAIN = re.compile(r"(?!- )[A-Za-z_./-][\w ./=-]*\Z")
"""Text that needs no quotes in YAML, however it is nested."""
_LIMITS = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def flow(value: Any) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, str) and _PLAIN.match(value) and value.lower() not in ("true", "false", "null", "yes", "no"):
        return value
    return json.dumps(value, ensure_ascii=False)


def explain(error: Mapping[str, Any], path: KeyPath, written: str | None = None) -> tuple[str, str]:
    """Cause and fix of one of pydantic's errors at this key path, where `written` stands in the file."""
    kind, given, context = error["type"], error.get("input"), error.get("ctx") or {}
    if kind == "missing":
        key = str(error["loc"][-1])
        return f"`{key}` is missing", f"Add `{key}:`. {_description((*path, key))}".strip()
    if kind == "one_source":
        one = BLOCK_EXAMPLES[models.CheckpointConfig]
        return error["msg"], f"Keep one of them, or write for example `{_key(path)}: {one}`."
    if kind == "string_pattern_mismatch":
        return (
            f"{given!r} cannot be used as a name",
            "Use letters, digits, dot, dash and underscore; it becomes part of a path.",
        )
    key = _key(path)
    if given is None:
        field = _field(path)
        leave = "" if field is not None and field.is_required() else f", or leave `{key}` out"
        return "there is no value here", f"Write one{leave}. {_description(path)}".strip()
    if kind in _LIMITS:
        name, words = _LIMITS[kind]
        return (
            f"must be {words} {context[name]:g}, not {flow(given)}",
            f"Write a number that is {words} {context[name]:g}.",
        )
    match kind:
        case "list_type":
            return f"must be a list, not {flow(given)}", _list(key, path, given)
        case "dict_type":
            return (
                f"must be a mapping of names to values, not {flow(given)}",
                _mapping(key, path, given),
            )
        case "model_type" | "model_attributes_type":
            return f"must be a block of keys, not {flow(given)}", _block(path, key)
        case "int_type" | "int_parsing" | "int_from_float":
            return f"must be a whole number, not {_told(given)}", _number(given, whole=True)
        case "float_type" | "float_parsing":
            return f"must be a number, not {_told(given)}", _number(given, whole=False)
        case "bool_type" | "bool_parsing":
            return f"must be true or false, not {_told(given)}", f"Write `{key}: true` or `{key}: false`."
        case "string_type" if isinstance(given, list | dict):
            return f"must be text, not {flow(given)}", f"Write one text: `{key}: ...`. {_description(path)}".strip()
        case "string_type":
            stands = flow(given) if written is None else written
            return f"{stands} is not text for YAML", f'Quote it: "{stands}".'
        case "string_too_short":
            return "the text is empty", f"Write it. {_description(path)}".strip()
        case "string_too_long":
            return f"the text is longer than {context['max_length']} characters", "Write a shorter one."
        case "literal_error":
            close = closest(str(given), re.findall(r"'([^']*)'", context["expected"]))
            return (
                f"{given!r} is none of {context['expected']}",
                f"Did you mean `{close}`?" if close else "Choose one of these.",
            )
    return f"{error['msg']} (given: {flow(given)})", f"See `{key}` in docs/config.md. {_description(path)}".strip()


def is_field(path: KeyPath) -> bool:
    """Whether this path names a key of the models: not a name or an option that the user made."""
    return _field(path) is not None


def _told(value: Any) -> str:
    """Text is shown in quotes, so that "5" can be told from 5."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else flow(value)


def _key(path: KeyPath) -> str:
    return next((str(part) for part in reversed(path) if isinstance(part, str)), "config")


def _number(given: Any, *, whole: bool) -> str:
    kind = "whole number" if whole else "number"
    try:
        value = float(given)
    except (TypeError, ValueError):
        return f"Write a {kind}."
    if isinstance(given, bool) or not math.isfinite(value):
        return f"Write a {kind}."
    if whole and not value.is_integer():
        return f"Write a whole number, such as {math.ceil(value)}."
    return f"Write {int(value) if value.is_integer() else value}{', without quotes' if isinstance(given, str) else ''}."


def _list(key: str, path: KeyPath, given: Any) -> str:
    """What was given as a list, where that can be meant; else the field's example."""
    example = _example(path)
    of_mappings = isinstance(example, list) and isinstance(example[0], Mapping)
    if isinstance(given, Mapping) and not of_mappings:
        return f"Write for example `{key}: {flow(example or ['...'])}`."
    items: list[Any]
    items = re.split(r"[,\s]+", given.strip()) if isinstance(given, str) and isinstance(example, list) else [given]
    if isinstance(example, list) and isinstance(example[0], int | float):
        numbers = [_plain_number(item) for item in items]
        if None in numbers:
            whole = "whole numbers" if isinstance(example[0], int) else "numbers"
            return f"Write a list of {whole}, such as `{key}: {flow(example)}`."
        items = numbers
    return f"Write `{key}: {flow(items)}`."


def _plain_number(item: Any) -> int | float | None:
    if not isinstance(item, str):
        return item if isinstance(item, int | float) and not isinstance(item, bool) else None
    try:
        return scalars.number(item)
    except ValueError:
        return None


def _mapping(key: str, path: KeyPath, given: Any) -> str:
    """The field's example, with what was given in it where that can be meant."""
    example = _example(path)
    if not isinstance(example, Mapping):
        return f"Write `{key}: {{name: value}}`."
    values = list(example.values())
    if isinstance(given, int | float) and all(isinstance(value, int | float) for value in values):
        return f"Write `{key}: {flow(dict.fromkeys(example, given))}`."
    if isinstance(given, list) and all(isinstance(value, list) for value in values):
        return f"Write `{key}: {flow({next(iter(example)): given})}`."
    return f"Write for example `{key}: {flow(example)}`."


def _block(path: KeyPath, key: str) -> str:
    block = _walk(path)
    if not (isinstance(block, type) and issubclass(block, models.Block)):
        return f"See `{key}` in docs/config.md."
    dash = "- " if path and isinstance(path[-1], int) else f"{key}: "
    return f"Write for example `{dash}{BLOCK_EXAMPLES[block]}`; its keys are {', '.join(block.model_fields)}."


def _example(path: KeyPath) -> Any:
    field = _field(path)
    return field.examples[0] if field is not None and field.examples else None


def _description(path: KeyPath) -> str:
    field = _field(path)
    return (field.description or "") if field is not None else ""


def _field(path: KeyPath) -> FieldInfo | None:
    """The field that this path names, if it ends at one."""
    block = _walk(path[:-1])
    key = path[-1] if path else None
    if isinstance(block, type) and issubclass(block, models.Block) and isinstance(key, str):
        return block.model_fields.get(key)
    return None


def _walk(path: KeyPath) -> Any:
    """The type at a key path; None where the models know none."""
    at: Any = models.LabConfig
    for part in path:
        if isinstance(at, type) and issubclass(at, models.Block):
            field = at.model_fields.get(str(part))
            at = field.annotation if field is not None else None
        else:
            at = get_args(at)[-1] if get_origin(at) in (dict, list) else None
        if get_origin(at) in (Union, UnionType):
            at = next((arg for arg in get_args(at) if arg is not type(None)), None)
    return at
