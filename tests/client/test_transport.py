"""httpx over the client's own connections, and TLS."""

from __future__ import annotations

import itertools
import shutil
import socket
import ssl
import subprocess
import threading
from pathlib import Path

import httpx
import pytest

from specdec_lab.client import Client, Endpoint
from specdec_lab.client.scripted import DONE, Script, ScriptedServer, Step, delta, paced, sse, usage
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import Load

ANSWER = [sse(delta(content="a")), sse(delta(content="b")), sse(delta(finish="stop")), sse(usage(2)), DONE]
PROMPT = Prompt(id="p", kind="k", messages=[Message(role="user", content="x")], max_tokens=5)


def test_httpx_reads_a_response_with_the_time_of_each_piece() -> None:
    with (
        ScriptedServer(paced(ANSWER, first_s=0.05, gap_s=0.03)) as server,
        Client(Endpoint(server.base_url, "m")) as own,
    ):
        response = own.http().post("/v1/chat/completions", json={"x": 1})
        assert response.status_code == 200
        assert response.content == b"".join(ANSWER)
        arrivals = response.extensions["arrivals"]
        assert arrivals[0] - response.extensions["sent"] == pytest.approx(0.05, abs=0.02)
        assert [b - a for a, b in itertools.pairwise(arrivals)] == pytest.approx([0.03] * 4, abs=0.015)
        assert server.posts[0].json == {"x": 1}


def test_httpx_and_the_load_share_one_connection() -> None:
    with ScriptedServer(paced(ANSWER)) as server, Client(Endpoint(server.base_url, "m")) as own:
        own.http().get("/v1/models")
        own.measure([PROMPT], Load(concurrency=1))
        own.http().get("/v1/models")
        assert server.connections == 1


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (Script([Step(0, b"x")], end="hold"), httpx.ReadTimeout),
        (Script([Step(0, b"x")], end="close"), httpx.RemoteProtocolError),
    ],
)
def test_httpx_errors_keep_their_kind(script: Script, error: type[Exception]) -> None:
    with ScriptedServer(script) as server, Client(Endpoint(server.base_url, "m")) as own, pytest.raises(error):
        own.http(timeout_s=0.3).get("/")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_an_https_endpoint_is_measured_and_its_certificate_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", key, "-out", cert], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in ANSWER) + b"0\r\n\r\n"

    def serve() -> None:
        while True:
            try:
                raw, _ = listener.accept()
                with context.wrap_socket(raw, server_side=True) as sock:
                    sock.recv(65536)
                    sock.sendall(
                        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                    )
                    sock.sendall(body)
                    sock.recv(1)
            except ssl.SSLError:
                continue
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    url = f"https://localhost:{listener.getsockname()[1]}"
    trusting = ssl.create_default_context(cafile=cert)
    with monkeypatch.context() as patch:
        patch.setattr(httpx, "create_ssl_context", lambda **_: trusting)
        with Client(Endpoint(url, "m")) as own:
            row = own.measure([PROMPT], Load(concurrency=1)).rows[0]
    assert (row.status, row.text, row.completion_tokens) == ("ok", "ab", 2)
    with Client(Endpoint(url, "m"), connect_timeout_s=2) as own, pytest.raises(Exception, match="certificate"):
        own.measure([PROMPT], Load(concurrency=1))
    listener.close()
