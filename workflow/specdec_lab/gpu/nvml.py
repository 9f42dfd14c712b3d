"""A thin, typed door to NVML. Everything that a driver may not support comes back as None, never as 0."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ..records.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class Holder:
    """A process that has memory on a GPU."""

    pid: int
    name: str
    used_bytes: int | None

    def __str__(self) -> str:
        size = "" if self.used_bytes is None else f", {self.used_bytes / 2**30:.1f} GiB"
        return f"{self.name} (pid {self.pid}{size})"


@contextmanager
def opened() -> Iterator[Any]:
    """The NVML module, initialised; UserError where there is no driver (code `no_gpu`) or none that can be used."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise _unusable(error) from error
    try:
        yield pynvml
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _unusable(error: Exception) -> UserError:
    """Why the driver's library cannot be used, in plain words; by NVML's own number, because its texts differ."""
    match getattr(error, "value", None):
        case 18:
            cause, code = "the NVIDIA driver's library is of another version than the running kernel module", "mismatch"
            fix = "restart this machine: the driver was updated while it ran (`cat /proc/driver/nvidia/version`)"
        case 9:
            cause, code = "the NVIDIA driver is installed but not loaded", "not_loaded"
            fix = "`modprobe nvidia` says why; after a new kernel the driver must be installed again"
        case 4:
            cause, code = "this user may not use the NVIDIA driver", "no_permission"
            fix = "give the user the right to use /dev/nvidia*, or start the container with its GPUs"
        case _:
            cause, code = "no NVIDIA GPU can be used here", "no_gpu"
            fix = "install the NVIDIA driver, or set `gpus: 0` for a server on the CPU"
    return UserError(f"{cause}: {error}", fix=fix, code=code)


def text(value: str | bytes) -> str:
    """NVML gives bytes in old releases of its binding."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def asked(nvml: Any, question: Callable[[], T]) -> T | None:
    """The answer, or None where this GPU or driver does not know it."""
    try:
        return question()
    except nvml.NVMLError:
        return None


def handle(nvml: Any, device: str) -> Any:
    """The device of an index ("0") or a UUID ("GPU-...", "MIG-..."); UserError if there is none."""
    try:
        if device.isdigit():
            return nvml.nvmlDeviceGetHandleByIndex(int(device))
        return nvml.nvmlDeviceGetHandleByUUID(device)
    except nvml.NVMLError as error:
        raise UserError(
            f"there is no GPU {device!r} here: {error}",
            fix="`nvidia-smi -L` lists indices and UUIDs; check CUDA_VISIBLE_DEVICES",
            code="no_gpu",
        ) from error


def memory(nvml: Any, device: Any) -> tuple[int, int]:
    """Bytes used and in all."""
    info = nvml.nvmlDeviceGetMemoryInfo(device)
    return int(info.used), int(info.total)


def holders(nvml: Any, device: Any) -> list[Holder]:
    """Processes that compute on the device; those of other containers are seen by the driver too."""
    found = asked(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(device)) or []
    return [Holder(int(p.pid), _name(nvml, int(p.pid)), _used(p.usedGpuMemory)) for p in found]


def _used(value: int | None) -> int | None:
    return int(value) if value is not None and value < 2**63 else None


def _name(nvml: Any, pid: int) -> str:
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        return " ".join(process.cmdline()[:3])[:80] or str(process.name())
    said = asked(nvml, lambda: nvml.nvmlSystemGetProcessName(pid))
    return text(said) if said else "a process that this user cannot see"
