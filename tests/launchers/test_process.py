"""Servers as processes: started, watched, ended with everything they started, swept after a kill (M19, C2, C7)."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from specdec_lab import launchers
from specdec_lab.launchers.base import LaunchPlan
from specdec_lab.launchers.process import MARKER, server_environment
from specdec_lab.records.errors import UserError

LISTENER = (
    "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])));"
    "print('up', flush=True); time.sleep(60)"
)
ESCAPING = textwrap.dedent(
    """
    import os, subprocess, sys, time
    # A child in a session of its own, as a daemon would be, and deaf to TERM.
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    deaf += "print('deaf', flush=True); time.sleep(120)"
    child = subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
    print("child", child.pid, flush=True)
    time.sleep(120)
    """
)


@pytest.fixture(autouse=True)
def _own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_STATE_DIR", str(tmp_path / "state"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def alive(pid: int) -> bool:
    """A zombie that nobody reaps yet is gone all the same."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_for(condition, seconds=10.0):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("did not happen in time")


def plan(tmp_path: Path, code: str, *words: str, **more) -> LaunchPlan:
    return LaunchPlan(name="t", argv=[sys.executable, "-c", code, *words], log=tmp_path / "server.log", **more)


def test_a_server_lives_owns_its_port_and_is_gone_after_stop(tmp_path):
    port = free_port()
    running = launchers.get("process").start(plan(tmp_path, LISTENER, str(port), port=port))
    wait_for(lambda: "up" in (tmp_path / "server.log").read_text())
    pid = int(running.facts()["pid"])
    assert running.exited() is None
    assert running.owns_port() is True
    assert running.base_url == f"http://127.0.0.1:{port}"
    running.stop(5)
    running.stop(5)
    assert not alive(pid)
    assert list((tmp_path / "state" / "servers").iterdir()) == []


def test_a_stranger_on_the_port_is_not_taken_for_ours(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        running = launchers.get("process").start(plan(tmp_path, "import time; time.sleep(30)", port=port))
        assert running.owns_port() is False
        running.stop(2)


@pytest.mark.parametrize(("code", "expected"), [("raise SystemExit(3)", 3), ("import os; os.abort()", -6)])
def test_c2_an_exit_is_noticed_with_its_code_and_the_whole_log_is_kept(tmp_path, code, expected):
    running = launchers.get("process").start(plan(tmp_path, f"print('first line', flush=True); {code}"))
    end = wait_for(running.exited, 5)
    assert end.code == expected
    assert (tmp_path / "server.log").read_text().startswith("first line")
    running.stop(1)


def test_c7_children_that_left_the_group_and_ignore_term_are_ended_too(tmp_path):
    running = launchers.get("process").start(plan(tmp_path, ESCAPING))
    text = wait_for(lambda: "deaf" in (t := (tmp_path / "server.log").read_text()) and t)
    child = int(text.split("child ")[1].split()[0])
    running.stop(0.5)
    assert not alive(child)


def test_c7_orphans_are_ended_when_the_server_was_killed_alone(tmp_path):
    running = launchers.get("process").start(plan(tmp_path, ESCAPING))
    text = wait_for(lambda: "deaf" in (t := (tmp_path / "server.log").read_text()) and t)
    child = int(text.split("child ")[1].split()[0])
    os.kill(int(running.facts()["pid"]), signal.SIGKILL)
    end = wait_for(running.exited, 15)
    assert end.code == -9
    assert not alive(child)
    running.stop(1)


def lab_with_server(tmp_path: Path) -> tuple[subprocess.Popen, list[int]]:
    code = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from specdec_lab import launchers
        from specdec_lab.launchers.base import LaunchPlan
        r = launchers.get("process").start(
            LaunchPlan(name="t", argv=[sys.executable, "-c", {ESCAPING!r}], log=Path({str(tmp_path / "server.log")!r})))
        print(r._guardian.pid, flush=True)
        time.sleep(60)
        """
    )
    lab = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    guardian = int(lab.stdout.readline())
    text = wait_for(lambda: (f := tmp_path / "server.log").exists() and "deaf" in (t := f.read_text()) and t)
    return lab, [guardian, *(p.pid for p in psutil.Process(guardian).children(recursive=True)), int(text.split()[1])]


def test_c7_kill_9_of_the_lab_ends_its_server_and_the_next_start_sweeps_the_trace(tmp_path):
    lab, pids = lab_with_server(tmp_path)
    lab.kill()
    lab.wait()
    said = launchers.get("process").sweep()
    wait_for(lambda: not any(alive(pid) for pid in pids), 45)
    assert list((tmp_path / "state" / "servers").iterdir()) == []
    assert launchers.get("process").sweep() == []
    assert all("t" in line for line in said)


def test_c7_kill_9_of_lab_and_guardian_leaves_nothing_after_the_sweep(tmp_path):
    lab, pids = lab_with_server(tmp_path)
    os.kill(pids[0], signal.SIGKILL)
    lab.kill()
    lab.wait()
    said = launchers.get("process").sweep()
    assert not any(alive(pid) for pid in pids)
    assert len(said) == 1


def test_the_sweep_leaves_a_living_run_in_another_folder_alone(tmp_path):
    lab, pids = lab_with_server(tmp_path)
    assert launchers.get("process").sweep() == []
    assert all(alive(pid) for pid in pids)
    lab.kill()
    lab.wait()
    launchers.get("process").sweep()


def test_thread_limits_of_snakemake_and_secrets_do_not_reach_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("HF_TOKEN", "hf_TESTSECRET123")
    env = server_environment(plan(tmp_path, "", env={"VLLM_X": "1"}, devices=["0", "2"]), "m")
    assert "OMP_NUM_THREADS" not in env
    assert "hf_TESTSECRET123" not in env.values()
    assert (env["CUDA_VISIBLE_DEVICES"], env["VLLM_X"], env[MARKER]) == ("0,2", "1", "m")


def test_a_missing_program_is_a_user_error_and_leaves_no_trace(tmp_path):
    with pytest.raises(UserError, match="does not exist"):
        launchers.get("process").start(LaunchPlan(name="t", argv=["/no/such/program"], log=tmp_path / "l"))
    assert not (tmp_path / "state").exists()
