"""The hardware under a number: for the key of a cell (what must be the same) and for its stack (what is told)."""

from __future__ import annotations

from collections.abc import Sequence

from ..records.stack import Gpu
from .host import host


def fingerprint(gpus: int) -> str:
    """What a measurement depends on: GPU names and driver, or the processor and its cores for a server on the CPU.

    No serial number, and not how many other GPUs the machine has, so that an equal machine has an equal fingerprint,
    also where a scheduler shows a job only some of its GPUs.
    """
    if gpus:
        from ..gpu.devices import describe, driver, visible

        names = sorted({one.name for one in describe(visible())})
        return f"{gpus} of {', '.join(names)}; driver {driver()}"
    this = host()
    return f"{this.cpu}, {this.cores} cores"


def gpus(held: Sequence[str]) -> list[Gpu]:
    """The GPUs that a session holds, with their UUIDs."""
    if not held:
        return []
    from ..gpu.devices import describe

    return describe(held)


def driver() -> str | None:
    """The GPU driver's version."""
    from ..gpu.devices import driver as version

    return version()


def cuda() -> str | None:
    """The highest CUDA version that the driver serves."""
    from ..gpu.devices import cuda as version

    return version()
