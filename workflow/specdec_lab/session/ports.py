"""A free loopback port for a server (case C3)."""

from __future__ import annotations

import socket


def free() -> int:
    """A port that nothing listens on at this moment. Between now and the server's start another program may take it;
    that is noticed when the server fails to bind, and when the answering server is proved to be ours."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
