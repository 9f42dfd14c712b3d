"""Which GPUs there are, whether they are free before a start (M8) and free again after a stop (M19, C4)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..records.errors import UserError
from ..records.stack import Gpu
from . import nvml as door

GIB = 2**30
IDLE_BYTES = GIB
"""A driver alone may hold some hundred MiB; more than this without a known process is still somebody's."""
BACK_BYTES = 256 * 2**20
"""How near to its idle level the memory must come back."""
STILL_BYTES = 64 * 2**20
"""Two readings closer than this are stable: a start aborts when memory is freed while it profiles."""
RELEASE_LIMIT_S = 120.0
_POLL_S = 1.0
_READINGS = 3


def visible() -> list[str]:
    """GPU ids in the driver's order; with CUDA_VISIBLE_DEVICES only those, as written there. Empty without a GPU."""
    try:
        with door.opened() as nvml:
            count = int(nvml.nvmlDeviceGetCount())
    except UserError:
        return []
    limit = os.environ.get("CUDA_VISIBLE_DEVICES")
    if limit is None:
        return [str(index) for index in range(count)]
    chosen: list[str] = []
    for word in (part.strip() for part in limit.split(",")):
        # CUDA itself stops at the first entry that names nothing.
        if not word or word == "-1" or (word.isdigit() and int(word) >= count):
            break
        chosen.append(word)
    return chosen


def fault() -> UserError | None:
    """What keeps an installed driver from being used; None where it works, and where there is none."""
    try:
        with door.opened():
            return None
    except UserError as error:
        return None if error.code == "no_gpu" else error


def describe(devices: Sequence[str]) -> list[Gpu]:
    """Name, UUID, memory and power limit of each."""
    with door.opened() as nvml:
        return [_gpu(nvml, device) for device in devices]


def _gpu(nvml: Any, device: str) -> Gpu:
    one = door.handle(nvml, device)
    used, total = door.memory(nvml, one)
    limit = door.asked(nvml, lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(one))
    return Gpu(
        index=index_of(nvml, one),
        name=door.text(nvml.nvmlDeviceGetName(one)),
        uuid=door.text(nvml.nvmlDeviceGetUUID(one)),
        memory_total_bytes=total,
        memory_used_bytes=used,
        power_limit_w=None if limit is None else limit / 1000,
    )


def index_of(nvml: Any, handle: Any) -> int:
    """The driver's index of a device; for a slice of one (MIG) that of the whole."""
    own = door.asked(nvml, lambda: nvml.nvmlDeviceGetIndex(handle))
    if own is None:
        own = nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle))
    return int(own)


def driver() -> str | None:
    """The driver's version, e.g. 580.65.06."""
    try:
        with door.opened() as nvml:
            return door.text(nvml.nvmlSystemGetDriverVersion())
    except UserError:
        return None


def cuda() -> str | None:
    """The newest CUDA that the driver serves, e.g. 13.0."""
    try:
        with door.opened() as nvml:
            number = door.asked(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)
    except UserError:
        return None
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def require_idle(devices: Sequence[str]) -> dict[str, int]:
    """Bytes used per device before a start. UserError naming the process when somebody else uses one; nothing foreign
    is ever ended."""
    before: dict[str, int] = {}
    with door.opened() as nvml:
        for device in devices:
            one = door.handle(nvml, device)
            used, total = door.memory(nvml, one)
            holders = door.holders(nvml, one)
            if holders or used > max(IDLE_BYTES, total // 50):
                who = ", ".join(map(str, holders)) or "a process that the driver does not name"
                raise UserError(
                    f"GPU {device} is not exclusive: {used / GIB:.1f} of {total / GIB:.1f} GiB are in use by {who}",
                    place=f"GPU {device}, {door.text(nvml.nvmlDeviceGetName(one))}",
                    fix="end that process, or choose another GPU with CUDA_VISIBLE_DEVICES; numbers taken beside "
                    "another job mean nothing",
                    code="gpu_not_exclusive",
                )
            before[device] = used
    return before


def wait_released(
    devices: Sequence[str],
    before: Mapping[str, int],
    say: Callable[[str], None],
    *,
    limit_s: float = RELEASE_LIMIT_S,
) -> None:
    """Return when each device's memory is back near `before` and still. UserError with bytes and pids at the limit."""
    start = time.monotonic()
    seen: dict[str, list[int]] = {device: [] for device in devices}
    told = False
    with door.opened() as nvml:
        while True:
            for device in devices:
                seen[device].append(door.memory(nvml, door.handle(nvml, device))[0])
            late = [d for d in devices if not _back(seen[d], before.get(d, 0))]
            if not late:
                return
            if time.monotonic() - start > limit_s:
                raise _not_released(nvml, late[0], seen[late[0]][-1], before.get(late[0], 0), limit_s)
            if not told and time.monotonic() - start > 10:
                told = True
                say(f"waiting for the memory of GPU {', '.join(late)} to be released")
            time.sleep(_POLL_S)


def _back(readings: Sequence[int], idle: int) -> bool:
    last = readings[-_READINGS:]
    return len(last) == _READINGS and max(last) <= idle + BACK_BYTES and max(last) - min(last) <= STILL_BYTES


def _not_released(nvml: Any, device: str, used: int, idle: int, limit_s: float) -> UserError:
    holders = ", ".join(map(str, door.holders(nvml, door.handle(nvml, device)))) or "no process that the driver names"
    return UserError(
        f"GPU {device} still has {used / GIB:.1f} GiB in use {limit_s:.0f} s after the server was stopped "
        f"({idle / GIB:.1f} GiB before it): {holders}",
        place=f"GPU {device}",
        fix="end the process named here (vLLM's are called VLLM::EngineCore and VLLM::Worker), then start again",
        code="memory_not_released",
    )
