"""prompts.jsonl: reading the user's own traffic with line numbers in every error, and writing it (M14, case E3)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from unicodedata import category

from pydantic import ValidationError

from ..nearest import closest
from ..records.base import plain_text, strict_loads, write_text_atomic
from ..records.errors import UserError
from ..records.prompt import Message, Prompt

_KEYS = tuple(Prompt.model_fields)
_MESSAGE_KEYS = tuple(Message.model_fields)
NAME_A_FILE = "Name a file of prompts, one a line."
SHOWN = 60
"""Characters of a wrong value that a message repeats."""
_HALF = re.compile("[\ud800-\udfff]")
LONGEST_NAME = 200
"""Characters of an id or a kind; a file's name may have 255 bytes."""
OF_THE_RUN = {
    "temperature": "write `workload.temperature` in the config",
    "seed": "the lab sends one",
    "stream": "the lab always streams",
    "model": "the config or --model names it",
    "top_p": "write `workload.body` in the config",
    "top_k": "write `workload.body` in the config",
    "stop": "write `workload.body` in the config",
    "tools": "write `workload.body` in the config",
    "response_format": "write `workload.body` in the config",
    "chat_template_kwargs": "write `workload.body` in the config",
}
"""Fields of a request that people expect in a row, and where they are given."""
_EXAMPLE = '{"id": "p1", "kind": "support", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 300}'


def load(path: Path) -> list[Prompt]:
    """The prompts of a JSONL file, in its order; one JSON object a line, blank lines skipped.

    A byte order mark and CRLF are accepted. Only a line feed ends a record: U+2028 and its like stay in the text. Ids
    may be text or whole numbers and must differ as text (1 and "1" are the same id); the same text under two ids runs
    twice. Raises UserError with the line for anything that is not so, before anything is started.
    """
    prompts: list[Prompt] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip(" \t\r"):
            continue
        place = f"{path}, line {number}"
        prompt = _prompt(_object(line, place), place)
        if prompt.id in seen:
            raise UserError(
                f"The id {prompt.id!r} is on line {seen[prompt.id]} and on line {number}.",
                place=place,
                fix='Give every prompt an id of its own; 1 and "1" count as the same.',
                code="duplicate_id",
            )
        seen[prompt.id] = number
        prompts.append(prompt)
    if not prompts:
        raise UserError("The prompt file holds no prompts.", place=str(path), fix=f"One object a line, like {_EXAMPLE}")
    return prompts


def write(path: Path, prompts: Iterable[Prompt]) -> None:
    """Write the prompts as JSONL, atomically, UTF-8, LF; the same prompts give the same bytes on every machine."""
    write_text_atomic(path, _lines(prompts))


def digest(prompts: Iterable[Prompt]) -> str:
    """sha256 (hex) of the bytes that `write` would write."""
    return hashlib.sha256(_lines(prompts).encode()).hexdigest()


def _lines(prompts: Iterable[Prompt]) -> str:
    return "".join(
        plain_text(json.dumps(prompt.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)) + "\n"
        for prompt in prompts
    )


def no_file(path: Path) -> str:
    """What stands here in place of a file, empty for a file and for nothing: reading a pipe or a device may not end."""
    if path.is_file() or not path.exists():
        return ""
    return "a folder, no file" if path.is_dir() else "no regular file"


def _text(path: Path) -> str:
    if what := no_file(path):
        raise UserError(f"The prompts are {what}.", place=str(path), fix=NAME_A_FILE)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"The prompt file cannot be read: {error.strerror}.", place=str(path), fix="Check the path in the config."
        ) from error
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError("The prompt file is UTF-16.", place=str(path), fix="Save it as UTF-8.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"The prompt file is not UTF-8 (byte {error.start}: {error.reason}).",
            place=f"{path}, line {line}",
            fix="Save it as UTF-8.",
        ) from error


def _object(line: str, place: str) -> dict[str, Any]:
    try:
        value = strict_loads(line, pairs=lambda pairs: _once(pairs, place))
    except ValueError as error:
        if "\r" in line.strip("\r"):
            raise UserError(
                "This line is not JSON: in it stands a carriage return (CR), which ends no line here.",
                place=place,
                fix="Save the file with LF or CRLF at the end of each line.",
                code="bad_json",
            ) from error
        what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UserError(
            f"This line is not JSON: {what}.", place=place, fix=f"One object a line, like {_EXAMPLE}", code="bad_json"
        ) from error
    except RecursionError as error:
        raise UserError("This line is nested too deeply.", place=place) from error
    _refuse_halves(value, "", place)
    if not isinstance(value, dict):
        raise UserError(f"This line is not an object but {type(value).__name__}.", place=place, fix=f"Like {_EXAMPLE}")
    return value


