"""Names of a server's flags: one spelling, each flag once, and speculation in its own block alone (M17)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from pydantic import JsonValue

from ..engines.base import Engine
from ..records.spec import ServerSpec
from .problems import Problem
from .strict_yaml import KeyPath

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*\Z", re.ASCII)
_SPECULATION = re.compile(r"(no-)?spec(ulative)?([-.]|\Z)|.*speculative|sc\Z")
_MARK = "\0"


def problems(engine: Engine, server: ServerSpec, place: Callable[[str], KeyPath], mode: str) -> Iterator[Problem]:
    """What is wrong with the names of this server's args, each at its place."""
    refused = " ".join(
        finding.message for finding in engine.problems(server.model_copy(update={"speculative": None}), [])
    )
    first: dict[str, str] = {}
    for name, value in server.args.items():
        if value is None:
            continue
        known = f"`{name}`" in refused
        told = None if known else _name_fault(name, value)
        if told is None and not known and _SPECULATION.match(_dashed(name)):
            fix = "Write the mode's `speculative` block: what stands here would be in every mode, the baseline too."
            told = f"`{name}` may not stand among the server's args", fix
        long = _long(engine, server, name)
        if told is None:
            told = _twice(first.get(long.removeprefix("no-")), name, long)
        first.setdefault(long.removeprefix("no-"), name)
        if told is not None:
            yield Problem(place(name), *told, (mode,))


def twins(block: Mapping[str, JsonValue], path: KeyPath) -> Iterator[Problem]:
    """Options of `speculative` that are one option in two spellings."""
    first: dict[str, str] = {}
    for name in block:
        other = first.setdefault(_dashed(name), name)
        if other != name:
            yield Problem((*path, name), f"`{other}` and `{name}` are one option", "Keep one of them.")


def _name_fault(name: str, value: JsonValue) -> tuple[str, str] | None:
    if not _NAME.match(name):
        plain, equals, given = re.sub(r"[\s]+", "-", name.strip().lstrip("-").strip()).partition("=")
        return (
            f"`{name}` is no flag's name here",
            f"Write `{plain}{f': {given}' if equals else ''}`, without dashes before it.",
        )
    if value is False and re.match("no[-_]", name):
        return f"`{name}: false` says no twice", f"Write `{name[3:]}: true`."
    return None


def _twice(other: str | None, name: str, long: str) -> tuple[str, str] | None:
    if other is None:
        return None
    if long.startswith("no-") != _dashed(other).startswith("no-"):
        plain = long.removeprefix("no-")
        return f"`{other}` and `{name}` contradict each other", f"Keep one: `{plain}: true` or `{plain}: false`."
    return (
        f"`{other}` and `{name}` are one flag",
        f"Keep one of them; a mode's `differs.args` replaces what is spelled `{other}`.",
    )


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _long(engine: Engine, server: ServerSpec, name: str) -> str:
    """The flag's name as the engine spells it in full (`tp` is `tensor-parallel-size` for vLLM)."""
    made = engine.args(server.model_copy(update={"args": {name: _MARK}}))
    return _dashed(next((long for long, value in made.items() if value == _MARK), name))
