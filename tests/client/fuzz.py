"""Mutated streams against the reader: no hang, no crash, only named failures. `python tests/client/fuzz.py 200000`."""

from __future__ import annotations

import random
import sys
import time

from specdec_lab.client.exchange import Exchange
from specdec_lab.client.scripted import DONE, delta, sse, usage
from specdec_lab.client.stream import REASONS, row
from specdec_lab.records.cell import Row
from specdec_lab.records.prompt import Message, Prompt

PROMPT = Prompt(id="p", kind="k", messages=[Message(role="user", content="x")], max_tokens=50)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
SPECIAL = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\x00",
    b'"',
    b"\\",
    b"data:",
    b"{",
    b"}",
    b"null",
    b"\xf0\x9f",
    b"0\r\n\r\n",
    b"[DONE]",
]
SPECIAL += [
    b"data: [DONE]\n\n",
    b"\xef\xbb\xbf",
    b"event: error\n",
    b"1e999",
    b"NaN",
    b"-1",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"\\ud83d",
]


def events(draw: random.Random) -> list[bytes]:
    words = [" naïve", " 🙂", "日本", "  x ", "\n", '"', "\\", "a\u2028b", "</s>", ""]
    made = [sse(delta(role="assistant", content=""))]
    for _ in range(draw.randrange(12)):
        made.append(sse(delta(**{draw.choice(["content", "reasoning", "reasoning_content"]): draw.choice(words)})))
    made += draw.choice([[], [b": ping\n\n"], [sse({"error": {"message": "died"}})]])
    return [*made, sse(delta(finish=draw.choice(["stop", "length", "abort"]))), sse(usage(draw.randrange(20))), DONE]


def mutated(data: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.randrange(6)):
        at = draw.randrange(len(data) + 1)
        end = min(len(data), at + draw.randrange(40))
        kind = draw.randrange(5)
        if kind == 0:
            data = data[:at] + draw.choice(SPECIAL) + data[at:]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:at] + data[at:end] * 2 + data[end:]
        elif kind == 3:
            data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
        else:
            data = data[:at]
    return data


def one(draw: random.Random) -> Row:
    """One stream, mutated before or after the HTTP framing, cut into reads anywhere, read to its end."""
    pieces = events(draw)
    if draw.random() < 0.5:
        pieces = [mutated(b"".join(pieces), draw)]
    wire = HEAD + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"
    if draw.random() < 0.5:
        wire = mutated(wire, draw)
    exchange = Exchange(0, lambda _: None)
    exchange.sent_at = 1.0
    at = 0
    while at < len(wire) and exchange.end is None:
        size = draw.choice([1, 3, 17, 80, 400, 5000])
        read = wire[at : at + size]
        at += size
        exchange.record(read, 1.0 + len(exchange.sizes) / 100)
        if (exchange.watchful or len(read) < 64 or read.endswith(b"0\r\n\r\n")) and exchange.over(read):
            exchange.finish("complete", 2.0)
    if exchange.end is None:
        exchange.look()
        exchange.framing.end_of_stream()
        exchange.finish(
            "complete" if exchange.framing.complete else draw.choice(["closed", "reset", "deadline_idle"]), 2.0
        )
    return row(exchange, list(exchange.fetched), PROMPT, started_at=0.5, max_tokens=draw.choice([None, 50]))


def named(made: Row) -> bool:
    """Success, or a failure of the closed list."""
    return made.status == "ok" or made.reason in REASONS or (made.reason or "").startswith("http_")


def run(count: int, seed: int) -> dict[str, int]:
    """How the streams ended, by reason. AssertionError with the seed of the stream that did something else."""
    found: dict[str, int] = {}
    for number in range(count):
        started = time.perf_counter()
        made = one(random.Random(f"{seed}:{number}"))
        made.model_dump_json()
        assert named(made), (seed, number, made.reason)
        assert time.perf_counter() - started < 5, (seed, number)
        found[made.reason or "ok"] = found.get(made.reason or "ok", 0) + 1
    return found


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    begun = time.perf_counter()
    sys.stdout.write(f"{run(wanted, seed=1)}\n{wanted} streams in {time.perf_counter() - begun:.0f} s\n")
