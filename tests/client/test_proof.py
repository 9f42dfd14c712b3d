"""When the client says that it may have set the numbers itself (B5), and whose receive times it believes."""

from __future__ import annotations

import struct
from time import perf_counter

import pytest

from specdec_lab.client import Client, Endpoint, clock
from specdec_lab.client.exchange import Exchange
from specdec_lab.client.proof import client_bound
from specdec_lab.client.scripted import DONE, ScriptedServer, delta, paced, sse, usage
from specdec_lab.records.cell import ClientProof
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import Load

WELL = {"chunks_s": 1000.0, "ceiling": 50_000.0, "cpu_share": 0.1, "lag_ms": 1.0}


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        ({}, False),
        ({"chunks_s": 30_000.0}, True),
        ({"cpu_share": 0.9}, True),
        ({"lag_ms": 20.0}, True),
        ({"lag_ms": 20.0, "lag_limit_ms": 50.0}, False),
        ({"ceiling": None, "chunks_s": None, "cpu_share": None, "lag_ms": None}, False),
    ],
)
def test_b5_near_the_ceiling_busy_or_late_is_client_bound(change: dict[str, float | None], bound: bool) -> None:
    assert client_bound(**{**WELL, **change}) is bound


def test_b5_the_cells_proof_holds_the_selftest_and_this_cells_own_load() -> None:
    answer = [sse(delta(content="a")), sse(delta(content="b")), sse(delta(finish="stop")), sse(usage(2)), DONE]
    prompts = [
        Prompt(id=f"{i}", kind="k", messages=[Message(role="user", content="x")], max_tokens=2) for i in range(6)
    ]
    known = ClientProof(ceiling_chunks_s=40_000, selftest_ttft_error_ms=0.1, selftest_decode_error=1e-5)
    with ScriptedServer(paced(answer, gap_s=0.02)) as server, Client(Endpoint(server.base_url, "m")) as client:
        proof = client.measure(prompts, Load(concurrency=2), selftest=known).client
    assert (proof.ceiling_chunks_s, proof.selftest_ttft_error_ms) == (40_000, 0.1)
    assert proof.chunks_s is not None
    assert 0 < proof.chunks_s < 1000
    assert proof.cpu_share is not None


def recorded(arrived: float, fetched: float) -> Exchange:
    """One read that the kernel says arrived at `arrived` (monotonic), fetched at `fetched`."""
    exchange = Exchange(0, lambda _: None)
    exchange.offset = clock.offset()
    exchange.sent_at = fetched - 1.0
    exchange.record(b"x", fetched)
    wall = arrived - exchange.offset
    exchange.kernel += struct.pack("qq", int(wall), int(wall % 1 * 1e9))
    return exchange


def test_the_kernels_time_is_taken_however_late_the_read_was_fetched() -> None:
    now = perf_counter()
    assert clock.arrivals(recorded(now - 0.3, now)) == pytest.approx([now - 0.3], abs=1e-4)


@pytest.mark.parametrize("wrong", [-5.0, 3.0])
def test_a_kernel_time_that_cannot_be_is_not_believed(wrong: float) -> None:
    now = perf_counter()
    assert clock.arrivals(recorded(now + wrong, now)) == [now]


def test_a9_after_a_step_of_the_wall_clock_the_monotonic_fetch_time_counts() -> None:
    now = perf_counter()
    exchange = recorded(now - 0.1, now)
    exchange.offset += 3600
    assert clock.arrivals(exchange) == [now]


def test_a_prompt_larger_than_the_kernels_buffers_arrives_whole() -> None:
    answer = paced([sse(delta(content="a")), sse(delta(finish="stop")), sse(usage(1)), DONE])
    text = "long context " * 400_000
    prompt = Prompt(id="p", kind="k", messages=[Message(role="user", content=text)], max_tokens=2)
    with ScriptedServer(answer) as server, Client(Endpoint(server.base_url, "m")) as client:
        row = client.measure([prompt], Load(concurrency=1)).rows[0]
        assert row.status == "ok"
        assert server.posts[0].json["messages"][0]["content"] == text
