"""The context that one request may take: what the config asks for, and what the engine made of it (B3).

An engine changes it without a word: llama.cpp rounds up to a multiple of 256 and shares it among slots, vLLM shortens a
target to its draft.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from ..records.spec import ServerSpec
from .base import Engine


def asked(engine: Engine, spec: ServerSpec) -> int | None:
    """Tokens that one request may take, prompt and answer, as the config asks.

    None when it leaves that to the engine or the model, writes it in the engine's own way (vLLM's `8k`), or when the
    server was started by somebody else.
    """
    given = {name.replace("_", "-"): value for name, value in engine.args(spec).items()}
    size = tokens(given.get(engine.context_flag))
    return None if size is None or spec.launcher == "attach" else size // engine.context_shares(spec)


def changed(engine: Engine, spec: ServerSpec, facts: Mapping[str, JsonValue]) -> str | None:
    """A sentence if the engine runs with another context per request than was asked for; None if not, or not known."""
    wanted = asked(engine, spec)
    made = next((value for name in engine.context_facts if isinstance(value := facts.get(name), int)), None)
    if wanted is None or made is None or wanted == made:
        return None
    return (
        f"A request may take {made} tokens of context: the engine made that of the {wanted} asked for "
        f"(`{engine.context_flag}`)."
    )


def tokens(value: JsonValue) -> int | None:
    """An option's value as a number of tokens; None for what leaves it to the engine, or is written in its own way."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
