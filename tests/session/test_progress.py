"""What a terminal shows while a cell runs: where it is, and how long it will take."""

from __future__ import annotations

import pytest

from specdec_lab.session.progress import Progress, minutes


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_line_names_session_cell_requests_and_time_left(clock: Clock) -> None:
    progress = Progress("ngram r1", 3, clock)
    progress.begin()
    clock.now += 20
    assert progress.line("chat_c4", 10, 40) == (
        "ngram r1  [1/3] chat_c4  10/40 requests  0:20, about 1:00 left in this cell, 3:40 in this session"
    )


def test_no_time_left_is_guessed_before_there_is_a_pace(clock: Clock) -> None:
    progress = Progress("ngram r1", 2, clock)
    progress.begin()
    clock.now += 5
    assert progress.cell_left_s(0, 32) is None
    assert progress.cell_left_s(1, 32) is None
    assert "left" not in progress.line("chat_c4", 1, 32)


def test_later_cells_are_taken_to_last_as_long_as_those_known(clock: Clock) -> None:
    progress = Progress("ngram r1", 4, clock)
    progress.begin()
    clock.now += 60
    progress.finished(161.04)
    progress.begin()
    clock.now += 10
    assert progress.session_left_s(5, 15) == pytest.approx(20 + 2 * (60 + 30) / 2)
    assert progress.line("chat_c4", 5, 15).endswith("last cell 161.0 tok/s")


def test_the_last_cell_says_nothing_of_the_session(clock: Clock) -> None:
    progress = Progress("ngram r1", 1, clock)
    progress.begin()
    clock.now += 10
    assert "session" not in progress.line("chat_c4", 5, 15)
    assert progress.line("chat_c4", 15, 15).endswith("15/15 requests  0:10")


def test_the_speed_so_far_is_shown_as_soon_as_tokens_are_known(clock: Clock) -> None:
    progress = Progress("ngram r1", 1, clock)
    progress.begin()
    clock.now += 10
    assert "5/15 requests  152.1 tok/s so far  0:10, about 0:20 left" in progress.line("chat_c4", 5, 15, 1521)
    assert "so far" not in progress.line("chat_c4", 5, 15, 0)


def test_times_are_written_as_people_write_them() -> None:
    assert [minutes(s) for s in (0, 9.6, 65, 3599, 3725, -1)] == ["0:00", "0:10", "1:05", "59:59", "1:02:05", "0:00"]
