"""Which files of a results folder belong to the run: the sessions and cells that its resolved config asks for.

A folder keeps what an earlier config measured: a third replicate, a mode, a load. Those files are never deleted and
never read. Comparison, report, bundle and difference all ask here, and nothing else lists the folder of the sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import ValidationError
from pydantic_core import from_json

from .records.decision import Plan
from .records.errors import UserError
from .records.reading import first_problem

SESSION, FAILURE = "session.json", "failure.json"
_RECORDS = frozenset({SESSION, FAILURE})
_START = re.compile(r"r([1-9][0-9]*)")
_LOG = re.compile(r"logs/session_(.+)_r([1-9][0-9]*)\.log")


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The files of one session that belong to the run."""

    mode: str
    replicate: int
    path: Path
    cells: list[Path]
    """By name; they need not be readable."""

    @property
    def session(self) -> Path:
        """Its record; there once the session is complete."""
        return self.path / SESSION

    @property
    def failure(self) -> Path:
        """Why it failed; there only if it did."""
        return self.path / FAILURE


@dataclass(frozen=True, slots=True)
class Asked:
    """What a config asks for; None where no config says it, and then everything that is there belongs to the run."""

    sessions: frozenset[tuple[str, int]] | None = None
    cells: frozenset[str] | None = None

    @classmethod
    def by(cls, plan: Plan | None) -> Asked:
        """What this plan asks for. A plan without a list of cells leaves the cells open."""
        if plan is None:
            return cls()
        return cls(
            frozenset((mode.name, start) for mode in plan.modes for start in range(1, mode.replicates + 1)),
            frozenset(cell.name for cell in plan.cells) or None,
        )

    def session(self, mode: str, replicate: int) -> bool:
        """Whether this server start is asked for."""
        return self.sessions is None or (mode, replicate) in self.sessions

    def cell(self, name: str) -> bool:
        """Whether cells of this name are asked for."""
        return self.cells is None or name in self.cells

    def holds(self, relative: str) -> bool:
        """Whether a file of the results folder, by its path in it, belongs to the run; what is of no session does."""
        log = _LOG.fullmatch(relative)
        if log is not None:
            return self.session(log[1], int(log[2]))
        parts = PurePosixPath(relative).parts
        if len(parts) < 3 or parts[0] != "sessions":
            return True
        mode, start, *below = parts[1:]
        number = _START.fullmatch(start)
        if number is None:
            return self.sessions is None or any(name == mode for name, _ in self.sessions)
        name = PurePosixPath(below[-1]) if below else PurePosixPath(start)
        is_cell = name.suffix == ".json" and name.name not in _RECORDS
        return self.session(mode, int(number[1])) and (not is_cell or self.cell(name.stem))


def asked(results: Path) -> Asked:
    """What the resolved config of this folder asks for."""
    return Asked.by(resolved_plan(results))


def session_folders(results: Path, wanted: Asked | None = None) -> Iterator[SessionFolder]:
    """The sessions that are there and belong to the run, by mode and replicate. `wanted`: as the resolved config says.

    Every reader of measured files goes through here.
    """
    wanted = asked(results) if wanted is None else wanted
    found = [
        (path.parent.name, int(start[1]), path)
        for path in (results / "sessions").glob("*/r*")
        for start in [_START.fullmatch(path.name)]
        if start is not None and path.is_dir()
    ]
    for mode, replicate, path in sorted(found):
        if wanted.session(mode, replicate):
            cells = sorted(file for file in path.glob("*.json") if file.name not in _RECORDS and wanted.cell(file.stem))
            yield SessionFolder(mode, replicate, path, cells)


def resolved_plan(results: Path) -> Plan | None:
    """The plan in `config.resolved.json`; None when that file is not there or has no plan."""
    path = results / "config.resolved.json"
    if not path.is_file():
        return None
    try:
        content = from_json(path.read_bytes(), allow_inf_nan=False)
    except ValueError as error:
        raise UserError(
            f"not JSON: {error}", place=str(path), fix="run the workflow again", code="unreadable"
        ) from error
    if not isinstance(content, dict) or content.get("plan") is None:
        return None
    try:
        return Plan.model_validate(content["plan"])
    except ValidationError as error:
        raise UserError(
            f"the plan is not understood: {first_problem(error)}",
            place=f"{path}: plan",
            fix="write it with the lab's own version",
            code="unreadable",
        ) from error
