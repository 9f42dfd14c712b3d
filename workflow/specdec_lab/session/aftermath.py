"""After a run that failed: what failed, why, where the log is, what to run next; and what can be said all the same."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic import ValidationError

from ..asked import Asked, session_folders
from ..records.session import Failure


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
    """Print each failed session with cause and fix, and how to see what was measured all the same."""
    folder = Path(results)
    lines = []
    for failure in failures(folder, wanted):
        lines.append(f"Mode {failure.mode}, replicate {failure.replicate} failed: {failure.cause}")
        lines += [f"  where: {failure.place}"] if failure.place else []
        lines += [f"  fix:   {failure.fix}"] if failure.fix else []
        lines += [f"  log:   {failure.log}"] if failure.log else []
    if lines:
        lines.append("Mend it and run the same command again: what was measured is kept and not measured twice.")
        if any(one.cells for one in session_folders(folder, wanted)):
            lines.append(f"What was measured so far: specdec compare {results}")
        sys.stderr.write("\n".join(lines) + "\n")
