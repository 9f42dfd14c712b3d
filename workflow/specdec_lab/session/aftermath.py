"""After a run that failed or was stopped: what failed, why, what to run next, and what can be said already."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
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


def together(found: Iterable[Failure]) -> list[tuple[str, list[Failure]]]:
    """Failures with one cause and one fix as one, with the name of all sessions that have it: `mode a, replicate 1`, or
    `modes a r1 r2, b r1`."""
    groups: dict[tuple[str, str], list[Failure]] = {}
    for failure in found:
        groups.setdefault((failure.cause, failure.fix), []).append(failure)
    return [(_sessions(same), same) for same in groups.values()]


def _sessions(same: Sequence[Failure]) -> str:
    if len(same) == 1:
        return f"mode {same[0].mode}, replicate {same[0].replicate}"
    starts: dict[str, list[str]] = {}
    for failure in same:
        starts.setdefault(failure.mode, []).append(f"r{failure.replicate}")
    return "modes " + ", ".join(" ".join([mode, *names]) for mode, names in starts.items())


def after_error(results: str, wanted: Asked) -> None:
    """Print each failed session with cause and fix, what to run next, and how to see what was measured all the same.

    Snakemake comes here after Ctrl-C as well, whether or not a session was running then.
    """
    folder = Path(results)
    found = failures(folder, wanted)
    failed = [one for one in found if one.code != INTERRUPTED]
    stopped = [one for one in found if one.code == INTERRUPTED]
    lines = [f"{_capital(who)} was stopped: {same[0].cause}." for who, same in together(stopped)]
    for who, same in together(failed):
        first = same[0]
        lines.append(f"{_capital(who)} failed: {first.cause}")
        lines += [f"  where: {first.place}"] if first.place else []
        lines += [f"  fix:   {first.fix}"] if first.fix else []
        lines += [f"  log:   {first.log}"] if first.log else []
    lines.append(
        "Mend it and run the same command again: what was measured is kept and not measured twice."
        if failed
        else "The run is not finished. Run the same command again to go on: cells that are complete are kept."
    )
    if any(one.cells for one in session_folders(folder, wanted)):
        lines.append(f"What was measured so far: specdec compare {results}")
    sys.stderr.write("\n".join(lines) + "\n")


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
