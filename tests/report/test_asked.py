"""What an earlier config measured stays in the folder and is no part of the run any more."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import compare, decision, tables
from specdec_lab.asked import Asked, asked, session_folders
from specdec_lab.bundle import archive
from specdec_lab.bundle.manifest import Manifest
from specdec_lab.bundle.pack import pack
from specdec_lab.bundle.verify import verify
from specdec_lab.dag import Lab
from specdec_lab.records.errors import UserError
from specdec_lab.report import source
from specdec_lab.session.aftermath import failures

Plan = dict[str, Any]


def fewer_replicates(plan: Plan) -> None:
    for mode in plan["modes"]:
        mode["replicates"] = 2


def without_a_mode(plan: Plan) -> None:
    plan["modes"] = [mode for mode in plan["modes"] if mode["name"] != "draft_k4"]


def without_a_load(plan: Plan) -> None:
    plan["cells"] = [cell for cell in plan["cells"] if cell["load"]["concurrency"] != 16]


def without_a_kind(plan: Plan) -> None:
    plan["cells"] = [cell for cell in plan["cells"] if cell["kind"] != "chat"]


LEFT = {
    fewer_replicates: ["sessions/*/r3/*"],
    without_a_mode: ["sessions/draft_k4/*/*"],
    without_a_load: ["sessions/*/*/*_c16.json"],
    without_a_kind: ["sessions/*/*/chat_*.json"],
}


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    """The results folder of a finished run, for a test to change."""
    copied = Path(shutil.copytree(results, tmp_path / "project" / "results" / "made"))
    plan = json.loads((copied / "config.resolved.json").read_text())["plan"]
    config = {"modes": {mode["name"]: {} for mode in plan["modes"]}, "workload": {"prompts": None}}
    resolved = {"schema_version": 1, "config": config, "sessions": {}, "order": [], "plan": plan, "lab": "1"}
    (copied / "config.resolved.json").write_text(json.dumps(resolved))
    return copied


def judge(results: Path) -> dict[str, bytes]:
    """Tables and decision, as the workflow's rules write them."""
    tables.write(compare.compare(results), results)
    decision.write(results)
    return {name: (results / name).read_bytes() for name in ("comparison.json", "summary.csv", "decision.json")}


def ask_for(results: Path, change: Callable[[Plan], None]) -> None:
    resolved = json.loads((results / "config.resolved.json").read_text())
    change(resolved["plan"])
    (results / "config.resolved.json").write_text(json.dumps(resolved))


def remove_left(results: Path, change: Callable[[Plan], None]) -> set[str]:
    """Take away by hand what the new config does not ask for, as if it had never been measured."""
    gone = [path for pattern in LEFT[change] for path in results.glob(pattern)]
    for path in gone:
        path.unlink()
    return {path.relative_to(results).as_posix() for path in gone}


@pytest.mark.parametrize("change", LEFT, ids=lambda change: change.__name__)
def test_what_is_asked_no_more_changes_neither_table_nor_report_nor_bundle(
    folder: Path, tmp_path: Path, change: Callable[[Plan], None]
) -> None:
    ask_for(folder, change)
    there = {path: path.read_bytes() for path in folder.glob("sessions/*/*/*")}
    with_left = judge(folder)
    report = source.read(folder)
    bundle = pack(folder)
    assert {path: path.read_bytes() for path in folder.glob("sessions/*/*/*")} == there

    clean = Path(shutil.copytree(folder, tmp_path / "clean" / "results" / "made"))
    gone = remove_left(clean, change)
    assert gone
    assert judge(clean) == with_left
    alone = source.read(clean)
    assert (report.sessions, report.cells) == (alone.sessions, alone.cells)

    unpacked = archive.unpack(bundle, tmp_path / "unpacked")
    packed = {path.relative_to(unpacked / "results/made").as_posix() for path in unpacked.glob("results/made/**/*")}
    assert not packed & gone
    assert {path.relative_to(clean).as_posix() for path in clean.glob("sessions/*/*/*")} <= packed
    assert verify(bundle).good
    told = Manifest.read(folder / "bundle" / "manifest.json").left_out
    assert [one.message for one in told if one.code == "not_asked_for"] == [
        f"results/made: {len(gone)} files of sessions and cells that the config does not ask for"
    ]


