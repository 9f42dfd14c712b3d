"""A server that answers with given bytes at given times: every fault a stream can have, on purpose.

For the tests of the client and of whatever else talks to an endpoint. It proves nothing about a real server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Any, Literal, Self


def sse(payload: Any, *, space: str = " ", end: str = "\n") -> bytes:
    """One event with this payload: a string as it is, anything else as JSON."""
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return f"data:{space}{text}{end}{end}".encode()


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chat completion chunk whose delta has these fields."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}],
    }


def usage(completion: int, prompt: int = 7) -> dict[str, Any]:
    """The chunk after the last one, with the token counts and no choices."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
    }


DONE = sse("[DONE]")


@dataclass(frozen=True)
class Step:
    """Bytes of the body to send at a time, in seconds from the moment the request was complete."""

    at_s: float
    data: bytes


@dataclass(frozen=True)
class Script:
    """One answer. `end` says what happens after the last step.

    `finish`: the response is ended and the connection kept; `drop`: it is ended and the connection closed a moment
    later though nothing announced it; `close`: it is closed without an end; `reset`: it is reset; `hold`: nothing more
    happens until the client goes. `raw`: the steps are the whole response, head included.
    """

    steps: Sequence[Step] = ()
    end: Literal["finish", "drop", "close", "reset", "hold"] = "finish"
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    content_type: str = "text/event-stream"
    byte_by_byte: bool = False
    raw: bool = False


def paced(pieces: Sequence[bytes], *, first_s: float = 0.0, gap_s: float = 0.0, **rest: Any) -> Script:
    """Pieces at even distances."""
    return Script(steps=[Step(first_s + i * gap_s, piece) for i, piece in enumerate(pieces)], **rest)


@dataclass
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    sent: list[float] = field(default_factory=list)
    """When each step was sent, on the clock of time.perf_counter."""

    @property
    def json(self) -> Any:
        """The request's body."""
        return json.loads(self.body)


class ScriptedServer:
    """Serves in a thread of its own on a loopback port. `script` chooses the answer for each request."""

    def __init__(self, script: Script | Callable[[Seen], Script], *, host: str = "127.0.0.1") -> None:
        self._script = script if callable(script) else lambda _: script
        self._host = host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted-server", daemon=True)
        self._server: asyncio.Server | None = None
        self._open = 0
        self.seen: list[Seen] = []
        self.most_open = 0
        """Most requests that were being answered at one time."""
        self.connections = 0
        self.port = 0

    @property
    def base_url(self) -> str:
        """Where it listens."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def posts(self) -> list[Seen]:
        """The requests that were POSTs, in order."""
        return [seen for seen in self.seen if seen.method == "POST"]

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while await self._answer(reader, writer, sock):
                continue
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sock: socket.socket) -> bool:
        seen = await self._request(reader)
        self.seen.append(seen)
        script = self._script(seen)
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        try:
            await self._send(script, seen, writer)
            if script.end == "hold":
                await reader.read()
                return False
            if script.end == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
            if script.end == "drop":
                await asyncio.sleep(0.002)
            return script.end == "finish"
        finally:
            self._open -= 1

    async def _request(self, reader: asyncio.StreamReader) -> Seen:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            if name:
                headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        return Seen(method, path, headers, body, perf_counter())

    async def _send(self, script: Script, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if not script.raw:
            lines = [f"HTTP/1.1 {script.status} Scripted", f"content-type: {script.content_type}"]
            lines += [f"{name}: {value}" for name, value in script.headers]
            lines.append("transfer-encoding: chunked")
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        for step in script.steps:
            wait = seen.at + step.at_s - perf_counter()
            if wait > 0:
                await asyncio.sleep(wait)
            seen.sent.append(perf_counter())
            size = 1 if script.byte_by_byte else max(len(step.data), 1)
            units = [step.data[i : i + size] for i in range(0, len(step.data), size)]
            for unit in units:
                writer.write(unit if script.raw else b"%x\r\n%s\r\n" % (len(unit), unit))
                if script.byte_by_byte:
                    await asyncio.sleep(0)
            with contextlib.suppress(ConnectionResetError):
                await writer.drain()
        if script.end in ("finish", "drop") and not script.raw:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
