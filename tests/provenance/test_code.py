"""The digest of a stage's code changes when the code changes, and only then (E5, B6)."""

from pathlib import Path

import pytest

from specdec_lab.provenance import code


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    root = tmp_path / "specdec_lab"
    (root / "session").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "session" / "__init__.py").write_text("")
    (root / "session" / "measure.py").write_text(
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "from ..clock import now  # the clock\n"
        "if TYPE_CHECKING:\n    from ..judge import verdict\n"
        "def f():\n    from .. import late\n"
    )
    for name in ("clock", "judge", "late", "apart"):
        (root / f"{name}.py").write_text(f"def {name}():\n    return '# no comment'\n")
    monkeypatch.setattr(code, "PACKAGE", root)
    code._read.cache_clear()
    yield root
    code._read.cache_clear()


def test_imports_count_also_late_ones_and_type_only_ones_do_not(package):
    assert code.modules("measure") == ["clock", "late", "session.measure"]


@pytest.mark.parametrize("name", ["clock", "late"])
def test_a_change_in_an_imported_module_changes_the_digest(package, name):
    before = code.digest("measure")
    path = package / f"{name}.py"
    path.write_text(path.read_text() + "x = 1\n")
    code._read.cache_clear()
    assert code.digest("measure") != before


def test_comments_blank_lines_and_foreign_modules_do_not_count(package):
    before = code.digest("measure")
    for name in ("clock", "apart", "judge"):
        path = package / f"{name}.py"
        extra = "\n# another\n\n" if name == "clock" else "y = 2\n"
        path.write_text("# at the top\n" + path.read_text().replace("():", "():  # why") + extra)
    code._read.cache_clear()
    assert code.digest("measure") == before


def test_a_hash_sign_inside_a_string_is_no_comment(package):
    before = code.digest("measure")
    path = package / "clock.py"
    path.write_text(path.read_text().replace("# no comment", "# another text"))
    code._read.cache_clear()
    assert code.digest("measure") != before


def test_an_unknown_stage_is_an_error():
    with pytest.raises(KeyError):
        code.digest("nothing")
