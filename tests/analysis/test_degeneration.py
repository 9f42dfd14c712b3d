"""Loops and emptiness are recognised; sound texts with repetition in them are not called loops (M33)."""

from __future__ import annotations

from typing import Any

import pytest

from specdec_lab.analysis.degeneration import fault, looping
from specdec_lab.analysis.identity import Text, differences, judge
from specdec_lab.analysis.synthetic import flipped, plain_text


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


def test_b2_a_mode_that_goes_wrong_elsewhere_than_the_baseline_is_not_excused() -> None:
    n, loop = 40, plain_text(90, 200) + " and then" * 80
    sound = {f"p{i}": Text(plain_text(i), None, "stop") for i in range(n)}
    asked: dict[str, Any] = {"identical_share": 0.98, "temperature": 0.0, "lossy": False, "batched": True}
    ours, theirs = ({**sound, place: Text(loop, None, "length")} for place in ("p1", "p2"))
    found = judge([ours, sound], [sound, theirs], **asked)
    assert (found.word, found.degenerate) == ("undecided", 1)
    (said,) = [one.message for one in found.reasons if one.code == "degenerate"]
    assert said == "1 of 40 texts loop or are empty, in no start of the baseline."


SOUND = {f"p{i}": Text(plain_text(i), None, "stop") for i in range(20)}
LOOPING = {name: Text(plain_text(90 + i, 200) + " and then" * 80, None, "length") for i, name in enumerate(SOUND)}
SHIFTED = {name: Text("Well, " + (text.answer or "")[::-1], None, "stop") for name, text in SOUND.items()}


def some(texts: dict[str, Text], first: int, count: int) -> dict[str, Text]:
    """The sound texts, so many of which are another start's."""
    names = list(SOUND)[first : first + count]
    return {**SOUND, **{name: texts[name] for name in names}}


EMPTY = {name: Text("", None, "stop") for name in SOUND}
CUT = {name: Text((text.answer or "")[:300], None, "length") for name, text in SOUND.items()}


@pytest.mark.parametrize(
    ("mode", "baseline"),
    [
        pytest.param([LOOPING, LOOPING], [SOUND, LOOPING], id="second start loops"),
        pytest.param([LOOPING, LOOPING], [LOOPING, SOUND], id="first start loops, and the mode as it does"),
        pytest.param([SHIFTED, SHIFTED], [SOUND, {**SHIFTED, "p0": SOUND["p0"]}], id="another text from the start on"),
        pytest.param([some(CUT, 10, 5)] * 2, [SOUND, some(LOOPING, 0, 5)], id="cut here, loops there"),
        pytest.param([some(EMPTY, 10, 4)] * 2, [SOUND, some(EMPTY, 0, 4)], id="empty here and there"),
        pytest.param([SOUND, SOUND], [some(CUT, 0, 5), SOUND], id="the first start is cut short"),
    ],
)
def test_b2_a_baseline_that_goes_wrong_by_itself_is_no_reference(
    mode: list[dict[str, Text]], baseline: list[dict[str, Text]]
) -> None:
    found = judge(mode, baseline, identical_share=0.98, temperature=0.0, lossy=False, batched=False)
    assert found.word == "not judged"
    assert [one.code for one in found.reasons] == ["no_reference"]
    assert "differs from its own start in" in found.reasons[0].message


@pytest.mark.parametrize("count", [1, 2])
def test_b2_one_or_two_texts_that_go_wrong_leave_it_a_reference(count: int) -> None:
    found = judge(
        [SOUND, SOUND], [SOUND, some(LOOPING, 0, count)],
        identical_share=0.98, temperature=0.0, lossy=False, batched=False,
    )  # fmt: skip
    assert found.word == "same"


def test_d4_a_baseline_most_of_whose_long_texts_flip_late_is_still_a_reference() -> None:
    flips = [
        {name: Text(flipped(plain_text(i), 900 - 7 * i - k), None, "stop") for i, name in enumerate(SOUND)}
        for k in (0, 3, 5)
    ]
    found = judge(
        [some(flips[0], 0, 14), some(flips[1], 3, 14)], [SOUND, some(flips[2], 2, 14)],
        identical_share=0.98, temperature=0.0, lossy=False, batched=True,
    )  # fmt: skip
    assert found.word == "within own variation"
