"""What is told after a run that failed or was stopped: the cause, and what to run next (M19)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from specdec_lab.asked import Asked
from specdec_lab.records.session import Failure
from specdec_lab.records.spec import ServerSpec, SessionSpec
from specdec_lab.session import aftermath
from specdec_lab.session.aftermath import after_error

SPEC = SessionSpec(server=ServerSpec(engine="openai", launcher="attach"), checkpoints={}, against=None)
GO_ON = "Run the same command again to go on: cells that are complete are kept."


def fail(results: Path, mode: str, **more: Any) -> None:
    told = {"code": "server_died", "cause": "The server died.", "place": "here", "fix": "Mend this.", "log": "a.log"}
    failure = Failure(mode=mode, replicate=1, spec=SPEC, at="2026-01-01T00:00:00Z", **{**told, **more})
    failure.write(results / "sessions" / mode / "r1" / "failure.json")


def test_a_run_that_was_stopped_before_any_session_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after_error(str(tmp_path), Asked())
    assert capsys.readouterr().err == f"The run is not finished. {GO_ON}\n"


def test_a_session_that_was_stopped_has_nothing_to_mend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fail(tmp_path, "ngram", code="interrupted", cause="ended by SIGINT", log=None)
    after_error(str(tmp_path), Asked())
    assert capsys.readouterr().err.splitlines() == [
        "Mode ngram, replicate 1 was stopped: ended by SIGINT.",
        f"The run is not finished. {GO_ON}",
    ]


def test_a_session_that_failed_is_told_with_its_fix_and_its_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(tmp_path, "draft")
    fail(tmp_path, "ngram", code="interrupted", cause="ended by SIGINT", log=None)
    after_error(str(tmp_path), Asked())
    said = capsys.readouterr().err
    assert said.splitlines()[1:] == [
        "Mode draft, replicate 1 failed: The server died.",
        "  where: here",
        "  fix:   Mend this.",
        "  log:   a.log",
        "Mend it and run the same command again: what was measured is kept and not measured twice.",
    ]


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
