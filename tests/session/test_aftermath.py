"""What failed is told once per cause, with every session that it hit."""

from pathlib import Path

import pytest
from tests.session.making import SPEC

from specdec_lab.asked import Asked
from specdec_lab.records.session import Failure
from specdec_lab.session import aftermath


def failure(mode: str, replicate: int, cause: str) -> Failure:
    return Failure(
        mode=mode,
        replicate=replicate,
        spec=SPEC,
        at="2026-01-01T00:00:00+00:00",
        cells_done=[],
        code="server_died",
        cause=cause,
        place=f"mode {mode}",
        fix="Mend the flag.",
        log=f"{mode}.log",
    )


def test_one_cause_of_several_sessions_is_told_once_with_their_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = [failure("baseline", 1, "no such flag"), failure("ngram", 1, "no such flag")]
    found += [failure("draft", 1, "no such draft"), failure("baseline", 2, "no such flag")]
    monkeypatch.setattr(aftermath, "failures", lambda *_: found)
    aftermath.after_error(str(tmp_path), Asked())
    told = capsys.readouterr().err
    assert told.count("no such flag") == 1
    assert "Modes baseline r1 r2, ngram r1 failed: no such flag" in told
    assert "Mode draft, replicate 1 failed: no such draft" in told
    assert told.count("log:") == 2
