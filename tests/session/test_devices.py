"""Two runs never share a device, wherever they were started; a dead run holds nothing (cases C4, E6)."""

import subprocess
import sys
import time

import pytest

from specdec_lab.records.errors import UserError
from specdec_lab.session import devices


@pytest.fixture(autouse=True)
def own_locks(tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_LOCK_DIR", str(tmp_path / "locks"))
    monkeypatch.setattr(devices, "_RETRY_S", 0.02)


HOLD = """
import sys, time
from specdec_lab.session import devices
with devices.held(0, lambda text: None):
    print("held", flush=True)
    time.sleep(60)
"""


def holder() -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_cpu_server_holds_the_cpu_and_gets_no_gpu():
    with devices.held(0, print) as held:
        assert held == []
        assert (devices.lock_folder() / "cpu.lock").exists()


def test_another_run_waits_says_so_and_goes_on_when_the_first_is_killed():
    first = holder()
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        first.kill()

    begun = time.monotonic()
    with devices.held(0, say):
        assert time.monotonic() - begun < 20
    first.wait()
    assert said == ["waiting: another run holds cpu"]


def test_gpus_are_taken_one_by_one_by_id(monkeypatch):
    monkeypatch.setattr("specdec_lab.gpu.devices.visible", lambda: ["0", "1", "2"])
    with devices.held(1, print) as first, devices.held(2, print) as second:
        assert first == ["0"]
        assert second == ["1", "2"]


def test_more_gpus_than_there_are_is_an_error_at_once(monkeypatch):
    monkeypatch.setattr("specdec_lab.gpu.devices.visible", lambda: ["0"])
    with pytest.raises(UserError, match="2 GPUs are needed, 1 can be seen"), devices.held(2, print):
        pass


def test_a_lock_that_cannot_be_made_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECDEC_LOCK_DIR", str(tmp_path / "file" / "locks"))
    with pytest.raises(UserError, match="cannot be made"), devices.held(0, print):
        pass
