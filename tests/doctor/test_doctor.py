"""`specdec doctor` works on a machine with nothing, says what a config lacks, never shows a token (M8, M9, C1, E9)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specdec_lab.doctor import examine, hardware, software, storage
from specdec_lab.doctor.line import Needs
from specdec_lab.records.spec import CheckpointSpec, ServerSpec

RUN = [sys.executable, "-c", "from specdec_lab.cli import main; main()", "doctor"]
VLLM = ServerSpec(engine="vllm", launcher="docker", image="vllm/vllm-openai:v0.33.0")
CONFIG = """
name: t
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints: {target: {path: %s}}
modes: {baseline: {}, ngram: {speculative: {method: ngram-simple}}}
workload: {kinds: [json], requests: 2}
load: {concurrency: [1]}
"""


def doctor(*words, cwd, **env):
    given = {**os.environ, "DOCKER_HOST": "unix:///no/such/docker.sock", "HF_HOME": str(cwd / "hf"), **env}
    given["SPECDEC_STATE_DIR"] = str(cwd / "state")
    return subprocess.run([*RUN, *words], cwd=cwd, env=given, capture_output=True, text=True, timeout=60)


def test_a_machine_with_nothing_gets_lines_with_fixes_and_no_failure(tmp_path):
    done = doctor("--json", cwd=tmp_path, PATH="/nowhere")
    answer = json.loads(done.stdout)
    assert done.returncode == 0, done.stdout
    assert answer["ok"]
    assert {line["status"] for line in answer["lines"]} <= {"ok", "warn"}
    assert all(line["fix"] for line in answer["lines"] if line["status"] == "warn")
    assert {"config", "Docker", "ports", "disk"} <= {line["check"] for line in answer["lines"]}


def test_an_empty_environment_gets_a_line_for_each_thing_that_is_missing(tmp_path):
    workflow = str(Path(__file__).parents[2] / "workflow")
    done = subprocess.run(
        RUN, cwd=tmp_path, env={"PATH": "/nowhere", "PYTHONPATH": workflow}, capture_output=True, text=True, timeout=60
    )
    assert "Traceback" not in done.stdout + done.stderr
    checks = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("ok  ", "warn", "FAIL"))]
    assert {"config", "GPU", "Docker", "ports", "token", "disk"} <= set(checks)
    assert "could not look" not in done.stdout


def test_a_config_for_this_machine_is_ready_and_one_with_a_missing_model_is_not(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "c.yaml").write_text(CONFIG % "model.gguf")
    done = doctor("--config", "c.yaml", cwd=tmp_path)
    assert "2 modes, 1 cells each" in done.stdout
    assert "FAIL  checkpoint" not in done.stdout
    (tmp_path / "c.yaml").write_text(CONFIG % "missing.gguf")
    done = doctor("--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "c.yaml:4: target: there is no such checkpoint: missing.gguf" in done.stdout


def test_a_missing_program_is_told_at_its_line_once(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    text = (CONFIG % "model.gguf").replace("gpus: 0}", "gpus: 0,\n  command: [no-such-server]}")
    (tmp_path / "c.yaml").write_text(text)
    done = doctor("--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.count("FAIL  program") == 1
    assert "c.yaml:4: there is no program 'no-such-server' on PATH" in done.stdout


def test_a_broken_config_is_one_failing_line_and_the_machine_is_looked_at_all_the_same(tmp_path):
    (tmp_path / "c.yaml").write_text("name: t\nengin: {}\n")
    done = doctor("--config", "c.yaml", cwd=tmp_path)
    assert done.returncode == 1
    assert "FAIL  config" in done.stdout
    assert "ports" in done.stdout


def test_the_token_is_named_as_present_and_never_shown(tmp_path):
    done = doctor(cwd=tmp_path, HF_TOKEN="hf_TESTSECRET123")
    assert "token is present" in done.stdout
    assert "TESTSECRET" not in done.stdout + done.stderr


def test_a_gated_checkpoint_without_a_token_fails_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    spec = CheckpointSpec(hub="org/gated", revision="0" * 40, gated=True)
    line = next(storage.token(Needs([VLLM], {"target": spec}, known=True)))
    assert (line.status, "licence" in line.fix) == ("fail", True)


@pytest.mark.parametrize(
    ("version", "status"), [("580.65.06", "ok"), ("575.57.08", "fail"), ("610.1", "ok"), (None, "fail")]
)
def test_m9_cuda_13_needs_a_driver_of_the_r580_line(monkeypatch, version, status):
    monkeypatch.setattr("specdec_lab.gpu.devices.driver", lambda: version)
    monkeypatch.setattr("specdec_lab.gpu.devices.cuda", lambda: "12.9")
    line = next(hardware.driver(Needs([VLLM], known=True)))
    assert line.status == status
    assert status == "ok" or "R580" in line.fix


def test_c1_docker_without_the_nvidia_runtime_fails_only_when_it_is_needed():
    assert next(software._runtime(Needs([VLLM], known=True), {"Runtimes": {"runc": {}}})).status == "fail"
    assert next(software._runtime(Needs(), {"Runtimes": {"runc": {}}})).status == "warn"
    assert next(software._runtime(Needs([VLLM], known=True), {"Runtimes": {"nvidia": {}}})).status == "ok"
    cdi = {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}
    assert next(software._runtime(Needs([VLLM], known=True), cdi)).status == "ok"


def test_a_missing_program_is_named():
    server = ServerSpec(engine="vllm", launcher="process", command=["/no/such/vllm", "serve"], gpus=0)
    line = next(software.programs(Needs([server], known=True)))
    assert (line.status, "/no/such/vllm" in line.found) == ("fail", True)


def test_e9_a_read_only_results_folder_fails(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda place, _how: tmp_path not in [place, *place.parents])
    lines = list(storage.folders(Needs(results=str(tmp_path / "results"), known=True)))
    assert (lines[0].check, lines[0].status) == ("folders", "fail")


def test_a_check_that_breaks_does_not_hide_the_others(monkeypatch):
    def broken(_needs):
        raise RuntimeError("odd machine")
        yield

    monkeypatch.setattr(examine, "CHECKS", (broken, software.network))
    lines = examine.examine(None)
    assert [line.check for line in lines] == ["config", "broken", "ports"]
    assert "odd machine" in lines[1].found


def test_a_failed_servers_log_is_explained(tmp_path):
    log = Path(__file__).parents[1] / "fixtures" / "logs" / "vllm_vocab_mismatch.log"
    done = doctor("--log", str(log), "--exit-code", "1", cwd=tmp_path)
    assert done.returncode == 1
    assert "do not share one vocabulary" in done.stdout
    assert "fix:" in done.stdout
    (tmp_path / "fine.log").write_text("INFO all is well\n")
    assert doctor("--log", "fine.log", cwd=tmp_path).returncode == 0
