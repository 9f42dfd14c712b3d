"""Which GPUs a session holds, alone on this machine, also against another run in another folder (cases C4, E6).

One lock file per device, held by the kernel for as long as the job lives: whatever kills the job frees it. Snakemake
counts GPUs but neither chooses device ids nor knows of a second run.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..records.errors import UserError

CPU = "cpu"
"""The place of a server that runs on the processor: there is one, since two would disturb each other."""
_RETRY_S = 1.0


def lock_folder() -> Path:
    """The folder of the locks, the same for every run and user on this machine; SPECDEC_LOCK_DIR moves it."""
    return Path(os.environ.get("SPECDEC_LOCK_DIR") or Path(tempfile.gettempdir()) / "specdec-lab-locks")


@contextmanager
def held(gpus: int, say: Callable[[str], None]) -> Iterator[list[str]]:
    """Hold so many devices and give their ids, as strings; none for a server on the CPU, which holds the CPU instead.

    Waits while another run holds them, and says so. UserError when this machine (or CUDA_VISIBLE_DEVICES) has fewer.
    """
    if gpus:
        from ..gpu.devices import visible

        candidates = visible()
    else:
        candidates = [CPU]
    wanted = max(1, gpus)
    if len(candidates) < wanted:
        raise UserError(
            f"{wanted} GPUs are needed, {len(candidates)} can be seen here.",
            place="engine.gpus",
            fix="Check `nvidia-smi` and CUDA_VISIBLE_DEVICES; for a server on the CPU say gpus: 0.",
            code="no_gpu",
        )
    said = 0.0
    while True:
        with ExitStack() as stack:
            taken = _take(candidates, wanted, stack)
            if len(taken) == wanted:
                yield [] if gpus == 0 else taken
                return
        if time.monotonic() - said > 30:
            said = time.monotonic()
            say(f"waiting: another run holds {', '.join(candidates)}")
        time.sleep(_RETRY_S)


def _take(candidates: Sequence[str], wanted: int, stack: ExitStack) -> list[str]:
    taken: list[str] = []
    for name in candidates:
        if len(taken) < wanted and _try(name, stack):
            taken.append(name)
    return taken


def _try(name: str, stack: ExitStack) -> bool:
    """Take one lock if it is free; the stack gives it back."""
    folder = lock_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_uid == os.getuid():
            folder.chmod(0o1777)
        descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UserError(
            f"The lock for {name} cannot be made: {error.strerror}.",
            place=str(folder),
            fix="Let this user write there, or set SPECDEC_LOCK_DIR to a folder that all runs share.",
            code="lock",
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    stack.callback(os.close, descriptor)
    return True


def require_idle(held: Sequence[str]) -> dict[str, int]:
    """Memory in use (bytes) per held GPU before the start; UserError naming the process if others use one (M8)."""
    if not held:
        return {}
    from ..gpu.devices import require_idle as idle

    return idle(held)


def require_released(held: Sequence[str], before: dict[str, int], say: Callable[[str], None]) -> None:
    """Wait until the GPUs' memory is back where it was, and stable; UserError with the holders if it stays (C4)."""
    if not held:
        return
    from ..gpu.devices import wait_released

    wait_released(held, before, say)
