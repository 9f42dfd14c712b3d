"""The least that a client can do: an asyncio protocol that stamps and stores, and nothing else.

The yardstick for the cost and the lateness of the real client, measured beside it on the same server. It knows no
deadline, no error and no text; it is no client to measure a server with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import perf_counter
from typing import cast

import uvloop


class _Bare(asyncio.Protocol):
    def __init__(self, run: _Run) -> None:
        self._run = run
        self._transport: asyncio.Transport | None = None
        self.answer: list[tuple[float, bytes]] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def next(self) -> None:
        if not self._run.waiting:
            self._run.idle()
            return
        number = self._run.waiting.pop()
        self.answer = []
        self._run.answers[number] = self.answer
        self._run.sent[number] = perf_counter()
        assert self._transport is not None
        self._transport.write(self._run.requests[number])

    def data_received(self, data: bytes) -> None:
        self.answer.append((perf_counter(), data))
        if data.endswith(b"0\r\n\r\n"):
            self.next()


class _Run:
    def __init__(self, requests: Sequence[bytes], concurrency: int) -> None:
        self.requests = requests
        self.waiting = list(range(len(requests)))[::-1]
        self.sent: dict[int, float] = {}
        self.answers: dict[int, list[tuple[float, bytes]]] = {}
        self._busy = concurrency
        self.over = asyncio.Event()

    def idle(self) -> None:
        self._busy -= 1
        if not self._busy:
            self.over.set()


def run(
    host: str, port: int, requests: Sequence[bytes], concurrency: int
) -> list[tuple[float, list[tuple[float, bytes]]]]:
    """For each request, when it was sent and every read of its answer with its time."""

    async def closed() -> _Run:
        loop = asyncio.get_running_loop()
        state = _Run(requests, concurrency)
        made = [await loop.create_connection(lambda: _Bare(state), host, port) for _ in range(concurrency)]
        for _, protocol in made:
            protocol.next()
        await state.over.wait()
        for transport, _ in made:
            transport.close()
        return state

    state = uvloop.run(closed())
    return [(state.sent[i], state.answers[i]) for i in range(len(requests))]
