"""A folder that need not be there yet: whether it can be written to is known before anything runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specdec_lab.records.errors import UserError
from specdec_lab.writable import existing, require_writable


def test_a_folder_that_can_be_made_is_taken(tmp_path: Path) -> None:
    require_writable(tmp_path / "results" / "name", "of the results", "")
    assert existing(tmp_path / "results" / "name") == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="A file stands where the folder of the results belongs") as caught:
        require_writable(tmp_path / "results" / "name", "of the results", "give the config another `name`")
    assert caught.value.place == str(tmp_path / "results")
    assert caught.value.fix == "Move it away, or give the config another `name`."


def test_a_folder_without_the_right_to_write_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # By way of os.access, because these tests may run as root, who may write everywhere.
    monkeypatch.setattr(os, "access", lambda path, rights: not (path == tmp_path and rights & os.W_OK))
    with pytest.raises(UserError, match="The folder of the results cannot be written to") as caught:
        require_writable(tmp_path / "new" / "name", "of the results", "run elsewhere")
    assert caught.value.place == str(tmp_path)
    assert caught.value.fix == "Change its owner or rights, or run elsewhere."
