"""A config file is read as it was meant, or refused with its place (cases E1, E2)."""

import os
import re
from pathlib import Path

import pytest

from specdec_lab.config.strict_yaml import Place, load, overlay
from specdec_lab.records.errors import UserError


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str, name: str = "a.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode("utf-8"))
        return path

    return write


def test_e2_numbers_are_numbers(written):
    data = load(written("a: 1e-3\nb: 1.5e3\nc: 1.0e5\nd: .5\ne: 12\nf: 0.90\n")).data
    assert data == {"a": 0.001, "b": 1500.0, "c": 100000.0, "d": 0.5, "e": 12, "f": 0.9}
    assert type(data["e"]) is int


def test_e2_a_whole_number_with_an_exponent_is_whole_and_a_point_stays_a_point(written):
    data = load(written("a: 1e3\nb: 64.0\nc: +5\nd: 1e20\ne: .5\n")).data
    assert {key: (value, type(value)) for key, value in data.items()} == {
        "a": (1000, int),
        "b": (64.0, float),
        "c": (5, int),
        "d": (1e20, float),
        "e": (0.5, float),
    }


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        ("1_000", "Write 1000,"),
        ("-1_000", "Write -1000,"),
        ("1__0", "Write 10,"),
        ("1_000.5", "Write 1000.5,"),
        ("0x10", "Write 16,"),
        ("0o17", "Write 15,"),
        ("0b101", "Write 5,"),
        ("012", "Write 12 without"),
        ("1:30", "Quote it"),
    ],
)
def test_e2_what_readers_take_for_different_numbers_is_refused_with_the_plain_number(written, value, instead):
    for text in (f"engine:\n  args: {{ctx-size: {value}}}\n", f"engine:\n  args:\n    ctx-size: {value}\n"):
        with pytest.raises(UserError, match="YAML readers") as caught:
            load(written(text))
        assert instead in caught.value.fix
        assert f'"{value}"' in caught.value.fix
        assert re.search(r"a\.yaml:[23]:", caught.value.place)
    assert load(written(f'a: "{value}"\n')).data == {"a": value}


def test_e2_thousands_with_a_comma_are_refused_and_lists_are_not(written):
    with pytest.raises(UserError) as caught:
        load(written("a: 1,000\n"))
    assert "Write 1000," in caught.value.fix
    assert load(written("a: [1, 2]\nb: {c: 1, d: 2}\ne: 127.0.0.1:8000\nf: x:1\n")).data["e"] == "127.0.0.1:8000"


def test_e2_words_of_yaml_1_1_are_booleans_as_values_and_refused_as_names(written):
    assert load(written("a: off\nb: 'off'\nc: yes\nd: y\n")).data == {"a": False, "b": "off", "c": True, "d": "y"}
    for name in ("no", "on", "off", "Yes", "null"):
        with pytest.raises(UserError, match="Quote it") as caught:
            load(written(f"modes:\n  {name}: {{}}\n"))
        assert caught.value.place.endswith("a.yaml:2:3")
    assert load(written('"no": 1\n')).data == {"no": 1}


def test_e2_a_repeated_key_names_both_places(written):
    with pytest.raises(UserError) as caught:
        load(written("modes:\n  ngram: {a: 1}\n  other: {}\n  ngram: {a: 2}\n"))
    assert "modes.ngram" in str(caught.value)
    assert "lines 2 and 4" in str(caught.value)


def test_e2_a_tab_shows_its_line(written):
    with pytest.raises(UserError) as caught:
        load(written("a:\n  b: 1\n\tc: 2\n"))
    assert caught.value.place.endswith(":3:1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: .nan\n", "not a finite number"),
        ("a: -.INF\n", "not a finite number"),
        ("a: 1e400\n", "too large for a number"),
        ("a: [1\n", "Not valid YAML"),
        ("- 1\n", "must be a mapping"),
        ("", "empty"),
        ("# only a comment\n", "empty"),
        ("a: &x [*x]\n", "contains itself"),
        ("<<: {a: 1}\n", "Merge keys"),
        ("? [a]\n: 1\n", "plain text"),
        ("a: 1\x00\n", "Not valid YAML"),
    ],
)
def test_what_cannot_be_read_is_said(written, text, said):
    with pytest.raises(UserError, match=said):
        load(written(text))