def _refuse_halves(value: Any, where: str, place: str) -> None:
    """UserError for half of a surrogate pair (`\\ud83d` alone): it is no character, and cannot be sent as UTF-8."""
    if isinstance(value, str):
        half = _HALF.search(value)
        if half is not None:
            raise UserError(
                f"{where or 'The text'} holds half of a character (\\u{ord(half[0]):04x} alone).",
                place=place,
                fix="Write the whole pair, such as \\ud83d\\ude42, or the character itself, or take it out.",
            )
    elif isinstance(value, dict):
        for key, inner in value.items():
            _refuse_halves(key, "A key", place)
            _refuse_halves(inner, f"{where}.{key}" if where else key, place)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _refuse_halves(inner, f"{where}.{number}" if where else f"{number}", place)


def _once(pairs: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    """The object; UserError for a key that stands in it twice, of which JSON does not say which counts."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise UserError(
                f"The key `{key}` stands twice in one object.",
                place=place,
                fix="Keep the one that you mean.",
                code="duplicate_key",
            )
        made[key] = value
    return made


def _prompt(row: dict[str, Any], place: str) -> Prompt:
    _refuse_unknown(row, _KEYS, place)
    missing = [key for key in _KEYS if key not in row]
    if missing:
        raise UserError(f"{_named(missing)} missing.", place=place, fix=f"Each row needs {', '.join(_KEYS)}.")
    if isinstance(row["id"], int) and not isinstance(row["id"], bool):
        row["id"] = str(row["id"])
    if isinstance(row["messages"], list):
        for message in row["messages"]:
            if isinstance(message, dict):
                _refuse_unknown(message, _MESSAGE_KEYS, place)
    try:
        prompt = Prompt.model_validate(row, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{where} {_wrong(first)}.", place=place, fix=f"A row looks like {_EXAMPLE}") from error
    for name in ("id", "kind"):
        _refuse_odd_name(name, getattr(prompt, name), place)
    for number, message in enumerate(prompt.messages):
        if "\0" in message.content:
            raise UserError(
                f"messages.{number}.content holds a NUL character (\\u0000).",
                place=place,
                fix="Take it out: it is no part of a text, and servers refuse it or end the text there.",
            )
    if not any(message.content.strip() for message in prompt.messages if message.role != "system"):
        raise UserError("The prompt is blank.", place=place, fix="Give it a text, or leave the row out.")
    return prompt


def _wrong(error: Mapping[str, Any]) -> str:
    """What one of pydantic's errors says of a value, in plain words."""
    given = json.dumps(error["input"], ensure_ascii=False)
    given = given if len(given) <= SHOWN else f"{given[:SHOWN]}..."
    context = error.get("ctx") or {}
    match error["type"]:
        case "missing":
            return "is missing"
        case "too_short":
            return "is an empty list"
        case "literal_error":
            return f"is {given}, which is none of {context['expected']}"
        case "greater_than":
            return f"must be more than {context['gt']}, not {given}"
    asked = {"int_type": "a whole number", "string_type": "text", "list_type": "a list", "model_type": "an object"}
    kind = asked.get(error["type"])
    return f"must be {kind}, not {given}" if kind else f"is wrong ({error['msg']}), given {given}"


def _refuse_odd_name(name: str, value: str, place: str) -> None:
    """An id and a kind stand in tables, messages and names of files."""
    if not value.strip():
        raise UserError(f"{name} is blank.", place=place, fix=f"Give the row a {name}.")
    if any(category(letter) == "Cc" for letter in value):
        raise UserError(f"{name} holds a control character: {value[:40]!r}.", place=place, fix="Take it out.")
    if len(value) > LONGEST_NAME:
        raise UserError(
            f"{name} has {len(value)} characters: {value[:40]}...",
            place=place,
            fix=f"Give the row a {name} of {LONGEST_NAME} characters at most.",
        )


def _refuse_unknown(row: dict[str, Any], known: tuple[str, ...], place: str) -> None:
    for key in row:
        if key not in known:
            raise UserError(f"There is no key `{key}` here.", place=place, fix=_meant(key, known), code="unknown_key")


def _meant(key: str, known: tuple[str, ...]) -> str:
    valid = f"Valid here: {', '.join(known)}."
    if near := closest(key, known):
        return f"Did you mean `{near}`?"
    if field := closest(key, OF_THE_RUN):
        return f"`{field}` is the same for every prompt: {OF_THE_RUN[field]}. {valid}"
    return valid


def _named(keys: list[str]) -> str:
    return f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'}"
