"""GPU, driver and CUDA, memory and processor (M8, M9)."""

from __future__ import annotations

from collections.abc import Iterator

from ..records.errors import UserError
from .line import Line, Needs

DRIVER = (580, 0)
"""CUDA 13 needs this line of the driver or a later one."""
GIB = 2**30


def gpu(needs: Needs) -> Iterator[Line]:
    """Which GPUs there are, and whether somebody uses them."""
    from ..gpu import devices

    found = devices.visible()
    if len(found) < max(1, needs.gpus):
        if needs.known and not needs.gpus:
            yield Line(check="GPU", status="ok", found="none here, and this config needs none")
            return
        if (fault := devices.fault()) is not None:
            yield Line(check="GPU", status=needs.lacking(needs.gpus > 0), found=fault.cause, fix=fault.fix)
            return
        yield Line(
            check="GPU",
            status=needs.lacking(needs.gpus > 0),
            found=f"{len(found)} can be seen here" + (f", this config needs {needs.gpus}" if needs.gpus else ""),
            fix="install the NVIDIA driver, check CUDA_VISIBLE_DEVICES; without a GPU: `gpus: 0`, as in `make demo`",
        )
        return
    for device, one in zip(found, devices.describe(found), strict=True):
        total, used = (one.memory_total_bytes or 0) / GIB, (one.memory_used_bytes or 0) / GIB
        name = f"{device}: {one.name}, {used:.1f} of {total:.0f} GiB in use"
        try:
            devices.require_idle([device])
            yield Line(check="GPU", status="ok", found=name)
        except UserError as error:
            yield Line(check="GPU", status=needs.lacking(needs.gpus >= len(found)), found=error.cause, fix=error.fix)


def driver(needs: Needs) -> Iterator[Line]:
    """The driver against what CUDA 13 needs."""
    from ..gpu import devices

    version = devices.driver()
    if version is None:
        if devices.fault() is not None:
            return  # told with the GPUs
        if needs.gpus or not needs.known:
            yield Line(
                check="driver",
                status=needs.lacking(needs.gpus > 0),
                found="no NVIDIA driver answers",
                fix="install a driver of the R580 line or later",
            )
        return
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    newest = devices.cuda()
    found = f"{version}, CUDA up to {newest or 'unknown'}"
    if numbers >= DRIVER:
        yield Line(check="driver", status="ok", found=found)
        return
    yield Line(
        check="driver",
        status=needs.lacking(needs.cuda13),
        found=f"{found}: too old for CUDA 13, which vLLM's image needs",
        fix="install a driver of the R580 line or later; on data-centre cards VLLM_ENABLE_CUDA_COMPATIBILITY=1 may do",
    )


def processor(needs: Needs) -> Iterator[Line]:
    """Cores and memory, and a frequency governor that would make speeds wander."""
    import psutil

    from ..provenance.host import host

    this = host()
    free = psutil.virtual_memory().available / GIB
    found = f"{this.cores} cores, {free:.1f} of {this.memory_bytes / GIB:.0f} GiB memory free"
    on_cpu = bool(needs.servers) and needs.gpus == 0
    if this.governor not in (None, "performance"):
        yield Line(
            check="machine",
            status="warn",
            found=f"{found}; frequency governor {this.governor}",
            fix="`cpupower frequency-set -g performance` keeps clocks steady while measuring",
        )
    elif on_cpu and this.cores < 2:
        yield Line(check="machine", status="warn", found=found, fix="server and client share one core: expect noise")
    else:
        yield Line(check="machine", status="ok", found=found)
