"""A server with known times: it streams tokens on a schedule and logs what it really sent, and when.

The truth against which the client is tested (B5). One thread, raw sockets and epoll, so that its own cost stays small
beside the client's; the log is on the machine's monotonic clock, the same in every process, so the client's stamps can
be laid beside it. It proves nothing about a real server.

Run as `python -m specdec_lab.client.paced`; it prints its port as JSON and ends when its standard input closes.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import select
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import httpx

_WORD = " tok"
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@dataclass(frozen=True)
class Pace:
    """The schedule of every answer. The number of tokens is the request's own max_tokens."""

    first_s: float = 0.1
    """From the request's last byte to the first token."""
    gap_s: float = 0.02
    """From one chunk (or burst of chunks) to the next; 0 with `first_s` 0 is the null mode: as fast as it can."""
    tokens_per_chunk: int = 1
    burst: int = 1
    """Chunks that are sent back to back at each time of the schedule."""


@dataclass
class Sent:
    """What one request was sent. Times are of time.perf_counter, taken just before the kernel got the bytes."""

    content: str
    """The last message of the request: tells the requests apart."""
    received: float
    tokens: int
    at: list[float] = field(default_factory=list)


def _frame(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _event(made: dict[str, Any]) -> bytes:
    common = {"id": "chatcmpl-paced", "object": "chat.completion.chunk", "created": 1, "model": "paced"}
    return b"data: " + json.dumps({**common, **made}, separators=(",", ":")).encode() + b"\n\n"


def _choice(fields: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "logprobs": None, "finish_reason": finish}]}


def _ending(tokens: int) -> bytes:
    """The finish reason, the usage, [DONE] and the end of the response."""
    usage = {"prompt_tokens": 8, "completion_tokens": tokens, "total_tokens": tokens + 8}
    events = [_event(_choice({}, "length")), _event({"choices": [], "usage": usage}), b"data: [DONE]\n\n"]
    return b"".join(_frame(event) for event in events) + b"0\r\n\r\n"


