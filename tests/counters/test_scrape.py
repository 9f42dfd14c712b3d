"""Scraping over HTTP and waiting for counters to settle (cases B5, C8)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from specdec_lab.counters import TABLES, scrape, settle, window
from specdec_lab.records.errors import UserError

Answer = tuple[int, str]


@contextmanager
def serving(answer: Callable[[str], Answer]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = answer(self.path)
            self.send_response(status)
            if status == 307:
                self.send_header("Location", text)
                text = ""
            body = text.encode()
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def metrics(accepted: int, drafted: int, running: int = 0) -> str:
    return (
        f"vllm:spec_decode_num_accepted_tokens_total {accepted}\n"
        f"vllm:spec_decode_num_draft_tokens_total {drafted}\n"
        f"vllm:spec_decode_num_drafts_total {drafted // 4}\n"
        f"vllm:num_requests_running {running}\n"
    )


def test_b5_the_last_increment_a_second_after_the_end_is_still_counted() -> None:
    began = time.monotonic()
    late = metrics(1050, 2500)
    with serving(lambda _: (200, late if time.monotonic() - began > 1.0 else metrics(1000, 2400))) as url:
        closed = settle(url, TABLES["vllm"])
    assert closed.settled
    acceptance = window(metrics(450, 1500), closed.text, TABLES["vllm"], speculative=True).acceptance
    assert acceptance.acceptance_rate == pytest.approx(0.60)


def test_b5_the_window_waits_while_requests_run() -> None:
    began = time.monotonic()
    names = replace(TABLES["vllm"], publish_lag_s=0.1)
    with serving(lambda _: (200, metrics(1, 4, running=int(time.monotonic() - began < 0.5)))) as url:
        closed = settle(url, names)
    assert closed.settled
    assert closed.waited_s >= 0.5


def test_b5_the_wait_has_a_limit_and_says_what_still_moved() -> None:
    count = iter(range(10**6))
    with serving(lambda _: (200, metrics(next(count), 10**6))) as url:
        closed = settle(url, replace(TABLES["vllm"], publish_lag_s=0.2), limit_s=0.5)
    assert not closed.settled
    assert [finding.code for finding in closed.findings] == ["counters_not_settled"]


def test_c8_dead_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    with serving(lambda _: (200, "a 1\n")) as url:
        assert scrape(url) == "a 1\n"
        assert scrape(url.replace("127.0.0.1", "localhost")) == "a 1\n"


def test_redirects_are_followed() -> None:
    with serving(lambda path: (200, "a 1\n") if path.endswith("/") else (307, path + "/")) as url:
        assert scrape(url) == "a 1\n"


@pytest.mark.parametrize(("status", "words"), [(501, "--metrics"), (404, "/v1/metrics"), (500, "log")])
def test_a_refused_scrape_says_what_to_do(status: int, words: str) -> None:
    with serving(lambda _: (status, "no")) as url, pytest.raises(UserError) as caught:
        scrape(url)
    assert words in caught.value.fix
    assert caught.value.code == "metrics_unreachable"


def test_a_dead_server_is_a_user_error() -> None:
    with serving(lambda _: (200, "")) as url:
        gone = url
    with pytest.raises(UserError):
        scrape(gone, timeout_s=1)
