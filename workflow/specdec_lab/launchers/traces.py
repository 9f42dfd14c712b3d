"""Traces of started servers, outside any project folder, so that a later run can sweep what a killed one left.

One JSON file per server, written before the start and removed after the proven end. A trace names its owner and its
guardian by pid, start time and boot, so that a reused pid is never mistaken for ours.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
from pydantic import ValidationError

from ..records.base import Record


class Identity(Record):
    """One process, beyond the reuse of its pid."""

    pid: int
    started: float

    @classmethod
    def of(cls, pid: int) -> Identity:
        """The living process `pid`; psutil.NoSuchProcess if there is none."""
        return cls(pid=pid, started=psutil.Process(pid).create_time())

    def alive(self) -> bool:
        """Whether this very process still lives (a zombie does not)."""
        try:
            process = psutil.Process(self.pid)
            return bool(abs(process.create_time() - self.started) < 1.0 and process.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False


class Trace(Record):
    """What a run leaves behind while its server lives."""

    name: str
    marker: str
    boot: str
    owner: Identity
    guardian: Identity | None = None


def state_dir() -> Path:
    """`SPECDEC_STATE_DIR`, else the XDG state folder of this user; made if needed, readable by the user alone."""
    given = os.environ.get("SPECDEC_STATE_DIR")
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    folder = Path(given) if given else home / "specdec-lab"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def boot_id() -> str:
    """This boot of this machine: the kernel's id, or the boot time where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"


def path_of(marker: str) -> Path:
    """Where the trace of that marker lies."""
    return state_dir() / "servers" / f"{marker}.json"


def leftovers() -> Iterator[Trace]:
    """Traces whose owner is gone. Those of an earlier boot and unreadable ones are removed on the way."""
    for file in sorted((state_dir() / "servers").glob("*.json")):
        try:
            trace = Trace.read(file)
        except (OSError, ValidationError):
            file.unlink(missing_ok=True)
            continue
        if trace.boot != boot_id():
            file.unlink(missing_ok=True)
        elif not trace.owner.alive():
            yield trace
