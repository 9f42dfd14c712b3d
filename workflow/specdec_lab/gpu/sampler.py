"""Clocks, temperature, power and memory while a cell runs, and the energy that it took (B8, D8)."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from ..records.cell import GpuSample
from . import nvml as door
from .devices import index_of

PERIOD_S = 1.0
_REASONS = {
    0x0000000000000004: "power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "thermal (software)",
    0x0000000000000040: "thermal (hardware)",
    0x0000000000000080: "power brake",
}
"""NVML's clock event reasons that mean less speed; idle and chosen clocks are none."""


@contextmanager
def sampling(
    devices: Sequence[str], *, period_s: float = PERIOD_S
) -> Iterator[tuple[list[GpuSample], Callable[[], float | None]]]:
    """Readings of these GPUs in a thread of its own, and a function that gives the joules used once this has ended.

    Energy is the driver's own counter where the GPU has one (error of some per cent), else power times time; None
    where it has neither.
    """
    readings: list[GpuSample] = []
    joules: list[float | None] = [None]
    with door.opened() as nvml:
        handles = [door.handle(nvml, device) for device in devices]
        start = time.monotonic()
        before = [_counter(nvml, one) for one in handles]
        ended = threading.Event()

        def work() -> None:
            while True:
                at = time.monotonic() - start
                with contextlib.suppress(nvml.NVMLError):
                    readings.extend(_sample(nvml, one, at) for one in handles)
                if ended.wait(period_s):
                    return

        thread = threading.Thread(target=work, name="gpu-sampler", daemon=True)
        thread.start()
        try:
            yield readings, lambda: joules[0]
        finally:
            ended.set()
            thread.join(5)
            after = [_counter(nvml, one) for one in handles]
            joules[0] = _energy(before, after, readings, time.monotonic() - start)


def _counter(nvml: Any, device: Any) -> float | None:
    millijoules = door.asked(nvml, lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(device))
    return None if millijoules is None else millijoules / 1000


def _energy(
    before: Sequence[float | None], after: Sequence[float | None], readings: Sequence[GpuSample], seconds: float
) -> float | None:
    pairs = [(a, b) for b, a in zip(before, after, strict=True) if a is not None and b is not None and a >= b]
    if pairs and len(pairs) == len(before):
        return math.fsum(a - b for a, b in pairs)
    by_device: dict[int, list[float]] = {}
    for one in readings:
        if one.power_w is not None:
            by_device.setdefault(one.device, []).append(one.power_w)
    if len(by_device) < len(before) or not by_device:
        return None
    return math.fsum(fmean(watts) for watts in by_device.values()) * seconds


def _sample(nvml: Any, device: Any, at: float) -> GpuSample:
    power = door.asked(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(device))
    reasons = door.asked(nvml, lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(device)) or 0
    return GpuSample(
        at_s=at,
        device=index_of(nvml, device),
        sm_clock_mhz=door.asked(nvml, lambda: nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM)),
        temperature_c=door.asked(nvml, lambda: nvml.nvmlDeviceGetTemperature(device, nvml.NVML_TEMPERATURE_GPU)),
        power_w=None if power is None else power / 1000,
        memory_used_bytes=door.memory(nvml, device)[0],
        throttle=[name for bit, name in _REASONS.items() if reasons & bit],
    )
