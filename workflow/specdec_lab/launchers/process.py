"""Launcher for servers that run as processes of this machine (the embedded engine, a vLLM in a virtual environment).

Each server lives below a guardian process of its own (see guardian.py) in its own session. Proof of the end: the
guardian is gone, and no process remains that is a member of its session, a recorded descendant, or carries our marker
in its environment.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

import psutil

from ..records.errors import UserError
from . import program, traces
from .base import Exit, LaunchPlan
from .traces import Identity, Trace

MARKER = "SPECDEC_SERVER"
"""Environment variable that every process of a server carries."""
_THREAD_LIMITS = (
    # Snakemake sets these for its jobs from `threads:`; a server would silently run on that many cores.
    "OMP_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")
"""For the fetch step alone; a server never sees them, so its log cannot show them."""
_GRACE_WITHOUT_LAB_S = 10
"""TERM to KILL when the lab itself is gone."""
_GUARDIAN = Path(__file__).with_name("guardian.py")


def server_environment(plan: LaunchPlan, marker: str) -> dict[str, str]:
    """This process's environment without thread limits and secrets, with the plan's own and the GPUs by id."""
    kept = {k: v for k, v in os.environ.items() if k not in _THREAD_LIMITS and k not in _SECRETS}
    visible = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(plan.devices)}
    return {**kept, **visible, **plan.env, MARKER: marker}


def session_members(guardian: Identity, marker: str, known: Iterable[Identity] = ()) -> list[psutil.Process]:
    """Every living process that belongs to that guardian's server: same session, known descendant, or our marker."""
    recorded = {(i.pid, round(i.started, 1)) for i in known}
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                continue
            started = process.create_time()
            same_session = os.getsid(process.pid) == guardian.pid and started >= guardian.started - 1
            ours = same_session or (process.pid, round(started, 1)) in recorded
            if ours or _carries(process, marker):
                found.append(process)
    return found


def _carries(process: psutil.Process, marker: str) -> bool:
    try:
        return bool(process.environ().get(MARKER) == marker)
    except (psutil.Error, OSError):
        return False


def _kill_all(guardian: Identity, marker: str, known: Iterable[Identity], limit_s: float) -> list[psutil.Process]:
    """KILL what is left until nothing is; returns what withstood."""
    known = list(known)
    limit = time.monotonic() + limit_s
    while left := session_members(guardian, marker, known):
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        if time.monotonic() > limit:
            return left
        time.sleep(0.05)
    return []


class RunningProcess:
    """A started server below its guardian."""

    def __init__(self, plan: LaunchPlan, guardian: subprocess.Popen[bytes], lifeline: int, marker: str) -> None:
        self.base_url = f"http://127.0.0.1:{plan.port}"
        self._plan = plan
        self._guardian = guardian
        self._identity = Identity.of(guardian.pid)
        self._lifeline: int | None = lifeline
        self._marker = marker
        self._known: dict[int, Identity] = {}

    def exited(self) -> Exit | None:
        """See launchers.base."""
        code = self._guardian.poll()
        if code is None:
            return None
        if code < 0:
            return Exit(code=None, detail=f"the guardian ended by signal {-code}")
        if code > 128:
            number = code - 128
            return Exit(code=-number, oom_killed=False, detail=_signal_name(number))
        return Exit(code=code)

    def _descendants(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            found: list[psutil.Process] = psutil.Process(self._guardian.pid).children(recursive=True)
            for process in found:
                with contextlib.suppress(psutil.NoSuchProcess):
                    self._known[process.pid] = Identity(pid=process.pid, started=process.create_time())
            return found
        return []

    def facts(self) -> dict[str, str]:
        """pid of the server, its devices."""
        below = self._descendants()
        facts = {"pid": str(below[0].pid)} if below else {}
        return {**facts, "devices": ",".join(self._plan.devices)}

    def fault(self) -> str | None:
        """A process either lives or not."""
        return None

    def packages(self) -> dict[str, str]:
        """See launchers.base."""
        return program.packages(self._plan.argv[0])

    def owns_port(self) -> bool | None:
        """See launchers.base: the listener must be one of our descendants."""
        ours = {process.pid for process in self._descendants()}
        try:
            listeners = [c for c in psutil.net_connections(kind="tcp") if c.status == psutil.CONN_LISTEN]
        except (psutil.Error, OSError):
            return None
        owners = {c.pid for c in listeners if c.laddr and c.laddr.port == self._plan.port}
        if not owners:
            return False
        return None if None in owners else owners <= ours

    def stop(self, timeout_s: float) -> None:
        """See launchers.base."""
        self._descendants()
        if self._lifeline is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._lifeline, f"stop {timeout_s}\n".encode())
        try:
            self._guardian.wait(timeout_s + 20)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait(10)
        finally:
            if self._lifeline is not None:
                os.close(self._lifeline)
                self._lifeline = None
        left = _kill_all(self._identity, self._marker, self._known.values(), 10)
        if left:
            names = ", ".join(f"{process.pid}" for process in left)
            raise UserError(
                f"the server {self._plan.name} could not be ended: processes {names} remain",
                place=str(self._plan.log),
                fix=f"end them by hand (kill -9 {names.replace(',', '')}), then start again",
                code="not_stopped",
            )
        traces.path_of(self._marker).unlink(missing_ok=True)


