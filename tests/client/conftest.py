"""Prompts and a one-call measurement for the tests of the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specdec_lab.client import Client, Endpoint, Measured
from specdec_lab.client.scripted import Script, ScriptedServer, Seen
from specdec_lab.records.cell import Row
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import Load


def prompts(n: int = 1, *, max_tokens: int = 100) -> list[Prompt]:
    return [
        Prompt(id=f"p{i}", kind="test", messages=[Message(role="user", content=f"number {i}")], max_tokens=max_tokens)
        for i in range(n)
    ]


def measure_with(
    script: Script | Callable[[Seen], Script], n: int = 1, *, load: Load | None = None, **options: Any
) -> tuple[Measured, ScriptedServer]:
    max_tokens = options.pop("prompt_tokens", 100)
    with ScriptedServer(script) as server, Client(Endpoint(server.base_url, "m")) as client:
        return client.measure(prompts(n, max_tokens=max_tokens), load or Load(concurrency=1), **options), server


def row_of(script: Script | Callable[[Seen], Script], **options: Any) -> Row:
    measured, _ = measure_with(script, **options)
    return measured.rows[0]


@pytest.fixture
def measure() -> Callable[..., tuple[Measured, ScriptedServer]]:
    """measure(script, n=1, load=..., ...) -> the measurement and the server that was measured."""
    return measure_with


@pytest.fixture
def row() -> Callable[..., Row]:
    """row(script, ...) -> the row of one request."""
    return row_of