def test_a_bundle_restored_over_results_with_more_sessions_packs_to_the_same_numbers(
    folder: Path, tmp_path: Path
) -> None:
    before = Path(shutil.copytree(folder, tmp_path / "other" / "results" / "made"))
    ask_for(folder, fewer_replicates)
    wanted = judge(folder)
    unpacked = archive.unpack(pack(folder), tmp_path / "unpacked")
    shutil.copytree(unpacked / "results" / "made", before, dirs_exist_ok=True)
    assert (before / "sessions" / "ngram" / "r3" / "session.json").is_file()
    assert judge(before) == wanted
    assert verify(pack(before)).good


def test_a_table_of_an_earlier_config_is_not_packed(folder: Path) -> None:
    ask_for(folder, fewer_replicates)
    with pytest.raises(UserError, match="another config"):
        pack(folder)


def test_a_failure_of_a_mode_that_is_asked_for_no_more_is_not_told(folder: Path) -> None:
    failure = {
        "mode": "draft_k4",
        "replicate": 1,
        "spec": json.loads((folder / "sessions/draft_k4/r1/session.json").read_text())["spec"],
        "at": "2026-01-01T00:00:00Z",
        "code": "oom",
        "cause": "no memory",
        "place": "",
        "fix": "",
    }
    (folder / "sessions/draft_k4/r1/failure.json").write_text(json.dumps(failure))
    assert [one.mode for one in failures(folder, asked(folder))] == ["draft_k4"]
    assert "draft_k4" in judge(folder)["comparison.json"].decode()
    ask_for(folder, without_a_mode)
    assert failures(folder, asked(folder)) == []
    assert "no memory" not in judge(folder)["comparison.json"].decode()


def test_logs_and_evidence_of_a_session_go_with_it() -> None:
    wanted = Asked(frozenset({("ngram", 1)}), frozenset({"code_c1"}))
    assert wanted.holds("logs/session_ngram_r1.log")
    assert not wanted.holds("logs/session_ngram_r2.log")
    assert wanted.holds("sessions/ngram/r1/server.log")
    assert not wanted.holds("sessions/ngram/r2/server.log")
    assert not wanted.holds("sessions/ngram/r1/partial/code_c4.json")
    assert wanted.holds("sessions/ngram/r1/partial/code_c1.json")
    assert not wanted.holds("sessions/draft/notes.txt")
    assert wanted.holds("comparison.json")
    assert Asked().holds("sessions/any/r9/chat_c4.json")


def test_without_a_resolved_config_everything_that_is_there_belongs_to_the_run(folder: Path) -> None:
    (folder / "config.resolved.json").unlink()
    (folder / "sessions" / "ngram" / "rest").mkdir()
    (folder / "sessions" / "ngram" / "r10").mkdir()
    assert [one.replicate for one in session_folders(folder) if one.mode == "ngram"] == [1, 2, 3, 10]


def test_the_plan_asks_for_the_sessions_that_the_workflow_runs(tmp_path: Path) -> None:
    config = {
        "name": "tried",
        "engine": {"software": "openai", "launcher": "attach", "served_model": "m", "base_url": "http://127.0.0.1:1"},
        "modes": {"baseline": {}, "other": {"speculative": {"method": "unknown"}}},
        "load": {"concurrency": [1, 4]},
        "protocol": {"replicates": 1, "placebo": True},
    }
    (tmp_path / "lab.yaml").write_text(json.dumps(config))
    lab = Lab.load([tmp_path / "lab.yaml"], root=tmp_path)
    assert lab.asked.sessions == set(lab.matrix.order)
    assert lab.asked.cells == set(lab.cell_names())
    assert all(lab.asked.holds(path.removeprefix(f"{lab.results}/")) for path in lab.session_files())
