"""A free loopback port for a server (case C3)."""

from __future__ import annotations

import socket

from ..records.errors import UserError


def free() -> int:
    """A port that nothing listens on at this moment. Between now and the server's start another program may take it;
    that is noticed when the server fails to bind, and when the answering server is proved to be ours."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_free(port: int) -> None:
    """UserError if something listens on this port, or the system does not let us have it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise UserError(
                f"Port {port} cannot be used: {error.strerror}.",
                place=f"127.0.0.1:{port}",
                fix="End the program that listens there, or leave the port out: the lab then takes a free one.",
                code="port_taken",
            ) from None
