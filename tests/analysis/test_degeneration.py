"""Loops and emptiness are recognised; sound texts with repetition in them are not called loops (M33)."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_lab.analysis.degeneration import fault, looping
from specdec_lab.analysis.identity import Text, differences, judge
from specdec_lab.analysis.synthetic import plain_text


@pytest.mark.parametrize(
    "text",
    [
        plain_text(1, 200) + " and then" * 80,
        "The same line.\n" * 40,
        plain_text(2, 100) + "0123456789abcdef" * 40,
        "ha " * 60,
        "ha" * 40,
    ],
)
def test_a_text_that_ends_in_turns_of_one_piece_is_a_loop(text: str) -> None:
    assert looping(text)
    assert fault(text) == "loop"


@pytest.mark.parametrize(
    "text",
    [
        plain_text(3),
        plain_text(4, 300) + "\n" + "-" * 80,
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 | 4 |",
        '{"a": 1, "b": 1, "c": 1, "d": 1}',
        "no no no",
        "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n\n\ndef h(x):\n    return x\n",
    ],
)
def test_a_sound_text_is_no_loop(text: str) -> None:
    assert fault(text) is None


def test_nothing_but_white_space_is_empty_and_no_text_is_no_fault() -> None:
    assert fault(" \n") == "empty"
    assert fault(None) is None


def test_a_loop_is_no_finding_where_the_baseline_loops_too() -> None:
    loop, other = "word and word " * 60, "some more of it " * 60
    ours, theirs = {"p": Text(loop, None, "length")}, {"p": Text(other, None, "length")}
    assert differences(ours, theirs)[0].degenerate is None
    sound = {"p": Text(plain_text(5), None, "stop")}
    assert differences(ours, sound)[0].degenerate == "loop"


def test_b2_what_the_baseline_does_too_in_another_start_is_no_fault_of_the_mode() -> None:
    n, loop = 40, plain_text(90, 200) + " and then" * 80
    sound = {f"p{i}": Text(plain_text(i), None, "stop") for i in range(n)}
    turned = {**sound, "p1": Text(loop, None, "length"), "p2": Text(plain_text(2, 500), None, "stop")}
    asked: dict[str, Any] = {"identical_share": 0.98, "temperature": 0.0, "lossy": False, "batched": True}
    found = judge([turned, sound], [sound, turned], **asked)
    assert (found.word, found.degenerate, found.truncated) == ("within own variation", 0, 0)
    alone = judge([turned, sound], [sound, sound], **asked)
    assert (alone.word, alone.degenerate, alone.truncated) == ("differs", 1, 1)


def test_b2_a_mode_that_goes_wrong_elsewhere_and_no_more_often_than_the_baseline_varies_as_it_does() -> None:
    n, loop = 40, plain_text(90, 200) + " and then" * 80
    sound = {f"p{i}": Text(plain_text(i), None, "stop") for i in range(n)}
    asked: dict[str, Any] = {"identical_share": 0.98, "temperature": 0.0, "lossy": False, "batched": True}
    ours, theirs = ({**sound, place: Text(loop, None, "length")} for place in ("p1", "p2"))
    found = judge([ours, sound], [sound, theirs], **asked)
    assert (found.word, found.degenerate) == ("within own variation", 1)
    (said,) = [one.message for one in found.reasons if one.code == "degenerate"]
    assert said == "1 of 40 texts loop or are empty, in no start of the baseline."
