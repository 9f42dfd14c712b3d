"""How requests are offered and bounded (M22 to M24; cases A9, C8, D5)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
import pytest

from specdec_lab.client import Client, Endpoint
from specdec_lab.client.load import arrival_times, longest_s
from specdec_lab.client.scripted import DONE, Script, ScriptedServer, Seen, Step, delta, paced, sse, usage
from specdec_lab.records.errors import UserError
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import Deadlines, Load, Objective, Sampling

Measure = Callable[..., Any]
ANSWER = [sse(delta(content="a")), sse(delta(content="b")), sse(delta(finish="stop")), sse(usage(2)), DONE]
BAD = Script([Step(0, b'{"error":{"message":"no"}}')], status=503, content_type="application/json")


def prompts(n: int) -> list[Prompt]:
    return [
        Prompt(id=f"p{i}", kind="k", messages=[Message(role="user", content=f"{i}")], max_tokens=9) for i in range(n)
    ]


def test_a9_all_128_are_under_way_at_once_and_none_waits_for_a_pool(measure: Measure) -> None:
    measured, server = measure(
        Script([Step(0.5, ANSWER[0]), Step(0.6, b"".join(ANSWER[1:]))]), n=128, load=Load(concurrency=128)
    )
    assert server.most_open == 128
    assert measured.summary.peak_in_flight == 128
    assert measured.summary.failed == 0
    assert measured.summary.wall_s < 1.1


@pytest.mark.parametrize("concurrency", [1, 3, 8])
def test_m24_exactly_that_many_are_under_way_never_more(measure: Measure, concurrency: int) -> None:
    measured, server = measure(paced(ANSWER, first_s=0.02, gap_s=0.01), n=24, load=Load(concurrency=concurrency))
    assert server.most_open == concurrency
    assert measured.summary.peak_in_flight == concurrency
    assert server.connections <= 2 * concurrency  # a second one each, until the first was seen to be kept
    assert [r.id for r in measured.rows] == [f"p{i}" for i in range(24)]
    sent = sorted(r.sent_s for r in measured.rows)
    assert measured.summary.wall_s == pytest.approx(24 / concurrency * 0.06, rel=0.5)
    assert sent[0] < 0.02


def test_fewer_prompts_than_concurrency_are_each_sent_once(measure: Measure) -> None:
    measured, server = measure(paced(ANSWER), n=2, load=Load(concurrency=16))
    assert len(measured.rows) == len(server.posts) == 2


def test_a9_a_late_first_byte_is_no_failure_within_its_deadline(measure: Measure) -> None:
    measured, _ = measure(paced(ANSWER, first_s=6.0), deadlines=Deadlines(total_s=20, first_byte_s=15, idle_s=2))
    assert measured.rows[0].ttft_s == pytest.approx(6.0, abs=0.05)


def test_a9_a_trickle_that_never_ends_fails_at_the_total_deadline(measure: Measure) -> None:
    steps = [Step(0.1 * i, b":") for i in range(200)]
    started = time.perf_counter()
    measured, _ = measure(Script(steps), deadlines=Deadlines(total_s=1.0, first_byte_s=5, idle_s=5))
    assert measured.rows[0].reason == "deadline_total"
    assert time.perf_counter() - started < 2.0


def test_the_first_byte_and_the_idle_deadline_are_kept(measure: Measure) -> None:
    limits = Deadlines(total_s=20, first_byte_s=0.4, idle_s=0.3)
    late, _ = measure(Script([Step(5, ANSWER[0])]), deadlines=limits)
    stuck, _ = measure(Script([Step(0, ANSWER[0])], end="hold"), deadlines=limits)
    assert (late.rows[0].reason, stuck.rows[0].reason) == ("deadline_first_byte", "deadline_idle")
    assert stuck.rows[0].text == "a"


def test_a9_a_step_of_the_wall_clock_changes_no_duration(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    jumped = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: real() - 3600 * (next(jumped) > 2))
    measured, _ = measure(paced(ANSWER, first_s=0.1, gap_s=0.05))
    assert measured.rows[0].ttft_s == pytest.approx(0.1, abs=0.03)
    assert measured.rows[0].e2e_s == pytest.approx(0.15, abs=0.03)


def test_a_run_of_failures_aborts_the_cell_and_keeps_what_was_measured(measure: Measure) -> None:
    good = 5

    def script(seen: Seen) -> Script:
        return paced(ANSWER) if int(seen.json["messages"][0]["content"].split()[-1]) < good else BAD

    measured, server = measure(script, n=100, deadlines=Deadlines(abort_after_failures=4))
    assert measured.completed is False
    assert measured.summary.completed is False
    assert "4 requests in a row failed" in measured.aborted
    assert len(measured.rows) == len(server.posts) == good + 4
    assert measured.summary.failed == 4


def test_failures_that_are_not_in_a_row_abort_nothing(measure: Measure) -> None:
    def script(seen: Seen) -> Script:
        return paced(ANSWER) if int(seen.json["messages"][0]["content"].split()[-1]) % 2 else BAD

    measured, _ = measure(script, n=20, deadlines=Deadlines(abort_after_failures=2))
    assert measured.completed is True
    assert measured.summary.failed == 10


def test_giving_up_ends_the_cell_at_once_with_its_reason(measure: Measure) -> None:
    started = time.perf_counter()
    measured, _ = measure(
        Script([Step(0, ANSWER[0])], end="hold"), n=4, load=Load(concurrency=2), give_up=lambda: "the server died"
    )
    assert time.perf_counter() - started < 2
    assert measured.aborted == "the server died"
    assert [r.reason for r in measured.rows] == ["aborted", "aborted"]


def test_a_server_that_dies_in_the_middle_fails_the_rest_quickly() -> None:
    with ScriptedServer(paced(ANSWER, first_s=0.05)) as server:
        client = Client(Endpoint(server.base_url, "m"))
        client.measure(prompts(2), Load(concurrency=2))
    started = time.perf_counter()
    measured = client.measure(prompts(50), Load(concurrency=2))
    client.close()
    assert measured.completed is False
    assert {r.reason for r in measured.rows} <= {"connect_error", "aborted"}
    assert time.perf_counter() - started < 3


def test_nothing_listening_is_a_user_error_with_a_fix() -> None:
    with Client(Endpoint("http://127.0.0.1:9", "m")) as client, pytest.raises(UserError) as caught:
        client.measure(prompts(1), Load(concurrency=1))
    assert caught.value.code == "connect_error"
    assert caught.value.fix


@pytest.mark.parametrize("load", [Load(), Load(concurrency=1, rate=1.0), Load(concurrency=0), Load(rate=0.0)])
def test_a_load_that_is_none_is_refused(load: Load) -> None:
    with Client(Endpoint("http://127.0.0.1:9", "m")) as client, pytest.raises(UserError):
        client.measure(prompts(1), load)


def test_connections_of_the_warm_up_are_used_by_the_measurement() -> None:
    with ScriptedServer(paced(ANSWER)) as server, Client(Endpoint(server.base_url, "m")) as client:
        client.measure(prompts(4), Load(concurrency=4))
        client.measure(prompts(8), Load(concurrency=4))
        assert server.connections == 4


def test_a_server_that_closes_after_each_answer_is_measured_without_a_failure(measure: Measure) -> None:
    script = Script([Step(0, b"".join(ANSWER))], headers=[("connection", "close")], end="finish")
    measured, server = measure(script, n=6, load=Load(concurrency=2))
    assert measured.summary.failed == 0
    assert len(server.posts) == 6


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_server_that_closes_after_each_answer_unannounced_loses_no_request(
    measure: Measure, concurrency: int
) -> None:
    """llama.cpp's server announces Keep-Alive and closes all the same; the next request would meet the close."""
    script = paced(ANSWER, end="drop", headers=[("keep-alive", "timeout=5, max=100")])
    measured, server = measure(script, n=24, load=Load(concurrency=concurrency))
    assert measured.summary.failed == 0
    assert len(server.posts) == 24
    assert server.connections >= 24


