"""What is shown of a running cell: live on a terminal, now and then without one, and never at the cost of the cell."""

from __future__ import annotations

import io
import os
import re
import sys
import termios
from collections.abc import Iterator

import pytest

from specdec_lab.client import Client, Endpoint
from specdec_lab.client.scripted import DONE, ScriptedServer, delta, paced, sse, usage
from specdec_lab.records.prompt import Message, Prompt
from specdec_lab.records.spec import Load
from specdec_lab.session.progress import Progress
from specdec_lab.session.watch import PLAIN_S, TERMINAL_S, Watch, live

ANSWER = [sse(delta(content="a")), sse(delta(content="b")), sse(delta(finish="stop")), sse(usage(7)), DONE]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Terminal:
    """A terminal of 200 columns: a stream to write to, and what was written."""

    def __init__(self) -> None:
        self._ours, self.its = os.openpty()
        os.set_blocking(self._ours, False)
        self.stream = os.fdopen(self.its, "w")

    def read(self) -> str:
        try:
            return os.read(self._ours, 1 << 16).decode()
        except BlockingIOError:
            return ""

    def close(self) -> None:
        termios.tcflow(self.its, termios.TCOON)
        self.stream.close()
        os.close(self._ours)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal; a test makes it stderr by itself, because pytest sets stderr anew when the test begins."""
    monkeypatch.setenv("COLUMNS", "200")
    made = Terminal()
    yield made
    made.close()


def prompts(n: int) -> list[Prompt]:
    return [
        Prompt(id=f"p{i}", kind="k", messages=[Message(role="user", content=f"{i}")], max_tokens=9) for i in range(n)
    ]


def test_a_terminal_gets_one_line_written_anew_while_the_cell_runs(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    said: list[str] = []
    watch = Watch("ngram", 1, total=3, say=said.append)
    with ScriptedServer(paced(ANSWER, first_s=0.1, gap_s=0.01)) as server, Client(Endpoint(server.base_url, "m")) as c:
        measured = c.measure(prompts(18), Load(concurrency=1), on_progress=watch.cell("chat_c1"))
    text = terminal.read()
    assert said == []
    assert "\n" not in text
    assert text.endswith("\r\x1b[K"), "the line is gone when the cell has ended"
    lines = [line for line in text.split("\r\x1b[K") if line]
    assert 2 <= len(lines) <= measured.summary.wall_s / TERMINAL_S + 1
    found = re.fullmatch(
        r"  ngram r1  \[1/3\] chat_c1  (\d+)/18 requests  ([\d.]+) tok/s so far  0:0\d, "
        r"about 0:0\d left in this cell, .+",
        lines[-1],
    )
    assert found, lines[-1]
    assert 0 < int(found[1]) < 18
    assert float(found[2]) == pytest.approx(measured.summary.agg_tok_s, rel=0.35)


def test_a_stopped_terminal_does_not_hold_up_the_cell(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", terminal.stream)
    clock = Clock()
    show = live(Progress("ngram r1", 1, clock), "chat_c1", lambda _: None)
    termios.tcflow(terminal.its, termios.TCOOFF)
    show(1, 9, 5)
    assert terminal.read() == ""
    termios.tcflow(terminal.its, termios.TCOON)
    show(1, 9, 5)
    assert "1/9 requests" in terminal.read()
    termios.tcflow(terminal.its, termios.TCOOFF)
    show(9, 9, 45)
    assert terminal.read() == ""


def test_without_a_terminal_there_is_a_plain_line_every_15_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    clock, said = Clock(), []
    show = live(Progress("ngram r1", 1, clock), "chat_c1", said.append)
    for _ in range(60 * 5):
        clock.now += 0.2
        show(int(clock.now - 100) // 2, 32, 160 * (int(clock.now - 100) // 2))
    show(32, 32, 5120)
    assert PLAIN_S == 15
    assert [line.split("requests")[0].split()[-1] for line in said] in (
        ["7/32", "15/32", "22/32", "30/32"],
        ["7/32", "15/32", "22/32"],
    )
    assert said[1].startswith("  ngram r1  [1/1] chat_c1  15/32 requests  80.0 tok/s so far  0:30, about 0:34 left")
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_between_two_drawings_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Screen())
    clock, made = Clock(), []
    progress = Progress("ngram r1", 1, clock)
    show = live(progress, "chat_c1", lambda _: None)
    monkeypatch.setattr(progress, "line", lambda *given: made.append(clock.now) or "line")
    for _ in range(1000):
        show(1, 9, 5)
        clock.now += 0.01
    assert len(made) in (10, 11)


def test_tokens_count_only_answers_that_have_ended() -> None:
    seen: list[tuple[int, int, int]] = []
    with ScriptedServer(paced(ANSWER, first_s=0.1, gap_s=0.02)) as server, Client(Endpoint(server.base_url, "m")) as c:
        c.measure(prompts(8), Load(concurrency=2), on_progress=lambda *now: seen.append(now))
    assert seen[-1] == (8, 8, 56)
    assert len(seen) >= 3
    assert all(tokens <= 7 * ended and tokens % 7 == 0 for ended, _, tokens in seen)
    assert any(0 < tokens < 56 for _, _, tokens in seen)
