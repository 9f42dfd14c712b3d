"""`specdec doctor` works on a machine with nothing, says what a config lacks, never shows a token (M8, M9, C1, E9)."""

import json
import os
import subprocess
import sys
import time
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
    lines = examine.examine([])
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


def test_without_a_config_the_default_one_is_read_and_that_is_said(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text(CONFIG % "missing.gguf")
    done = doctor(cwd=tmp_path)
    assert done.returncode == 1
    assert "config/config.yaml (the default, as --config names none): 2 modes" in done.stdout
    assert "config/config.yaml:4: target: there is no such checkpoint: missing.gguf" in done.stdout
    (tmp_path / "other.yaml").write_text(CONFIG % "model.gguf")
    assert "other.yaml: 2 modes" in doctor("--config", "other.yaml", cwd=tmp_path).stdout
    (tmp_path / "config" / "config.yaml").write_text("engin: {}\n")
    assert "FAIL  config          config/config.yaml (the default" in doctor(cwd=tmp_path).stdout


def test_without_any_config_the_machine_in_general_is_looked_at(tmp_path):
    assert "none given, and no config/config.yaml here: the machine in general" in doctor(cwd=tmp_path).stdout


def test_several_configs_are_laid_upon_each_other(tmp_path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    (tmp_path / "a.yaml").write_text(CONFIG % "missing.gguf")
    (tmp_path / "b.yaml").write_text("checkpoints: {target: {path: model.gguf}}\nload: {concurrency: [1, 2]}\n")
    done = doctor("--config", "a.yaml", "--config", "b.yaml", cwd=tmp_path)
    assert "a.yaml, b.yaml: 2 modes, 2 cells each" in done.stdout
    assert "no such checkpoint" not in done.stdout
    done = doctor("--config", "b.yaml", "--config", "a.yaml", cwd=tmp_path)
    assert "b.yaml, a.yaml: 2 modes, 1 cells each" in done.stdout
    assert "a.yaml:4: target: there is no such checkpoint: missing.gguf" in done.stdout
    done = doctor("--config", "a.yaml", "--config", "none.yaml", cwd=tmp_path)
    assert "FAIL  config" in done.stdout
    assert "none.yaml does not exist" in done.stdout


@pytest.mark.timeout(60)
@pytest.mark.parametrize("prompts", ["/dev/zero", "pipe"])
def test_only_regular_files_are_read(tmp_path, prompts):
    os.mkfifo(tmp_path / "pipe")
    done = doctor("--config", "pipe", cwd=tmp_path)
    assert (done.returncode, "pipe is no regular file" in done.stdout) == (1, True)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    text = (CONFIG % "model.gguf").replace("{kinds: [json]", f"{{prompts: {prompts}")
    (tmp_path / "c.yaml").write_text(text)
    done = doctor("--config", "c.yaml", cwd=tmp_path)
    assert (done.returncode, "c.yaml:6" in done.stdout, "no regular file" in done.stdout) == (1, True, True)


@pytest.mark.timeout(60)
def test_a_log_is_a_regular_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, said in (
        ("pipe", "no regular file"),
        ("/dev/zero", "no regular file"),
        (".", "folder"),
        ("x", "No such"),
    ):
        done = doctor("--log", name, cwd=tmp_path)
        assert done.returncode == 1
        assert said in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def test_of_a_large_log_the_end_is_read_and_that_is_said(tmp_path):
    log = Path(__file__).parents[1] / "fixtures" / "logs" / "vllm_vocab_mismatch.log"
    with (tmp_path / "large.log").open("wb") as file:
        file.write(b"INFO all is well\n" * 2**18)
        file.write(log.read_bytes())
    done = doctor("--log", "large.log", "--exit-code", "1", cwd=tmp_path)
    assert "do not share one vocabulary" in done.stdout
    assert "Only the last 4 MiB of this log were read; its lines are counted from there." in done.stdout
    answer = json.loads(doctor("--log", "large.log", "--json", cwd=tmp_path).stdout)
    assert answer["skipped_bytes"] == (tmp_path / "large.log").stat().st_size - 4 * 2**20


def test_a_log_without_an_error_shows_no_failure_unless_the_server_ended(tmp_path):
    (tmp_path / "unknown.log").write_text("lorem ipsum\n")
    done = doctor("--log", "unknown.log", cwd=tmp_path)
    assert done.returncode == 0
    assert "No failure that is known, and no error, in this log." in done.stdout
    assert "--exit-code" in done.stdout
    done = doctor("--log", "unknown.log", "--exit-code", "1", cwd=tmp_path)
    assert done.returncode == 1


def test_a_checkpoint_folder_is_looked_at_and_never_read_through(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "notes.md").write_bytes(b"x")
    os.mkfifo(tmp_path / "deep" / "pipe")
    monkeypatch.setattr("specdec_lab.checkpoints.local.locate", lambda _spec: pytest.fail("reads every byte"))

    def line(path):
        return next(storage.found_checkpoints(Needs([VLLM], {"target": CheckpointSpec(path=str(path))}, known=True)))

    assert line(tmp_path / "deep").status == "fail"
    assert "safetensors" in line(tmp_path / "deep").fix
    assert line(tmp_path / "deep" / "pipe").status == "fail"
    (tmp_path / "deep" / "config.json").write_bytes(b"{}")
    (tmp_path / "deep" / "model.gguf").write_bytes(b"GGUF" * 10**6)
    assert (line(tmp_path / "deep").status, "0.00 GB" in line(tmp_path / "deep").found) == ("ok", True)
    assert line(tmp_path / "deep" / "model.gguf").status == "ok"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("failed", "warned", "said"),
    [(0, 0, "Ready."), (0, 1, "Ready, with 1 remark."), (0, 2, "Ready, with 2 remarks."), (1, 1, "1 to mend")],
)
def test_the_last_line_counts_in_words(failed, warned, said):
    from specdec_lab.cli.doctor import _verdict

    assert said in _verdict(failed, warned)


def test_a_log_of_few_errors_among_many_quiet_lines_is_searched_quickly():
    from specdec_lab.failures import diagnose

    told = (Path(__file__).parents[1] / "fixtures" / "logs" / "vllm_vocab_mismatch.log").read_text()
    start = time.process_time()
    found = diagnose((told + "INFO all is well\n" * 2**16) * 2, None)
    assert found is not None
    assert time.process_time() - start < 5
