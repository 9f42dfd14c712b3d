"""The machine and the packages underneath a number (M10)."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from pathlib import Path

from ..records.errors import UserError
from ..records.stack import Host

_FREEZE = """
import json, sys
try:
    from importlib.metadata import distributions
except ImportError:
    from importlib_metadata import distributions
found = {}
for distribution in distributions():
    name = distribution.metadata["Name"]
    if name:
        found.setdefault(name.lower().replace("_", "-").replace(".", "-"), distribution.version)
json.dump(found, sys.stdout)
"""
_FREEZE_TIMEOUT_S = 60.0


def host() -> Host:
    """This machine. `cores` are those this process may use; memory is that of the machine, in bytes."""
    import psutil

    return Host(
        cpu=_cpu(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        system=_system(),
        python=platform.python_version(),
        governor=_read(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        boot=_boot(),
    )


def packages(python_executable: str | Path) -> dict[str, str]:
    """Name -> version of every package that this interpreter sees, names in their normal form, sorted.

    It is asked of that interpreter itself, so it is the server's environment and not ours. Raises UserError (code
    `packages_unknown`) if it cannot be run.
    """
    try:
        done = subprocess.run(
            [str(python_executable), "-c", _FREEZE],
            capture_output=True,
            text=True,
            timeout=_FREEZE_TIMEOUT_S,
            cwd="/",
            check=True,
        )
        found: dict[str, str] = {name: str(version) for name, version in json.loads(done.stdout).items()}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UserError(
            f"The packages of the server's environment cannot be listed: {error}",
            place=str(python_executable),
            fix="Name the Python interpreter that runs the server.",
            code="packages_unknown",
        ) from error
    return dict(sorted(found.items()))


def _cpu() -> str:
    info = _read(Path("/proc/cpuinfo")) or ""
    for line in info.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "cpu model") and value.strip():
            return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def _boot() -> str | None:
    """The boot id itself is nobody's business; its digest is enough to tell machines apart."""
    found = _read(Path("/proc/sys/kernel/random/boot_id"))
    return None if found is None else hashlib.sha256(found.encode()).hexdigest()[:16]


def _system() -> str:
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{kernel}, {platform.freedesktop_os_release()['PRETTY_NAME']}"
    except (OSError, KeyError):
        return kernel


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None
