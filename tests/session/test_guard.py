"""A job that is told to end does so in good order, once (case C7)."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from specdec_lab.session.guard import Guard, Interrupted


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_work_and_lets_the_clean_up_run(number):
    cleaned = []

    def work() -> None:
        with Guard():
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            finally:
                cleaned.append(True)

    with pytest.raises(Interrupted, match=signal.Signals(number).name):
        work()
    assert cleaned == [True]


def test_a_second_signal_does_not_cut_the_clean_up_short():
    cleaned = []

    def work() -> None:
        with Guard():
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.05)
                cleaned.append(True)

    with pytest.raises(Interrupted):
        work()
    assert cleaned == [True]


def test_a_deferred_signal_is_told_inside_and_raised_at_the_end():
    told = []

    def work() -> None:
        with Guard() as guard, guard.deferred():
            assert guard.reason() is None
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
            told.append(guard.reason())

    with pytest.raises(Interrupted):
        work()
    assert told == ["interrupted by SIGTERM"]


def test_handlers_are_as_before_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with Guard():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_death_of_the_parent_is_noticed(tmp_path):
    note = tmp_path / "note"
    child = textwrap.dedent(
        f"""
        import pathlib, time
        from specdec_lab.session.guard import Guard
        with Guard():
            try:
                pathlib.Path({str(note)!r}).write_text("up")
                time.sleep(30)
            finally:
                pathlib.Path({str(note)!r}).write_text("cleaned")
        """
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"]
    )
    until(lambda: note.exists() and note.read_text() == "up")
    parent.kill()
    parent.wait()
    until(lambda: note.read_text() == "cleaned")


def until(condition, limit_s: float = 20.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "did not happen"
        time.sleep(0.05)
