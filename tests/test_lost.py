"""Cell files of finished sessions that are gone or cut off."""

from pathlib import Path

import pytest

from specdec_lab.lost import lost, make_again, only_looks


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions" / "ngram" / "r1"
    folder.mkdir(parents=True)
    for name in ("session", "code_c1", "code_c2"):
        (folder / f"{name}.json").write_text('{\n "schema_version": 1\n}\n')
    return folder


def files(folder: Path) -> list[Path]:
    return [folder / f"{name}.json" for name in ("session", "code_c1", "code_c2")]


def test_a_whole_session_has_lost_nothing(session: Path) -> None:
    assert lost(files(session)) == []


@pytest.mark.parametrize("content", [None, "", "{", '{\n "rows": [1, 2'])
def test_a_file_that_is_gone_or_cut_is_lost(session: Path, content: str | None) -> None:
    cell = session / "code_c2.json"
    cell.unlink() if content is None else cell.write_text(content)
    assert lost(files(session)) == [cell]


def test_a_session_that_is_not_finished_has_lost_nothing_yet(session: Path) -> None:
    (session / "session.json").unlink()
    (session / "code_c2.json").unlink()
    assert lost(files(session)) == []


def test_what_is_left_goes_with_the_comparison_that_was_made_of_it(session: Path, tmp_path: Path) -> None:
    comparison, cell = tmp_path / "comparison.json", session / "code_c2.json"
    comparison.write_text("{}\n")
    cell.write_text("{")
    make_again([cell, session / "gone.json"], comparison)
    assert not cell.exists()
    assert not comparison.exists()


@pytest.mark.parametrize(
    ("line", "looks"),
    [
        ("--cores 1", False),
        ("--cores 1 --resources gpu=1 --configfile mine.yaml", False),
        ("-n", True),
        ("-np", True),
        ("--dry-run --cores 1", True),
        ("--report out.html", True),
        ("--unlock", True),
        ("-c1 --nolock", False),
    ],
)
def test_a_command_that_only_looks_is_known(line: str, looks: bool) -> None:
    assert only_looks(line.split()) is looks
