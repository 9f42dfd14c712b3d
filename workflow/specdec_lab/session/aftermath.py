"""After a run that failed or was stopped: what failed, why, what to run next, and what can be said already."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import ValidationError

from ..asked import Asked, session_folders
from ..records.session import Failure
from .failing import INTERRUPTED


def failures(results: Path, wanted: Asked) -> list[Failure]:
    """The failures that stand in this results folder, by session, of the sessions that are asked for."""
    found = []
    for one in session_folders(results, wanted):
        try:
            found.append(Failure.read(one.failure))
        except (OSError, ValidationError, ValueError):
            continue
    return found


def after_error(results: str, wanted: Asked) -> None:
    """Print each failed session with cause and fix, what to run next, and how to see what was measured all the same.

    Snakemake comes here after Ctrl-C as well, whether or not a session was running then.
    """
    folder = Path(results)
    found = failures(folder, wanted)
    failed = [one for one in found if one.code != INTERRUPTED]
    stopped = [one for one in found if one.code == INTERRUPTED]
    lines = [f"Mode {one.mode}, replicate {one.replicate} was stopped: {one.cause}." for one in stopped]
    for failure in failed:
        lines.append(f"Mode {failure.mode}, replicate {failure.replicate} failed: {failure.cause}")
        lines += [f"  where: {failure.place}"] if failure.place else []
        lines += [f"  fix:   {failure.fix}"] if failure.fix else []
        lines += [f"  log:   {failure.log}"] if failure.log else []
    lines.append(
        "Mend it and run the same command again: what was measured is kept and not measured twice."
        if failed
        else "The run is not finished. Run the same command again to go on: cells that are complete are kept."
    )
    if any(one.cells for one in session_folders(folder, wanted)):
        lines.append(f"What was measured so far: specdec compare {results}")
    sys.stderr.write("\n".join(lines) + "\n")