class _Connection:
    """One client's connection and the answer under way on it."""

    __slots__ = ("backlog", "buffer", "due", "left", "sent", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.buffer = b""
        self.backlog = b""
        self.sent: Sent | None = None
        self.left = 0
        self.due = 0.0


class _Server:
    """The loop of the serving process."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._epoll = select.epoll()
        self._epoll.register(self._listener.fileno(), select.EPOLLIN)
        self._connections: dict[int, _Connection] = {}
        self._schedule: list[tuple[float, int]] = []
        self._log: list[Sent] = []
        self._chunks: dict[int, bytes] = {}

    def serve(self) -> None:
        """Serve until standard input closes."""
        lifeline = sys.stdin.fileno()
        self._epoll.register(lifeline, select.EPOLLIN | select.EPOLLHUP)
        while True:
            wait = -1.0
            if self._schedule:
                wait = max(self._schedule[0][0] - perf_counter(), 0.0)
            for number, _ in self._epoll.poll(wait):
                if number == lifeline:
                    return
                if number == self._listener.fileno():
                    self._accept()
                elif number in self._connections:
                    self._readable(self._connections[number])
            self._send_due()

    def _accept(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                sock, _ = self._listener.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._connections[sock.fileno()] = _Connection(sock)
                self._epoll.register(sock.fileno(), select.EPOLLIN)

    def _drop(self, connection: _Connection) -> None:
        self._connections.pop(connection.sock.fileno(), None)
        connection.sock.close()

    def _readable(self, connection: _Connection) -> None:
        if connection.backlog:
            self._write(connection, b"")
        try:
            data = connection.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        connection.buffer += data
        head, found, rest = connection.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if len(rest) >= length:
            connection.buffer = rest[length:]
            self._request(connection, head.split(b" ", 2)[1].decode(), rest[:length])

    def _request(self, connection: _Connection, path: str, content: bytes) -> None:
        if path == "/log":
            self._reply(connection, [vars(sent) for sent in self._log])
            self._log = []
        elif path == "/v1/models":
            self._reply(connection, {"object": "list", "data": [{"id": "paced", "object": "model"}]})
        elif not content:
            self._reply(connection, {"status": "ok"})
        else:
            self._begin(connection, json.loads(content))

    def _reply(self, connection: _Connection, made: Any) -> None:
        data = json.dumps(made).encode()
        self._write(
            connection,
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data),
        )

    def _begin(self, connection: _Connection, body: dict[str, Any]) -> None:
        now = perf_counter()
        tokens = int(body.get("max_completion_tokens") or body.get("max_tokens") or 16)
        messages = body.get("messages") or [{"content": body.get("prompt", "")}]
        connection.sent = Sent(str(messages[-1]["content"])[:80], now, tokens)
        connection.left = tokens
        connection.due = now + self._pace.first_s
        self._log.append(connection.sent)
        self._write(connection, _HEAD + _frame(_event(_choice({"role": "assistant", "content": ""}))))
        heapq.heappush(self._schedule, (connection.due, connection.sock.fileno()))

    def _chunk(self, tokens: int) -> bytes:
        made = self._chunks.get(tokens)
        if made is None:
            made = self._chunks[tokens] = _frame(_event(_choice({"content": _WORD * tokens})))
        return made

    def _send_due(self) -> None:
        schedule, pace = self._schedule, self._pace
        until = perf_counter()
        while schedule and schedule[0][0] <= until:
            due, number = heapq.heappop(schedule)
            connection = self._connections.get(number)
            if connection is None or connection.sent is None or connection.due != due:
                continue
            sent = connection.sent
            for _ in range(pace.burst):
                tokens = min(pace.tokens_per_chunk, connection.left)
                connection.left -= tokens
                data = self._chunk(tokens)
                if not connection.left:
                    data += _ending(sent.tokens)
                sent.at.append(perf_counter())
                self._write(connection, data)
                if not connection.left:
                    break
            if connection.left:
                connection.due = due + pace.gap_s
                heapq.heappush(schedule, (connection.due, number))
            else:
                connection.sent = None

    def _write(self, connection: _Connection, data: bytes) -> None:
        """Send now what the kernel takes; the rest when it takes more."""
        data = connection.backlog + data
        try:
            taken = connection.sock.send(data) if data else 0
        except BlockingIOError:
            taken = 0
        except OSError:
            self._drop(connection)
            return
        had = bool(connection.backlog)
        connection.backlog = data[taken:]
        if connection.backlog and not had:
            self._epoll.modify(connection.sock.fileno(), select.EPOLLIN | select.EPOLLOUT)
        elif had and not connection.backlog:
            self._epoll.modify(connection.sock.fileno(), select.EPOLLIN)


class PacedServer:
    """The server in a process of its own, for the length of a `with` block."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.base_url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        pace = self.pace
        command = [sys.executable, "-m", "specdec_lab.client.paced", f"--first={pace.first_s}", f"--gap={pace.gap_s}"]
        command += [f"--tokens-per-chunk={pace.tokens_per_chunk}", f"--burst={pace.burst}"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the paced server ended with code {self._process.wait()}")
        self.base_url = f"http://127.0.0.1:{json.loads(line)['port']}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    @property
    def pid(self) -> int:
        """The serving process."""
        if self._process is None:
            raise RuntimeError("the server was not started")
        return self._process.pid

    def log(self) -> dict[str, Sent]:
        """What was sent since the last call, by the request's last message."""
        with httpx.Client(trust_env=False, timeout=60) as client:
            return {made["content"]: Sent(**made) for made in client.get(f"{self.base_url}/log").json()}


def main() -> None:
    """The serving process."""
    parser = argparse.ArgumentParser(prog="python -m specdec_lab.client.paced", description=__doc__)
    parser.add_argument("--first", type=float, default=Pace.first_s, help="seconds to the first token")
    parser.add_argument("--gap", type=float, default=Pace.gap_s, help="seconds between chunks")
    parser.add_argument("--tokens-per-chunk", type=int, default=1)
    parser.add_argument("--burst", type=int, default=1, help="chunks sent back to back")
    asked = parser.parse_args()
    server = _Server(Pace(asked.first, asked.gap, asked.tokens_per_chunk, asked.burst))
    sys.stdout.write(json.dumps({"port": server.port}) + "\n")
    sys.stdout.flush()
    server.serve()


if __name__ == "__main__":
    main()
