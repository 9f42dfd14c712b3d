"""Misspelt words: the nearest one whatever its case, and no far-fetched guess."""

from __future__ import annotations

import pytest

from specdec_lab.nearest import closest, nearest


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("temprature", ["temperature", "top_p"], "temperature"),
        ("eagle_3", ["EAGLE3", "NGRAM"], "EAGLE3"),
        ("NGRAM", ["ngram", "suffix"], "ngram"),
        ("zzz", ["ngram", "suffix"], None),
        ("ngram", [], None),
    ],
)
def test_the_closest_word_whatever_its_case(word: str, known: list[str], meant: str | None) -> None:
    assert closest(word, known) == meant


def test_a_message_lists_what_there_is_when_nothing_is_near() -> None:
    assert nearest("sufix", ["suffix", "ngram"]) == "did you mean `suffix`?"
    assert nearest("zzz", ["suffix", "ngram"]) == "known are: ngram, suffix"
