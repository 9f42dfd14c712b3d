"""Asking a server about first differences: what is sent, and what comes of each kind of answer (B2, D4)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from specdec_lab.analysis.near_tie import Question
from specdec_lab.records.errors import UserError
from specdec_lab.session.probe import ask

Reply = Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]
QUESTION = Question("eagle3", "chat_c1", "p1", (("user", "Name an animal."),), "the red bat", "the red bar", 10)


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], tuple[str, list[dict[str, Any]]]]]:
    servers = []

    def start(reply: Reply) -> tuple[str, list[dict[str, Any]]]:
        bodies: list[dict[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                bodies.append(body)
                status, answer = reply(body)
                content = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", bodies

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def top(*tokens: tuple[str, float]) -> dict[str, Any]:
    listed = [{"token": token, "logprob": logprob} for token, logprob in tokens]
    return {"choices": [{"logprobs": {"content": [{"token": tokens[0][0], "top_logprobs": listed}]}}]}


def test_d4_the_gap_is_taken_where_the_texts_part(serve: Any) -> None:
    def reply(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        begun = body["messages"][-1]["content"]
        if begun == "the red":
            return 200, top((" ba", -0.1), (" c", -3.0))
        assert begun == "the red ba"
        return 200, top(("r", -0.69), ("t", -0.71))

    url, bodies = serve(reply)
    probe = ask([QUESTION], base_url=url, model="m", engine="vllm", baseline="baseline")
    assert probe.answers[0].gap == pytest.approx(0.02)
    assert (probe.answers[0].ours, probe.answers[0].theirs) == ("t", "r")
    assert all(body["temperature"] == 0 and body["max_tokens"] == 1 for body in bodies)
    assert all(body["continue_final_message"] is True for body in bodies)
    assert [message["role"] for message in bodies[0]["messages"]] == ["user", "assistant"]


def test_llama_cpp_is_not_sent_fields_it_does_not_need(serve: Any) -> None:
    url, bodies = serve(lambda _: (200, top((" bar", -0.1), (" bat", -2.0))))
    ask([QUESTION], base_url=url, model="m", engine="llama_cpp", baseline="baseline")
    assert "continue_final_message" not in bodies[0]


@pytest.mark.parametrize(
    ("reply", "code"),
    [((400, {"error": "no logprobs"}), "probe_refused"), ((200, {"choices": [{"logprobs": None}]}), "no_logprobs")],
)
def test_a_server_that_gives_no_probabilities_is_said_so(serve: Any, reply: Any, code: str) -> None:
    url, _ = serve(lambda _: reply)
    with pytest.raises(UserError) as error:
        ask([QUESTION], base_url=url, model="m", engine="vllm", baseline="baseline")
    assert error.value.code == code


def test_a_server_that_is_not_there_is_said_so() -> None:
    with pytest.raises(UserError) as error:
        ask([QUESTION], base_url="http://127.0.0.1:9", model="m", engine="vllm", baseline="baseline")
    assert error.value.code == "probe_unreachable"