def test_a_file_that_is_not_there_or_not_utf8_is_said(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        load(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="folder"):
        load(tmp_path)
    (tmp_path / "latin.yaml").write_bytes("a: ü".encode("latin-1"))
    with pytest.raises(UserError, match="UTF-8"):
        load(tmp_path / "latin.yaml")


def test_a_byte_order_mark_and_windows_line_ends_are_read(written):
    assert load(written("\ufeffa: 1\r\nb: x\r\n")).data == {"a": 1, "b": "x"}


def test_an_overlay_merges_mappings_replaces_lists_and_keeps_places(written):
    under = load(written("a: {x: 1, z: [1, 2]}\nb: 1\n"))
    over = load(written("a:\n  z: [3]\nc: 2\n", "b.yaml"))
    both = overlay(under, over)
    assert both.data == {"a": {"x": 1, "z": [3]}, "b": 1, "c": 2}
    assert both.place(("a", "x")).file.name == "a.yaml"
    assert both.place(("a", "z", 0)) == Place(over.places[()].file, 2, 7)
    assert ("a", "z", 1) not in both.places


@pytest.mark.parametrize(
    "value",
    [
        "!env CTX",
        "{b: !include x.yaml}",
        "!x {b: 1}",
        "!x [1]",
        "!!str 5",
        '!!int "5"',
        "!!float 1",
        "&x !!set {b}",
        "! 5",
    ],
)
def test_a_tag_is_refused_and_never_passed_over(written, value):
    with pytest.raises(UserError, match=r"The tag `!.*` means nothing here") as caught:
        load(written(f"z: 1\na: {value}\n"))
    assert "a.yaml:2:" in caught.value.place
    assert "tag:yaml.org" not in str(caught.value)


def test_what_only_looks_like_a_tag_is_text(written):
    assert load(written("a: '!!str 5'\nb: |\n  !x\n")).data == {"a": "!!str 5", "b": "!x\n"}


@pytest.mark.parametrize("text", ["a: |\n  x\n  \ty\n"])
def test_a_tab_that_indents_nothing_is_no_fault(written, text):
    assert load(written(text)).data


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["a: " + "[" * 3000, "a: " + "[" * 3000 + "]" * 3000, "a: " + "{b: " * 3000, "a:\n  " + "- " * 3000 + "x\n"]
)
def test_what_is_nested_without_end_is_refused_with_the_line(written, text):
    with pytest.raises(UserError, match="nested more than 50 deep") as caught:
        load(written("n: 1\n" + text))
    assert re.search(r"a\.yaml:[23]:\d+$", caught.value.place)


@pytest.mark.timeout(20)
def test_aliases_that_nest_or_multiply_are_refused_with_the_line(written):
    deep = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 500))
    with pytest.raises(UserError, match="nested more than 50 deep") as caught:
        load(written(deep))
    assert re.search(r"a\.yaml:\d+:\d+$", caught.value.place)
    many = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    with pytest.raises(UserError, match="more than 100,000 values") as caught:
        load(written(many))
    assert re.search(r"a\.yaml:\d+:\d+$", caught.value.place)


def test_forty_deep_is_read(written):
    assert load(written("a: " + "[" * 40 + "]" * 40)).data["a"]


@pytest.mark.timeout(20)
def test_only_a_regular_file_of_a_size_that_people_write_is_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(UserError, match="no regular file") as caught:
            load(tmp_path / name)
        assert caught.value.place == str(tmp_path / name)
    (tmp_path / "large.yaml").write_text("# " + "x" * 2**20)
    with pytest.raises(UserError, match="1,048,578 bytes, which no config has"):
        load(tmp_path / "large.yaml")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(UserError, match="does not exist"):
        load(tmp_path / "dangling")
