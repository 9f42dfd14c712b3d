"""What this machine lacks is refused as a run begins, at the line that asks for it; nobody else is asked for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_lab.dag import Lab
from specdec_lab.launchers import program
from specdec_lab.records.errors import UserError

sys.path.insert(0, str(Path(__file__).parent / "workflow"))
from attached import Project

CONFIG = """name: mine
engine:
  software: vllm
  launcher: process
  command: [no-such-vllm, serve]
  gpus: 0
checkpoints:
  target: {path: target}
  draft: {path: $NO_SUCH_VARIABLE/draft}
modes:
  baseline: {}
  ngram: {speculative: {method: ngram, num_speculative_tokens: 5}}
  draft: {speculative: {method: draft_model, model: draft, num_speculative_tokens: 5}}
"""
SESSIONS = [("session", {"mode": mode, "replicate": "1"}) for mode in ("baseline", "ngram", "draft")]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_SUCH_VARIABLE", raising=False)
    (tmp_path / "lab.yaml").write_text(CONFIG, encoding="utf-8")
    return Lab.load(["lab.yaml"], root=tmp_path)


def test_program_and_paths_are_refused_together_each_at_its_line(lab: Lab) -> None:
    with pytest.raises(UserError) as caught:
        lab.require_here(SESSIONS, servers_here=True)
    told = str(caught.value)
    assert told.count("there is no program 'no-such-vllm' on PATH") == 1
    assert "lab.yaml:5:" in told
    assert "modes: baseline, ngram, draft" in told
    assert "there is no such checkpoint: target" in told
    assert "lab.yaml:8:" in told
    assert "needs the variable NO_SUCH_VARIABLE, which is not set" in told
    assert "lab.yaml:9:" in told


def test_only_what_is_going_to_run_is_asked_for(lab: Lab, tmp_path: Path) -> None:
    lab.require_here([("resolve", {}), ("prompts", {}), ("compare", {})], servers_here=True)
    (tmp_path / "target").mkdir()
    with pytest.raises(UserError, match=r"^checkpoints\.target\.path: .* there are no weights"):
        lab.require_here(SESSIONS[:2], servers_here=False)
    (tmp_path / "target" / "model.gguf").write_bytes(b"GGUF")
    lab.require_here(SESSIONS[:2], servers_here=False)
    lab.require_here([("checkpoint", {"checkpoint": "target"})], servers_here=True)
    with pytest.raises(UserError, match=r"^checkpoints\.draft\.path: "):
        lab.require_here([("checkpoint", {"checkpoint": "draft"})], servers_here=True)
    with pytest.raises(UserError, match=r"^engine\.command: .*no-such-vllm"):
        lab.require_here(SESSIONS[:1], servers_here=True)


def test_each_way_in_which_a_program_cannot_be_started_is_told_with_its_mend(tmp_path: Path) -> None:
    plain, script = tmp_path / "plain", tmp_path / "script"
    plain.write_text("x", encoding="utf-8")
    script.write_text("#!/no/such/python3\n", encoding="utf-8")
    script.chmod(0o755)
    for name, cause, fix in (
        ("no-such-program", "on PATH", "full path"),
        (str(tmp_path / "none"), "does not exist", "Check the path"),
        (str(tmp_path), "is a folder", "program in it"),
        ("~/venv/bin/vllm", "no program", "not expanded"),
        ("$HOME/venv/bin/vllm", "no program", "not expanded"),
        (str(plain), "may not be executed", "chmod +x"),
        (str(script), "asks for /no/such/python3", "Install it anew"),
    ):
        found = program.fault(name)
        assert found is not None, name
        assert cause in found[0]
        assert fix in found[1]
    assert program.fault(sys.executable) is None
    assert program.fault("sh") is None


class Missing(Project):
    """A project whose program and target are not here."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "http://127.0.0.1:9")
        self.config["engine"] = {"software": "vllm", "launcher": "process", "command": ["no-such-vllm"], "gpus": 0}
        self.config["checkpoints"] = {"target": {"path": "no-such-model"}}
        self.config["modes"]["other"] = {"speculative": {"method": "ngram", "num_speculative_tokens": 5}}
        (self.folder / "lab.yaml").write_text(json.dumps(self.config, indent=1), encoding="utf-8")


def said(done: subprocess.CompletedProcess[str]) -> str:
    return done.stdout + done.stderr


@pytest.mark.workflow
@pytest.mark.slow
def test_a_real_run_stops_before_its_first_job_and_a_dry_run_does_not(tmp_path: Path) -> None:
    project = Missing(tmp_path)
    dry = project.snakemake("--cores", "1", "--dry-run")
    assert dry.returncode == 0, said(dry)
    done = project.snakemake("--cores", "1")
    assert done.returncode == 1
    for words in ("lab.yaml:", "no program 'no-such-vllm' on PATH", "no such checkpoint: no-such-model"):
        assert said(done).count(words) >= 1
    assert "Traceback" not in said(done)
    assert not project.results.exists() or not any(path.is_file() for path in project.results.rglob("*"))
    again = project.snakemake("--cores", "1", "--until", "prompts")
    assert again.returncode == 0, said(again)
    assert (project.results / "prompts.jsonl").is_file()
