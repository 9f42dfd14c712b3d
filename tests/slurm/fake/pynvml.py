"""Two GPUs that are not there, for tests of who gets which device. Shadows the real module on PYTHONPATH."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

COUNT = 2


class NVMLError(Exception):
    """What the real one raises for what a GPU does not know."""


def nvmlInit() -> None:
    """Always works."""


def nvmlShutdown() -> None:
    """Nothing to end."""


def nvmlDeviceGetCount() -> int:
    return COUNT


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    if not 0 <= index < COUNT:
        raise NVMLError("Invalid Argument")
    return index


def nvmlDeviceGetIndex(handle: int) -> int:
    return handle


def nvmlDeviceGetName(handle: int) -> str:
    return "Made-up GPU"


def nvmlDeviceGetUUID(handle: int) -> str:
    return f"GPU-made-up-{handle}"


def nvmlDeviceGetMemoryInfo(handle: int) -> SimpleNamespace:
    return SimpleNamespace(used=0, total=2**36)


def nvmlSystemGetDriverVersion() -> str:
    return "580.0"


def nvmlDeviceGetComputeRunningProcesses(handle: int) -> list[SimpleNamespace]:
    return []


def __getattr__(name: str) -> int | Callable[..., object]:
    if name.isupper() or name.startswith("NVML_"):
        return 0
    if not name.startswith("nvml"):
        raise AttributeError(name)

    def unknown(*_: object) -> object:
        raise NVMLError(f"Not Supported: {name}")

    return unknown
