"""YAML 1.2 read strictly, with the place of every key and value (cases E1, E2).

Snakemake reads the same file with a YAML 1.1 loader that takes `no` for False, keeps the last of two equal keys and
leaves `1e-3` a string. This loader is the one whose result is used: numbers are numbers, equal keys are an error that
names both places, and words that another reader would turn into a boolean must be quoted where they serve as a name.
What a value is follows from how it is written; tags (`!!str`) are refused.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from ..records.errors import UserError
from . import scalars

KeyPath = tuple[str | int, ...]

# Words that YAML 1.1 readers (Snakemake's among them) take for a boolean or null.
_TRAPS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"])
# As values they are what every YAML 1.1 reader makes of them, so that `off` never reaches a server as text.
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}

DEEPEST = 50
"""Levels of a config; the lab's own have six. Reading is recursive, and aliases nest without looking nested."""
MOST_VALUES = 100_000
"""Values with all aliases written out: a few lines of aliases can stand for billions."""
LARGEST = 2**20
"""Bytes of a config file."""


@dataclass(frozen=True)
class Place:
    """Where something stands: the file, and line and column counted from 1."""

    file: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass
class Document:
    """Plain data and the place of each of its keys and values, by key path."""

    data: dict[str, Any]
    places: dict[KeyPath, Place] = field(default_factory=dict)
    written: dict[KeyPath, str] = field(default_factory=dict)
    """Scalars as they stand in the file: `0.30` and `1e3` are other texts than the numbers that they are."""

    def place(self, path: KeyPath) -> Place | None:
        """The place of the key path, or of the nearest enclosing one that has a place."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return None


def key_path(path: KeyPath) -> str:
    """A key path as people write it: modes.ngram.speculative, load.concurrency[0]."""
    out = ""
    for part in path:
        out += f"[{part}]" if isinstance(part, int) else (f".{part}" if out else str(part))
    return out


def load(file: Path) -> Document:
    """Read one YAML file; UserError with file and line for whatever is wrong with it."""
    try:
        _require_readable(file)
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(
            f"The config file {file} does not exist.",
            place=str(file),
            fix="Name a file with --configfile.",
            code="config",
        ) from None
    except OSError as error:
        raise UserError(
            f"The config cannot be read: {error.strerror}.",
            place=str(file),
            fix="Give this user the right to read it.",
            code="config",
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(
            f"The config is not UTF-8 text: {error.reason} at byte {error.start}.",
            place=str(file),
            fix="Save the file as UTF-8.",
            code="config",
        ) from None
    try:
        _refuse_depth_and_tags(text, file)
        node = YAML(typ="rt", pure=True).compose(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        if mark is not None:
            _refuse_tab(text, mark.line, file)
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else str(file)
        problem = " ".join(str(part) for part in (error.context, error.problem) if part)
        raise UserError(f"Not valid YAML: {problem}.", place=where, fix="Mend the line.", code="config") from None
    except (YAMLError, ReaderError) as error:
        raise UserError(f"Not valid YAML: {error}", place=str(file), fix="Mend the file.", code="config") from None
    if node is None:
        raise UserError("The config is empty.", place=str(file), fix="Start from config/demo.yaml.", code="config")
    document = Document({})
    data = _build(node, (), file, document, frozenset())
    if not isinstance(data, dict):
        raise UserError(
            "The config must be a mapping of keys to values.",
            place=f"{file}:1:1",
            fix="Start from config/demo.yaml.",
            code="config",
        )
    document.data = data
    return document


def _require_readable(file: Path) -> None:
    """A regular file of the size of a config: reading a pipe or a device may never end."""
    if file.is_dir():
        raise UserError(f"{file} is a folder, not a config file.", place=str(file), fix="Name the file.", code="config")
    if not stat.S_ISREG(file.stat().st_mode):
        raise UserError(
            f"{file} is no regular file.", place=str(file), fix="Write the config into a file.", code="config"
        )
    if (size := file.stat().st_size) > LARGEST:
        raise UserError(
            f"{file} has {size:,} bytes, which no config has.", place=str(file), fix="Name the config.", code="config"
        )


def _refuse_tab(text: str, number: int, file: Path) -> None:
    """A tab in a block scalar or before a comment is fine; where YAML broke off at one, it is the reason."""
    lines = text.split("\n")
    line = lines[number] if number < len(lines) else ""
    indent = line[: len(line) - len(line.lstrip())]
    if "\t" in indent:
        raise UserError(
            "A tab is used for indentation, which YAML forbids.",
            place=f"{file}:{number + 1}:{indent.index(chr(9)) + 1}",
            fix="Indent with spaces.",
            code="config",
        )


def _refuse_depth_and_tags(text: str, file: Path) -> None:
    """Before the tree is made, which is recursive; and one answer for every explicit tag: one that is passed over would
    leave a value that looks like what it is not."""
    depth = 0
    for event in YAML(typ="rt", pure=True).parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        place = Place(file, event.start_mark.line + 1, event.start_mark.column + 1)
        if depth > DEEPEST:
            raise _too_deep(place)
        tag = getattr(event, "tag", None)
        if tag is None:
            continue
        spelled = str(tag).replace("tag:yaml.org,2002:", "!!")
        raise UserError(
            f"The tag `{spelled}` means nothing here.",
            place=str(place),
            fix='Write the value itself: 5 is a number, "5" is text; `$NAME` in a path reads the environment.',
            code="config",
        )


def _too_deep(place: Place) -> UserError:
    return UserError(
        f"The config is nested more than {DEEPEST} deep.",
        place=str(place),
        fix="Is a bracket left open, or written too often? No key of the lab is so deep.",
        code="config",
    )


def _build(node: Node, path: KeyPath, file: Path, document: Document, open_nodes: frozenset[int]) -> Any:
    place = Place(file, node.start_mark.line + 1, node.start_mark.column + 1)
    document.places.setdefault(path, place)
    if id(node) in open_nodes:
        raise UserError("An alias contains itself.", place=str(place), fix="Write the value out.", code="config")
    if len(path) > DEEPEST:
        raise _too_deep(place)
    if len(document.places) > MOST_VALUES:
        raise UserError(
            f"The config has more than {MOST_VALUES:,} values, with its aliases written out.",
            place=str(place),
            fix="Write out what the aliases stand for, once.",
            code="config",
        )
    inner = open_nodes | {id(node)}
    if isinstance(node, MappingNode):
        return _mapping(node, path, file, document, inner)
    if isinstance(node, SequenceNode):
        return [_build(item, (*path, index), file, document, inner) for index, item in enumerate(node.value)]
    assert isinstance(node, ScalarNode), "a node is a mapping, a sequence or a scalar"
    document.written[path] = node.value
    return _scalar(node, place)


def _mapping(node: MappingNode, path: KeyPath, file: Path, document: Document, inner: frozenset[int]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    first: dict[str, Place] = {}
    for key_node, value_node in node.value:
        place = Place(file, key_node.start_mark.line + 1, key_node.start_mark.column + 1)
        key = _key(key_node, place)
        if key in first:
            raise UserError(
                f"The key `{key_path((*path, key))}` stands twice, at lines {first[key].line} and {place.line}.",
                place=str(place),
                fix="Keep one of the two; a YAML reader would silently keep the last.",
                code="config",
            )
        first[key] = place
        document.places[(*path, key)] = place
        out[key] = _build(value_node, (*path, key), file, document, inner)
    return out


def _key(node: Node, place: Place) -> str:
    if not isinstance(node, ScalarNode):
        raise UserError("A key must be plain text.", place=str(place), fix="Write a name.", code="config")
    if str(node.tag).endswith(":merge") or node.value == "<<":
        raise UserError(
            "Merge keys (`<<`) are not read here.", place=str(place), fix="Write the keys out.", code="config"
        )
    if node.style is None and node.value.lower() in _TRAPS:
        raise UserError(
            f"The name `{node.value}` would be read as true, false or null by other YAML readers.",
            place=str(place),
            fix=f'Quote it ("{node.value}") or choose another name.',
            code="config",
        )
    return str(node.value)


def _scalar(node: ScalarNode, place: Place) -> Any:
    value: str = node.value
    if node.style is not None:
        return value
    if value.lower() in ("", "~", "null"):
        return None
    if value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    instead = scalars.ambiguous(value)
    if instead is not None:
        raise UserError(
            f"`{value}` is one number for some YAML readers, and another or text for others.",
            place=str(place),
            fix=instead,
            code="config",
        )
    try:
        read = scalars.number(value)
    except ValueError as error:
        raise UserError(
            f"`{value}` {error}: it cannot be used here.", place=str(place), fix="Give a finite number.", code="config"
        ) from None
    return value if read is None else read


def overlay(under: Document, over: Document) -> Document:
    """`over` laid upon `under`: mappings merge, everything else is replaced; each key keeps the place it came from."""
    places = dict(under.places)
    data = _overlay(under.data, over.data, (), over, places)
    return Document(data, places, {**under.written, **over.written})


def _overlay(
    under: Mapping[str, Any], over: Mapping[str, Any], path: KeyPath, source: Document, places: dict[KeyPath, Place]
) -> dict[str, Any]:
    out = dict(under)
    for key, value in over.items():
        here = (*path, key)
        if isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
            out[key] = _overlay(out[key], value, here, source, places)
        else:
            out[key] = value
            for known in [p for p in places if p[: len(here)] == here]:
                del places[known]
            places.update({p: place for p, place in source.places.items() if p[: len(here)] == here})
        places[here] = source.places[here]
    return out
