"""B5: the client against known times, beside a bare client on the same server in the same run.

This machine may be busy, and then the server is late as well: each claim is tried a bounded number of times, and must
hold by its own number once, or at least be no worse than what the bare client sees in the same minute.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from specdec_lab.client import beside, clock, selftest
from specdec_lab.client.paced import Pace, PacedServer
from specdec_lab.quantities import median, percentile

TRIES = 4
CORES = os.cpu_count() or 1
CONCURRENCY = 256
BUSY = Pace(first_s=0.1, gap_s=0.02)


def within(tries: int, attempt: Callable[[], str | None]) -> None:
    """The attempt succeeds (None) at least once; else the last complaint."""
    complaints = []
    for _ in range(tries):
        complaint = attempt()
        if complaint is None:
            return
        complaints.append(complaint)
    pytest.fail("; ".join(complaints))


def test_one_stream_is_timed_within_a_third_of_a_millisecond() -> None:
    with PacedServer(Pace(first_s=0.05, gap_s=0.01)) as server:

        def attempt() -> str | None:
            seen = beside.ours(server, selftest.prompts(12, 10, 20), 1)
            error = abs(median(seen.ttft_ms) or 0.0)
            return None if error <= 0.3 and seen.decode_p50 <= 0.001 else f"{error:.3f} ms, {seen.decode_p50:.2%}"

        within(TRIES, attempt)


def test_256_streams_at_once_are_stamped_exactly_however_busy_the_client_is() -> None:
    with PacedServer(BUSY) as server:

        def attempt() -> str | None:
            prompts = selftest.prompts(2 * CONCURRENCY, 30, 60)
            plain = percentile(beside.the_bare_one(server, prompts, CONCURRENCY).transit_ms, 95) or 0.0
            seen = beside.ours(server, prompts, CONCURRENCY)
            p50, p95 = (percentile(seen.transit_ms, q) or 0.0 for q in (50, 95))
            good = -0.05 <= p50 <= 0.5 and p95 <= max(3.0, plain) and seen.decode_p50 <= 0.001
            return None if good else f"p50 {p50:.3f}, p95 {p95:.3f} ms, decode {seen.decode_p50:.3%}"

        within(TRIES, attempt)


@pytest.mark.skipif(os.getloadavg()[0] > CORES, reason="others use this machine: the server itself is late")
def test_256_streams_agree_with_the_servers_log() -> None:
    with PacedServer(BUSY) as server:

        def attempt() -> str | None:
            prompts = selftest.prompts(3 * CONCURRENCY, 30, 60)
            plain = beside.the_bare_one(server, prompts, CONCURRENCY)
            seen = beside.ours(server, prompts, CONCURRENCY)
            p50, p95 = (abs(seen.later(CONCURRENCY, q)) for q in (50, 95))
            wave = seen.wave(CONCURRENCY) - plain.wave(CONCURRENCY)
            good = (
                p50 <= max(0.5, plain.later(CONCURRENCY, 50))
                and p95 <= max(3.0, plain.later(CONCURRENCY, 95))
                and wave <= 5.0
            )
            return None if good else f"p50 {p50:.3f}, p95 {p95:.3f}, wave {wave:+.3f} ms"

        within(TRIES, attempt)


COST = """
from specdec_lab.client import beside, selftest
from specdec_lab.client.paced import Pace, PacedServer

bare, ours = [], []
with PacedServer(Pace(first_s=0.1, gap_s=0.02)) as server:
    for _ in range(8):
        prompts = selftest.prompts(256, 100, 200)
        bare.append(beside.the_bare_one(server, prompts, 256).cpu_s_per_million)
        ours.append(beside.ours(server, prompts, 256).cpu_s_per_million)
        if min(ours) <= 1.4 * min(bare):
            break
print(min(ours), min(bare))
"""


@pytest.mark.slow
def test_the_client_costs_little_more_than_the_bare_one() -> None:
    """The least of a few runs each, in turn: what others do on this machine only ever adds. In a program of its own, so
    that the garbage collector does not go through what thousands of tests have left in memory.

    The aim is 1.25, and 1.02 to 1.26 were measured (docs/client.md); in runs as short as these, 1.1 to 1.4.
    """
    done = subprocess.run([sys.executable, "-c", COST], capture_output=True, text=True, check=True, timeout=300)
    ours, bare = map(float, done.stdout.split())
    assert ours <= 1.4 * bare, f"{ours:.1f} s a million chunks, bare {bare:.1f}"


def test_the_rows_carry_the_kernels_times_where_it_gives_them() -> None:
    if not clock.kernel_stamps():
        pytest.skip("this kernel does not time what a TCP socket receives")
    with PacedServer(Pace(first_s=0.05, gap_s=0.01)) as server:
        trial = selftest.trial(server, 16)
    assert trial.failed == 0
    assert trial.p95_arrival_ms is not None
    assert 0 <= trial.p95_arrival_ms < 5


def test_the_quick_selftest_fills_the_proof() -> None:
    proof = selftest.quick()
    assert proof.selftest_ttft_error_ms is not None
    assert proof.selftest_decode_error is not None
    assert proof.selftest_decode_error < 0.01
    assert proof.ceiling_chunks_s is not None
    assert proof.ceiling_chunks_s > 5_000
    assert proof.selftest_cpu_s_per_million is not None


def test_the_paced_server_logs_what_it_sent() -> None:
    with PacedServer(Pace(first_s=0.03, gap_s=0.02, tokens_per_chunk=3, burst=2)) as server:
        beside.ours(server, selftest.prompts(2, 20, 20), 2)
        beside.ours(server, selftest.prompts(1, 20, 20), 1)
        assert server.log() == {}


def test_the_paced_server_keeps_for_a_slow_reader_what_the_kernel_does_not_take() -> None:
    body = json.dumps({"max_tokens": 20_000, "messages": [{"content": "x"}]}).encode()
    with PacedServer(Pace(first_s=0.0, gap_s=0.0)) as server, socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(20)
        slow.connect(("127.0.0.1", int(server.base_url.rsplit(":", 1)[1])))
        slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        time.sleep(0.3)
        answer = bytearray()
        while not answer.endswith(b"0\r\n\r\n"):
            answer += slow.recv(65536)
    assert answer.count(b'"content":" tok"') == 20_000


@pytest.mark.skipif(os.getloadavg()[0] > CORES, reason="others use this machine: CPU time counts their cache misses")
def test_importing_and_starting_the_client_is_cheap() -> None:
    code = (
        "import json, re, time; import specdec_lab.client as c; c.Client(c.Endpoint('http://127.0.0.1:1', 'm'));"
        # The peak of this program alone: what getrusage tells is inherited from the process that started it.
        r"peak = re.search(r'VmHWM:\s+(\d+)', open('/proc/self/status').read());"
        "print(json.dumps([time.process_time(), int(peak[1]) / 1024]))"
    )

    def attempt() -> str | None:
        cpu, megabytes = json.loads(
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
        )
        return None if cpu <= 1.0 and megabytes <= 150 else f"{cpu:.2f} s of CPU, {megabytes:.0f} MB"

    within(TRIES, attempt)
