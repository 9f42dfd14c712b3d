"""The pure part of the probe: what a server's candidates say of a first difference (B2, D4)."""

from __future__ import annotations

from specdec_lab.analysis.near_tie import TIE_GAP, Answer, Candidate, Question, Walk, beginning, read


def question(ours: str, theirs: str, at_char: int) -> Question:
    return Question("m", "chat_c1", "p", (("user", "hi"),), ours, theirs, at_char)


def test_asking_begins_before_the_word_in_which_the_texts_part() -> None:
    assert beginning(question("the red bat", "the red bar", 10)) == len("the red")
    assert beginning(question("bat", "bar", 2)) == 0
    assert beginning(question("line\nbat", "line\nbar", 7)) == len("line\n")


def test_two_candidates_close_together_are_a_near_tie() -> None:
    found = read([Candidate(" bar", -0.70), Candidate(" bat", -0.72), Candidate(" cat", -4.0)], " bat.", " bar.")
    assert isinstance(found, Answer)
    assert found.gap is not None
    assert found.gap < TIE_GAP
    assert (found.ours, found.theirs) == (" bat", " bar")


def test_a_token_that_the_target_did_not_want_is_real() -> None:
    found = read([Candidate(" bar", -0.01), Candidate(" bat", -5.0)], " bat.", " bar.")
    assert isinstance(found, Answer)
    assert found.gap is not None
    assert found.gap > TIE_GAP


def test_a_token_that_is_not_among_the_likeliest_gives_a_lower_bound() -> None:
    found = read([Candidate(" bar", -0.01), Candidate(" baz", -3.0)], " bat.", " bar.")
    assert isinstance(found, Answer)
    assert found.gap is not None
    assert abs(found.gap - 2.99) < 1e-9
    assert "at least" in found.note


def test_a_token_that_both_share_is_walked_over() -> None:
    assert read([Candidate(" ba", -0.1), Candidate(" c", -3.0)], " bat", " bar") == Walk(3)


def test_a_tie_that_fell_the_other_way_has_no_gap() -> None:
    found = read([Candidate(" bat", -0.69), Candidate(" bar", -0.70)], " bat", " bar")
    assert isinstance(found, Answer)
    assert found.gap == 0.0


def test_a_text_that_ended_is_led_to_by_the_end_token() -> None:
    found = read([Candidate(" more", -0.6), Candidate("<|im_end|>", -0.8)], "", " more text")
    assert isinstance(found, Answer)
    assert found.gap is not None
    assert abs(found.gap - 0.2) < 1e-9


def test_nothing_is_said_when_the_baselines_own_token_is_missing() -> None:
    found = read([Candidate(" cat", -0.1)], " bat", " bar")
    assert isinstance(found, Answer)
    assert found.gap is None
