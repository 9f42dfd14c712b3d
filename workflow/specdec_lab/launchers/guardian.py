"""The guardian: a tiny parent process that ends a server and everything it started, whatever happens to the lab (C7).

Run as a file (standard library only):

    python guardian.py LIFELINE_FD GRACE_S -- program argument...

It makes itself the reaper of every orphan below it (Linux), so that children which left the server's process group
(vLLM's EngineCore outlives a killed API server) are still found. It watches a pipe whose other end the lab holds: a
line `stop SECONDS` asks for the end, and end-of-file means that the lab is gone, by kill -9 too. Either way the server
gets TERM, then KILL after the grace period, and so does every descendant. The exit code is the server's (128 + n for a
signal n).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.02
_STRAGGLERS_S = 2.0
"""What the children of an ended server get to end by themselves."""


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _stat(pid: int) -> tuple[int, str] | None:
    """Parent and state of a process; None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return int(fields[1]), fields[0]


def descendants(root: int) -> list[int]:
    """Every living process below `root`, zombies left out."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for entry in Path("/proc").iterdir() if sys.platform == "linux" else ():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            children.setdefault(stat[0], []).append(int(entry.name))
            if stat[1] in "ZX":
                zombies.add(int(entry.name))
    found, ahead = [], [root]
    while ahead:
        for pid in children.get(ahead.pop(), ()):
            ahead.append(pid)
            if pid not in zombies:
                found.append(pid)
    return found


class Guardian:
    """One server below this process."""

    def __init__(self, lifeline: int, grace_s: float, argv: list[str]) -> None:
        self.lifeline = lifeline
        self.grace_s = grace_s
        self.code: int | None = None
        self.told = b""
        self.server = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )

    def reap(self) -> None:
        """Collect every child that ended; remember the server's own exit code."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.server.pid:
                code = os.waitstatus_to_exitcode(status)
                self.code = code if code >= 0 else 128 - code

    def watch(self) -> None:
        """Return when the server ended or its end was asked for."""
        while self.code is None:
            ready, _, _ = select.select([self.lifeline], [], [], _POLL_S * 5)
            if ready:
                got = os.read(self.lifeline, 4096)
                self.told += got
                if not got:
                    return
                if b"\n" in self.told:
                    words = self.told.split()
                    with contextlib.suppress(IndexError, ValueError):
                        self.grace_s = float(words[1])
                    return
            self.reap()

    def _signal(self, number: int, pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if sys.platform != "linux":  # elsewhere the group is all that is known of the server's children
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.server.pid, number)

    def end(self) -> None:
        """TERM to the server, the grace period, KILL to whatever is left, until nothing is left."""
        if self.code is None:
            self._signal(signal.SIGTERM, [self.server.pid])
            self._await(self.grace_s, until_all_gone=False)
        left = descendants(os.getpid())
        if left:
            self._signal(signal.SIGTERM, left)
            self._await(min(_STRAGGLERS_S, self.grace_s), until_all_gone=True)
        limit = time.monotonic() + 10
        while (left := descendants(os.getpid())) and time.monotonic() < limit:
            self._signal(signal.SIGKILL, left)
            time.sleep(_POLL_S)
            self.reap()
        if self.code is None:
            self._signal(signal.SIGKILL, [self.server.pid])
            self._await(5.0, until_all_gone=False)

    def _await(self, limit_s: float, *, until_all_gone: bool) -> None:
        limit = time.monotonic() + limit_s
        while time.monotonic() < limit:
            self.reap()
            if self.code is not None and (not until_all_gone or not descendants(os.getpid())):
                return
            time.sleep(_POLL_S)


def main() -> None:
    """Guard one program; see the module."""
    lifeline, grace_s, argv = int(sys.argv[1]), float(sys.argv[2]), sys.argv[4:]
    os.set_inheritable(lifeline, False)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        guardian = Guardian(lifeline, grace_s, argv)
    except OSError as error:
        sys.stderr.write(f"guardian: cannot start {argv[0]}: {error.strerror}\n")
        sys.exit(127)

    def asked(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, asked)
    try:
        guardian.watch()
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        guardian.end()
    sys.exit(guardian.code if guardian.code is not None else 137)


if __name__ == "__main__":
    main()
