"""From config files to a checked LabConfig: every fault at once, each with its place and its mend (E1, E2)."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ..nearest import closest
from . import models
from .checks import cross_checks
from .problems import ConfigError, Problem
from .strict_yaml import Document, KeyPath, load, overlay
from .wording import explain, is_field


@dataclass(frozen=True)
class LoadedConfig:
    """A valid config, and where each key stands."""

    config: models.LabConfig
    document: Document

    def refuse(self, problems: Sequence[Problem]) -> None:
        """Raise ConfigError if there are problems."""
        if problems:
            raise ConfigError(problems, self.document)


def load_config(files: Sequence[Path]) -> LoadedConfig:
    """Read one config, or several laid upon each other in order (later ones win); ConfigError names every fault."""
    document = load(files[0])
    for file in files[1:]:
        over = load(file)
        document = overlay(_without_its_kinds(document, over), over)
    problems: list[Problem] = []
    data = _known(models.LabConfig, document.data, (), problems)
    try:
        config = models.LabConfig.model_validate(data)
    except ValidationError as error:
        for one in error.errors():
            path = _real_path(one["loc"], data)
            problems.append(Problem(path, *explain(one, path, document.written.get(path))))
    problems.extend(_left_empty(document, data, {problem.path for problem in problems}))
    if problems:
        raise ConfigError(problems, document)
    loaded = LoadedConfig(config, document)
    loaded.refuse(list(cross_checks(config)))
    return loaded


def _left_empty(document: Document, data: Any, told: Container[KeyPath]) -> Iterator[Problem]:
    """Keys with nothing after their colon that would count as left out, in silence. A written `null` is meant so."""
    for path, written in document.written.items():
        if written or path in told or not is_field(path):
            continue
        value = data
        for part in path:
            value = value.get(part) if isinstance(value, dict) else ""
        if value is None:
            yield Problem(path, *explain({"type": "left_empty", "loc": path, "input": None}, path))


def _without_its_kinds(under: Document, over: Document) -> Document:
    """`under` without what it says of its prompts' kinds, where `over` brings prompts of its own: they have others."""
    ours, theirs = under.data.get("workload"), over.data.get("workload")
    if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
        return under
    if "prompts" not in theirs or theirs["prompts"] == ours.get("prompts"):
        return under
    kept = {key: value for key, value in ours.items() if key not in ("kinds", "max_tokens")}
    return Document({**under.data, "workload": kept}, under.places, under.written)


_BLOCKS: list[type[models.Block]] = [
    value
    for value in vars(models).values()
    if isinstance(value, type) and issubclass(value, models.Block) and value is not models.Block
]


def _known(expected: Any, data: Any, path: KeyPath, problems: list[Problem]) -> Any:
    """The data without keys that its block does not have; each is a problem. An empty block (`baseline:`) is `{}`.

    Done ahead of validation, so that a misspelt key does not hide the other faults of its block.
    """
    if isinstance(expected, type) and issubclass(expected, models.Block):
        if data is None:
            return {}
        if not isinstance(data, dict):
            return data
        valid = list(expected.model_fields)
        problems.extend(
            Problem((*path, key), f"there is no key `{key}` here", _nearest(key, valid))
            for key in data
            if key not in valid
        )
        return {
            key: _known(expected.model_fields[key].annotation, value, (*path, key), problems)
            for key, value in data.items()
            if key in valid
        }
    inner = [arg for arg in get_args(expected) if arg is not type(None)]
    if get_origin(expected) is dict and isinstance(data, dict):
        return {key: _known(inner[1], value, (*path, key), problems) for key, value in data.items()}
    if get_origin(expected) is list and isinstance(data, list):
        return [_known(inner[0], value, (*path, index), problems) for index, value in enumerate(data)]
    if get_origin(expected) in (Union, UnionType) and data is not None and len(inner) == 1:
        return _known(inner[0], data, path, problems)
    return data


def _real_path(location: Sequence[str | int], data: Any) -> KeyPath:
    """The part of pydantic's location that exists in the file (it also names union branches and `[key]`)."""
    path: list[str | int] = []
    for part in location:
        in_mapping = isinstance(data, dict) and part in data
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if in_mapping or in_list:
            data = data[part]
            path.append(part)
    return tuple(path)


def _nearest(key: str, valid: list[str]) -> str:
    close = closest(key, valid)
    if close:
        return f"Did you mean `{close}`?"
    homes = [block for block in _BLOCKS if key in block.model_fields]
    if homes:
        places = " or ".join(sorted({f"`{_home(block)}.{key}`".replace("`.", "`") for block in homes}))
        return f"It belongs to {places}."
    far = [(block, name) for block in _BLOCKS for name in block.model_fields]
    match = closest(key, [name for _, name in far], cutoff=0.75)
    if match:
        block = next(block for block, name in far if name == match)
        return f"Did you mean `{_home(block)}.{match}`? Valid here: {', '.join(valid)}."
    return f"Valid here: {', '.join(valid)}."


def _home(block: type[BaseModel]) -> str:
    """Where a block stands in a config, for messages."""
    return {
        models.LabConfig: "",
        models.CheckpointConfig: "checkpoints.<role>",
        models.ModeConfig: "modes.<mode>",
        models.DiffersConfig: "modes.<mode>.differs",
        models.ClaimConfig: "claims[]",
    }.get(block, re.sub("Config$", "", block.__name__).lower())
