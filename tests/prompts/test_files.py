"""The user's own prompts.jsonl: what is accepted, and the line of what is not (M14, case E3)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from specdec_lab import prompts
from specdec_lab.records.errors import UserError


def row(**changes: Any) -> dict[str, Any]:
    made = {"id": "p1", "kind": "chat", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 50, **changes}
    return {key: value for key, value in made.items() if value is not None}


def save(path: Path, rows: list[dict[str, Any] | str], end: str = "\n", head: bytes = b"") -> Path:
    lines = [line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in rows]
    path.write_bytes(head + end.join(lines).encode())
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "prompts.jsonl"


def refused(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        prompts.load(path)
    return caught.value


def test_e3_bom_crlf_and_a_blank_last_line_are_accepted(file: Path) -> None:
    save(file, [row(), row(id="p2"), ""], end="\r\n", head=b"\xef\xbb\xbf")
    loaded = prompts.load(file)
    assert [prompt.id for prompt in loaded] == ["p1", "p2"]
    assert loaded[0].messages[0].content == "Hello"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_e3_unicode_line_separators_stay_within_their_prompt(file: Path, separator: str) -> None:
    text = f"one{separator}two"
    raw = json.dumps(row(messages=[{"role": "user", "content": text}]), ensure_ascii=False)
    if separator < " ":
        raw = json.dumps(row(messages=[{"role": "user", "content": text}]))
    save(file, [raw, row(id="p2")])
    loaded = prompts.load(file)
    assert len(loaded) == 2
    assert loaded[0].messages[0].content == text


def test_e3_no_final_newline_and_the_same_text_under_two_ids(file: Path) -> None:
    assert len(prompts.load(save(file, [row(), row(id="p2")]))) == 2


@pytest.mark.parametrize(("first", "second"), [("p1", "p1"), (1, "1"), ("1", 1), (1, 1)])
def test_e3_duplicate_ids_are_refused_with_both_lines(file: Path, first: Any, second: Any) -> None:
    error = refused(save(file, [row(id=first), "", row(id="other"), row(id=second)]))
    assert "line 1 and on line 4" in error.cause


def test_e3_bad_json_is_placed_by_file_line_blank_lines_included(file: Path) -> None:
    error = refused(save(file, [row(), "", row(id="p2"), "", row(id="p3"), "", '{"id": "p4",', row(id="p5")]))
    assert error.place.endswith("line 7")
    assert "not JSON" in error.cause


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"messages": [{"role": "user", "content": "a\ud83d b"}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": "\ude42\ud83d"}]}, "messages.0.content"),
        ({"messages": [{"role": "us\ud83der", "content": "a"}]}, "messages.0.role"),
        ({"id": "p\ud83d"}, "id"),
        ({"kind": "\udfff"}, "kind"),
        ({"od\ud83dd": 1}, "A key"),
    ],
)
def test_half_of_a_surrogate_pair_is_refused_with_its_line(file: Path, changes: dict[str, Any], where: str) -> None:
    error = refused(save(file, [json.dumps(row(id="other")), json.dumps(row(**changes))]))
    assert error.place.endswith("line 2")
    assert error.cause.startswith(f"{where} holds half of a character (\\ud")
    str(error).encode()


def test_a_whole_pair_is_one_character(file: Path) -> None:
    text = json.dumps(row(messages=[{"role": "user", "content": "\U0001f642"}]))
    assert "\\ud83d\\ude42" in text
    assert prompts.load(save(file, [text]))[0].messages[0].content == "\U0001f642"


def test_line_ends_of_cr_alone_are_named(file: Path) -> None:
    error = refused(save(file, [row(), row(id="p2")], end="\r"))
    assert "carriage return (CR)" in error.cause
    assert "LF or CRLF" in error.fix


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n"])
def test_e3_an_empty_file_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert "no prompts" in refused(file).cause


def test_what_may_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        assert refused(place).fix == "Name a file of prompts, one a line."


def test_e3_a_blank_prompt_is_refused(file: Path) -> None:
    assert "blank" in refused(save(file, [row(messages=[{"role": "user", "content": "  \u3000\n"}])])).cause


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_tokens": None}, "max_tokens is missing"),
        ({"max_tokens": 0}, "max_tokens must be more than 0, not 0."),
        ({"max_tokens": "50"}, 'max_tokens must be a whole number, not "50".'),
        ({"max_tokens": True}, "max_tokens must be a whole number, not true."),
        ({"messages": []}, "messages is an empty list."),
        ({"messages": "Hello"}, 'messages must be a list, not "Hello".'),
        ({"messages": ["Hello"]}, 'messages.0 must be an object, not "Hello".'),
        ({"messages": [{"content": "Hello"}]}, "messages.0.role is missing."),
        ({"messages": [{"role": "robot", "content": "x"}]}, 'messages.0.role is "robot", which is none of'),
        ({"messages": [{"role": "user", "content": ["x"]}]}, 'messages.0.content must be text, not ["x"].'),
        ({"id": " "}, "id is blank"),
        ({"id": 1.5}, "id must be text, not 1.5."),
        ({"kind": ""}, "kind is blank"),
        ({"messages": None, "kind": None}, "kind, messages are missing"),
    ],
)
def test_m14_a_wrong_row_is_refused_with_its_line_and_its_key(file: Path, changes: dict[str, Any], words: str) -> None:
    error = refused(save(file, [row(id="first"), row(**changes)]))
    assert words in error.cause
    assert error.place.endswith("line 2")


@pytest.mark.parametrize(
    ("changes", "nearest"),
    [
        ({"max_token": 5}, "Did you mean `max_tokens`?"),
        ({"message": []}, "Did you mean `messages`?"),
        ({"Kind": "x"}, "Did you mean `kind`?"),
        ({"temprature": 0}, "`temperature` is the same for every prompt: write `workload.temperature`"),
        ({"topp": 1}, "`top_p` is the same for every prompt"),
        ({"zzz": 1}, "Valid here: id, kind, messages, max_tokens."),
    ],
)
def test_m14_an_unknown_key_names_the_nearest_valid_one(file: Path, changes: dict[str, Any], nearest: str) -> None:
    assert nearest in refused(save(file, [row(**changes)])).fix
    inner = row(messages=[{"role": "user", "contents": "Hello"}])
    assert "`content`" in refused(save(file, [inner])).fix


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "kind": "k", "id": "b", "messages": [{"role": "user", "content": "x"}], "max_tokens": 5}',
        '{"id": "a", "kind": "k", "messages": [{"role": "user", "role": "user", "content": "x"}], "max_tokens": 5}',
    ],
)
def test_m14_a_key_that_stands_twice_is_refused(file: Path, line: str) -> None:
    error = refused(save(file, [row(id="first"), line]))
    assert error.cause in ("The key `id` stands twice in one object.", "The key `role` stands twice in one object.")
    assert error.place.endswith("line 2")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"messages": [{"role": "user", "content": "a\0b"}]}, "messages.0.content holds a NUL character"),
        ({"id": "a\0"}, "id holds a control character"),
        ({"id": "a\nb"}, "id holds a control character"),
        ({"kind": "a\x1b[31m"}, "kind holds a control character"),
        ({"id": "x" * 201}, "id has 201 characters"),
        ({"id": 10**4000}, "id has 4001 characters"),
        ({"kind": "k" * 300}, "kind has 300 characters"),
    ],
)
def test_m14_names_and_texts_that_no_table_and_no_server_can_hold_are_refused(
    file: Path, changes: dict[str, Any], words: str
) -> None:
    error = refused(save(file, [row(id="first"), row(**changes)]))
    assert words in error.cause
    assert error.place.endswith("line 2")
    assert len(error.cause) < 120


def test_m14_tabs_and_line_feeds_stay_in_a_text(file: Path) -> None:
    text = "a\tb\n\x0cc"
    assert prompts.load(save(file, [row(messages=[{"role": "user", "content": text}])]))[0].messages[0].content == text


@pytest.mark.parametrize("content", ['{"id": NaN}', "[1]", "null", '"x"', "{" * 5000])
def test_m14_a_line_that_is_no_plain_object_is_refused(file: Path, content: str) -> None:
    assert refused(save(file, [content])).place.endswith("line 1")


def test_m14_wrong_encodings_are_named_with_their_line(file: Path) -> None:
    file.write_bytes(json.dumps(row()).encode() + b'\n{"id": "\xfc"}\n')
    assert refused(file).place.endswith("line 2")
    file.write_bytes(json.dumps(row()).encode("utf-16"))
    assert "UTF-16" in refused(file).cause


def test_m14_a_missing_file_is_a_user_error(file: Path) -> None:
    assert str(file) in refused(file).place


def test_m14_what_is_written_is_read_again_and_has_the_digest(file: Path) -> None:
    rows = prompts.generate(7)
    prompts.write(file, rows)
    assert prompts.load(file) == rows
    assert b"\r" not in file.read_bytes()
    import hashlib

    assert hashlib.sha256(file.read_bytes()).hexdigest() == prompts.digest(rows)