def test_a_server_that_keeps_its_connections_is_soon_asked_again_on_them(measure: Measure) -> None:
    measured, server = measure(paced(ANSWER, gap_s=0.02), n=40, load=Load(concurrency=2))
    assert measured.summary.failed == 0
    assert server.connections <= 12


def test_open_loop_arrivals_are_poisson_of_that_rate_and_seed() -> None:
    times = arrival_times(20_000, 50.0, seed=3)
    gaps = [b - a for a, b in pairwise(times)]
    assert times[0] == 0.0
    assert statistics.mean(gaps) == pytest.approx(0.02, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.02, rel=0.03)
    assert times == arrival_times(20_000, 50.0, seed=3)
    assert times != arrival_times(20_000, 50.0, seed=4)


def test_open_loop_reports_rates_and_delays_and_waits_for_nobody(measure: Measure) -> None:
    measured, server = measure(paced(ANSWER, first_s=0.4), n=40, load=Load(rate=100.0, seed=1))
    summary = measured.summary
    assert server.most_open > 10
    assert summary.requested_rate == 100.0
    due = arrival_times(40, 100.0, seed=1)
    assert summary.achieved_rate == pytest.approx(39 / due[-1], rel=0.1)
    assert summary.p50_schedule_delay_s < 0.01
    assert [r.scheduled_s for r in measured.rows] == pytest.approx(due)