def _signal_name(number: int) -> str:
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


class ProcessLauncher:
    """Starts servers as processes of this machine."""

    name = "process"

    def sweep(self) -> list[str]:
        """See launchers.base. Ends servers whose lab process is gone; a living run in another folder is left alone."""
        removed = []
        for trace in traces.leftovers():
            if trace.guardian is not None:
                # A guardian that still lives has noticed by its lifeline and is ending its server right now.
                limit = time.monotonic() + 5
                while trace.guardian.alive() and time.monotonic() < limit:
                    time.sleep(0.05)
                found = session_members(trace.guardian, trace.marker)
                left = _kill_all(trace.guardian, trace.marker, (), 10)
                if left:
                    pids = " ".join(str(process.pid) for process in left)
                    raise UserError(
                        f"a server of an earlier run is still there: {trace.name} (processes {pids})",
                        fix=f"end it by hand: kill -9 {pids}",
                        code="not_swept",
                    )
                if found:
                    removed.append(f"ended {trace.name}, left by a run that was killed ({len(found)} processes)")
            traces.path_of(trace.marker).unlink(missing_ok=True)
        return removed

    def start(self, plan: LaunchPlan) -> RunningProcess:
        """See launchers.base. The program must exist; its output goes to the log from the first byte."""
        fault = program.fault(plan.argv[0])
        if fault is not None:
            raise UserError(fault[0], place=shlex.join(plan.argv[:3]), fix=fault[1], code="no_program")
        found = shutil.which(plan.argv[0]) or plan.argv[0]
        marker = f"{plan.name}-{uuid.uuid4().hex[:12]}".replace("/", "_")
        trace = Trace(name=plan.name, marker=marker, boot=traces.boot_id(), owner=Identity.of(os.getpid()))
        trace.write(traces.path_of(marker))
        plan.log.parent.mkdir(parents=True, exist_ok=True)
        read_end, write_end = os.pipe()
        os.set_inheritable(read_end, True)
        argv = [
            sys.executable,
            "-I",
            "-S",
            str(_GUARDIAN),
            str(read_end),
            str(_GRACE_WITHOUT_LAB_S),
            "--",
            found,
            *plan.argv[1:],
        ]
        try:
            with plan.log.open("wb") as log:
                guardian = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=server_environment(plan, marker),
                    start_new_session=True,
                    pass_fds=[read_end],
                )
        except BaseException:
            os.close(write_end)
            traces.path_of(marker).unlink(missing_ok=True)
            raise
        finally:
            os.close(read_end)
        running = RunningProcess(plan, guardian, write_end, marker)
        trace.model_copy(update={"guardian": Identity.of(guardian.pid)}).write(traces.path_of(marker))
        return running


LAUNCHER = ProcessLauncher()
