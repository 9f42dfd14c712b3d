"""What a session says while it starts and stops a server."""

import pytest

from specdec_lab.launchers.base import Exit
from specdec_lab.session import ready
from specdec_lab.session.lifetime import told


class Starting:
    """A server that answers nothing for a while and then ends."""

    base_url = "http://127.0.0.1:9"

    def __init__(self, polls: int) -> None:
        self.polls = polls

    def exited(self):
        self.polls -= 1
        return None if self.polls else Exit(code=1)


def test_two_servers_that_start_side_by_side_are_told_apart(monkeypatch):
    """Seen with two GPUs: \"waiting for the server, 45 s\" stood there twice, and nobody knew for which mode."""
    said: list[str] = []
    clock = iter(range(0, 10_000, 10))
    monkeypatch.setattr(ready.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(ready.time, "sleep", lambda _: None)
    engine = type("Engine", (), {"ready_path": "/health"})()
    for mode in ("baseline", "ngram"):
        with pytest.raises(ready.ServerDied):
            ready.wait_until_healthy(Starting(4), engine, 900, told(mode, 1, said.append))
    assert [line.split(" waiting")[0] for line in said] == ["baseline r1:", "ngram r1:"]