def test_goodput_is_the_share_that_met_the_objective(measure: Measure) -> None:
    def script(seen: Seen) -> Script:
        slow = int(seen.json["messages"][0]["content"].split()[-1]) % 4 == 0
        return paced(ANSWER, first_s=0.3 if slow else 0.01, gap_s=0.01)

    measured, _ = measure(script, n=8, load=Load(concurrency=8), objective=Objective(ttft_s=0.2))
    assert measured.summary.goodput == 0.75


def test_the_longest_time_of_a_cell_can_be_stated() -> None:
    limits = Deadlines(total_s=10)
    assert longest_s(32, concurrency=4, rate=None, deadlines=limits, connect_s=1) == pytest.approx(8 * 11.05)
    assert longest_s(32, concurrency=None, rate=4, deadlines=limits, connect_s=1) == pytest.approx(8 + 11.05)


def test_d5_every_body_is_explicit_and_the_same_but_for_the_prompt(measure: Measure) -> None:
    _, server = measure(paced(ANSWER), n=3, sampling=Sampling(seed=5), max_tokens=50, prompt_tokens=80)
    bodies = [seen.json for seen in server.posts]
    for body in bodies:
        body.pop("messages")
        assert body == {
            "model": "m",
            "temperature": 0.0,
            "top_p": 1.0,
            "seed": 5,
            "max_tokens": 50,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


def test_d5_extras_are_added_and_stream_options_merged(measure: Measure) -> None:
    _, server = measure(
        paced(ANSWER),
        sampling=Sampling(extra={"chat_template_kwargs": {"enable_thinking": False}}),
        extra_body={"stream_options": {"continuous_usage_stats": True}, "cache_prompt": False},
        ignore_eos=True,
    )
    body = server.posts[0].json
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert (body["cache_prompt"], body["ignore_eos"]) == (False, True)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


def test_d5_no_extra_may_replace_what_the_client_owns(measure: Measure) -> None:
    with pytest.raises(UserError):
        measure(paced(ANSWER), extra_body={"stream": False})


def test_a_prompt_of_any_text_arrives_as_it_is(measure: Measure) -> None:
    text = 'quote " back \\ line\n\u2028 🙂 日本'
    with ScriptedServer(paced(ANSWER)) as server, Client(Endpoint(server.base_url, "m")) as client:
        prompt = Prompt(id="x", kind="k", messages=[Message(role="user", content=text)], max_tokens=5)
        client.measure([prompt], Load(concurrency=1))
        assert server.posts[0].json["messages"] == [{"role": "user", "content": text}]


def test_headers_of_the_endpoint_are_sent_and_not_shown() -> None:
    with ScriptedServer(paced(ANSWER)) as server:
        endpoint = Endpoint(server.base_url, "m", headers={"authorization": "Bearer hf_TESTSECRET123"})
        with Client(endpoint) as client:
            client.measure(prompts(1), Load(concurrency=1))
        assert server.posts[0].headers["authorization"] == "Bearer hf_TESTSECRET123"
    assert "TESTSECRET" not in repr(endpoint)


@pytest.mark.parametrize("no_proxy", ["", "localhost"])
def test_c8_proxies_are_never_used(measure: Measure, monkeypatch: pytest.MonkeyPatch, no_proxy: str) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    measured, _ = measure(paced(ANSWER))
    assert measured.summary.failed == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_c8_localhost_finds_the_family_that_listens_and_costs_nothing(host: str) -> None:
    with ScriptedServer(paced(ANSWER, first_s=0.05), host=host) as server:
        client = Client(Endpoint(f"http://localhost:{server.port}", "m"))
        measured = client.measure(prompts(3), Load(concurrency=1))
        client.close()
    assert [r.status for r in measured.rows] == ["ok"] * 3
    assert all(r.ttft_s == pytest.approx(0.05, abs=0.02) for r in measured.rows)


@pytest.mark.parametrize("base", ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"])
def test_the_base_url_may_end_in_v1(base: str) -> None:
    assert Endpoint(base, "m").url == httpx.URL("http://h:1/v1/chat/completions")


@pytest.mark.parametrize("base", ["h:1", "ftp://h", "", "http://"])
def test_a_base_url_that_is_none_is_refused(base: str) -> None:
    with pytest.raises(UserError):
        _ = Endpoint(base, "m").url
