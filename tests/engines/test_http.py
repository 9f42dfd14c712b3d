"""Questions to a server go past every proxy (C8), and a server that is away is no error."""

import http.server
import threading

from specdec_lab.engines import http as ask


def test_c8_a_dead_proxy_in_the_environment_does_not_matter(monkeypatch):
    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"version": "1"}')

        def log_message(self, *_args):
            return

    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert ask.get_json(f"http://127.0.0.1:{server.server_port}/version") == {"version": "1"}
    finally:
        server.shutdown()


def test_a_server_that_is_away_and_an_answer_that_is_no_json_are_none():
    assert ask.get_text("http://127.0.0.1:9/health") is None
    assert ask.get_json("file:///etc/hostname") is None
