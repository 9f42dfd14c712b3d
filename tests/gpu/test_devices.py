"""GPUs are free before a start and free again, and still, after a stop (M8, C4); nothing foreign is touched."""

import itertools
import sys
import time
from types import SimpleNamespace

import pytest

from specdec_lab.doctor import hardware
from specdec_lab.doctor.line import Needs
from specdec_lab.gpu import devices, sampler
from specdec_lab.records.errors import UserError
from specdec_lab.records.spec import ServerSpec

GIB = 2**30


class FakeNvml:
    """A scripted driver with two GPUs of 80 GiB."""

    class NVMLError(Exception):
        pass

    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, used=(0.3,), processes=(), broken=False, energy=True):
        self.used = itertools.chain(used, itertools.repeat(used[-1]))
        self.processes = processes
        self.broken = broken
        self.energy = iter(range(0, 10**9, 5000)) if energy else None

    def nvmlInit(self):
        if self.broken:
            error = self.NVMLError("NVML Shared Library Not Found" if self.broken is True else "NVML's words")
            error.value = 12 if self.broken is True else self.broken
            raise error

    def __getattr__(self, name):
        answers = {
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": self._handle,
            "nvmlDeviceGetHandleByUUID": lambda uuid: {"GPU-a": 0, "GPU-b": 1, "MIG-c": 2}[uuid],
            "nvmlDeviceGetIndex": self._index,
            "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": lambda _slice: 1,
            "nvmlDeviceGetName": lambda _handle: b"NVIDIA H200",
            "nvmlDeviceGetUUID": lambda handle: f"GPU-{'abc'[handle]}",
            "nvmlDeviceGetMemoryInfo": lambda _h: SimpleNamespace(used=int(next(self.used) * GIB), total=80 * GIB),
            "nvmlDeviceGetComputeRunningProcesses": lambda _h: list(self.processes),
            "nvmlDeviceGetEnforcedPowerLimit": lambda _h: 700_000,
            "nvmlSystemGetDriverVersion": lambda: "580.65.06",
            "nvmlSystemGetCudaDriverVersion_v2": lambda: 13000,
            "nvmlSystemGetProcessName": lambda _pid: b"python3",
            "nvmlDeviceGetTotalEnergyConsumption": self._energy,
            "nvmlDeviceGetPowerUsage": lambda _h: 350_000,
            "nvmlDeviceGetCurrentClocksEventReasons": lambda _h: 0x4,
            "nvmlDeviceGetClockInfo": lambda _h, _kind: 1980,
            "nvmlDeviceGetTemperature": lambda _h, _kind: 55,
        }
        return answers[name]

    def _index(self, handle):
        if handle > 1:
            raise self.NVMLError("Not Supported")
        return handle

    def _handle(self, index):
        if index > 1:
            raise self.NVMLError("Invalid Argument")
        return index

    def _energy(self, _handle):
        if self.energy is None:
            raise self.NVMLError("Not Supported")
        return next(self.energy)


@pytest.fixture
def driver(monkeypatch):
    def install(**script):
        fake = FakeNvml(**script)
        monkeypatch.setitem(sys.modules, "pynvml", fake)
        return fake

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(devices, "_POLL_S", 0.001)
    return install


def test_without_a_driver_there_are_no_gpus_and_no_error(driver):
    driver(broken=True)
    assert devices.visible() == []
    assert devices.driver() is None
    with pytest.raises(UserError, match="no NVIDIA GPU"):
        devices.describe(["0"])


@pytest.mark.parametrize(
    ("number", "cause", "fix"),
    [
        (18, "of another version than the running kernel module: NVML's words", "restart this machine"),
        (9, "not loaded", "modprobe nvidia"),
        (4, "may not use", "/dev/nvidia"),
    ],
)
def test_a_driver_that_cannot_be_used_says_why_in_doctor(driver, number, cause, fix):
    driver(broken=number)
    lines = [*hardware.gpu(Needs()), *hardware.driver(Needs())]
    assert [line.check for line in lines] == ["GPU"]
    assert cause in lines[0].found
    assert fix in lines[0].fix
    assert lines[0].status == "warn"
    server = ServerSpec(engine="vllm", launcher="process", gpus=1)
    assert next(hardware.gpu(Needs([server], known=True))).status == "fail"
    with pytest.raises(UserError, match=r"NVML's words"):
        devices.require_idle(["0"])


@pytest.mark.parametrize(
    ("limit", "seen"), [(None, ["0", "1"]), ("1", ["1"]), ("GPU-b", ["GPU-b"]), ("", []), ("5", [])]
)
def test_visible_devices_are_ids_and_follow_cuda_visible_devices(driver, monkeypatch, limit, seen):
    driver()
    if limit is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", limit)
    assert devices.visible() == seen


def test_the_uuid_really_used_is_described(driver):
    driver()
    gpu = devices.describe(["1"])[0]
    assert (gpu.uuid, gpu.name, gpu.memory_total_bytes, gpu.power_limit_w) == ("GPU-b", "NVIDIA H200", 80 * GIB, 700)
    assert (devices.driver(), devices.cuda()) == ("580.65.06", "13.0")


def test_a_slice_of_a_gpu_is_described_by_its_whole(driver):
    driver()
    assert devices.describe(["MIG-c"])[0].index == 1


def test_m8_a_foreign_process_is_named_and_the_gpu_refused(driver):
    driver(used=(41.0,), processes=[SimpleNamespace(pid=2**22 + 1, usedGpuMemory=40 * GIB)])
    with pytest.raises(UserError, match=r"not exclusive: 41\.0 of 80\.0 GiB.*python3 \(pid 4194305, 40\.0 GiB\)"):
        devices.require_idle(["0"])


def test_m8_memory_that_no_process_owns_is_refused_too(driver):
    driver(used=(10.0,))
    with pytest.raises(UserError, match="does not name"):
        devices.require_idle(["0"])


def test_c4_the_next_start_waits_until_memory_is_back_and_still(driver):
    fake = driver(used=(0.3, 70, 70, 40, 1.4, 0.9, 0.5, 0.3, 0.3, 0.3, 0.3))
    before = devices.require_idle(["0"])
    devices.wait_released(["0"], before, lambda _text: None)
    assert next(fake.used) == 0.3
    assert before == {"0": int(0.3 * GIB)}


def test_c4_memory_that_never_drops_fails_with_bytes_and_processes(driver):
    driver(used=(0.3, 70.0), processes=())
    before = devices.require_idle(["0"])
    sys.modules["pynvml"].processes = [SimpleNamespace(pid=2**22 + 7, usedGpuMemory=None)]
    with pytest.raises(UserError, match=r"70\.0 GiB in use.*pid 4194311") as error:
        devices.wait_released(["0"], before, lambda _text: None, limit_s=0.05)
    assert error.value.code == "memory_not_released"


def test_an_unknown_device_is_a_user_error(driver):
    driver()
    with pytest.raises(UserError, match="no GPU '7'"):
        devices.require_idle(["7"])


@pytest.mark.parametrize(("counter", "close_to"), [(True, 5.0), (False, None)])
def test_b8_readings_and_energy_of_a_cell(driver, counter, close_to):
    driver(energy=counter)
    with sampler.sampling(["0"], period_s=0.01) as (readings, energy):
        time.sleep(0.1)
    assert readings[0].sm_clock_mhz == 1980
    assert readings[0].power_w == 350
    assert readings[0].throttle == ["power cap"]
    assert energy() == close_to if counter else energy() > 0
