"""Reads what a results folder has of the run, one workload and load at a time, in bounded memory.

Which files belong to the run says `asked`. A folder may hold thousands of cells. Only those of one kind and load are in
memory at once, and of each request only what judging needs. A file that cannot be read is no reason to stop: it becomes
a cell with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import ValidationError

from ..asked import Asked, resolved_plan, session_folders
from ..records.decision import Plan, PlannedMode
from ..records.errors import UserError
from ..records.reading import first_problem
from ..records.session import Failure, Session
from ..records.spec import CellSpec, SessionSpec
from .cells import NO_SERVER, Measured, read_cell

Kept = TypeVar("Kept", Failure, Session)


class Source(Protocol):
    """Where cells come from: a results folder, or a simulation."""

    plan: Plan
    failures: list[Failure]
    sessions: list[Session]

    def groups(self) -> Iterator[tuple[str, list[Measured]]]:
        """Cell name and the cells of that name, of all modes and starts."""


@dataclass(slots=True)
class Folder:
    """What a results folder has of its run: the plan, the files of the cells, the failures and the sessions."""

    root: Path
    plan: Plan
    paths: dict[str, list[tuple[str, int, Path]]]
    """Cell name -> (mode, replicate, file)."""
    failures: list[Failure]
    sessions: list[Session]

    def groups(self) -> Iterator[tuple[str, list[Measured]]]:
        """The cells of one name after the other, in the plan's order and then by name."""
        planned = [cell.name for cell in self.plan.cells]
        for name in [*planned, *sorted(set(self.paths) - set(planned))]:
            yield name, [read_cell(path, mode, start) for mode, start, path in self.paths.get(name, [])]


def open_folder(results: Path) -> Folder:
    """Index a results folder; UserError when there is nothing in it to compare."""
    if not (results / "sessions").is_dir():
        raise UserError(
            "there are no measured sessions here",
            place=str(results),
            fix="give the folder that holds `sessions/`, or run the workflow first",
            code="no_results",
        )
    plan = resolved_plan(results)
    paths: dict[str, list[tuple[str, int, Path]]] = {}
    failures: list[Failure] = []
    sessions: list[Session] = []
    for one in session_folders(results, Asked.by(plan)):
        for path in one.cells:
            paths.setdefault(path.stem, []).append((one.mode, one.replicate, path))
        failures.extend(_records(Failure, one.failure))
        sessions.extend(_records(Session, one.session))
    if not paths and not failures:
        raise UserError(
            "no cell was measured here" if plan is None else "no cell that the config asks for was measured here",
            place=str(results / "sessions"),
            fix="run the workflow first",
            code="no_results",
        )
    return Folder(results, plan or _plan_from(results.resolve().name, paths, failures), paths, failures, sessions)


def _records(kind: type[Kept], path: Path) -> list[Kept]:
    """The record in a file, if it is there; UserError when it is not such a record."""
    if not path.is_file():
        return []
    try:
        return [kind.read(path)]
    except ValidationError as error:
        raise UserError(
            f"not a {kind.__name__.lower()} record: {first_problem(error)}",
            place=str(path),
            fix="delete the file and run again; only its session is repeated",
            code="unreadable",
        ) from error


def _plan_from(name: str, paths: dict[str, list[tuple[str, int, Path]]], failures: list[Failure]) -> Plan:
    specs: dict[str, SessionSpec] = {one.mode: one.spec for one in failures}
    starts: dict[str, set[int]] = {}
    cells: dict[str, CellSpec] = {}
    for cell_name, files in paths.items():
        for mode, start, path in files:
            starts.setdefault(mode, set()).add(start)
            if mode not in specs or cell_name not in cells:
                cell = read_cell(path, mode, start)
                specs.setdefault(mode, cell.session)
                cells.setdefault(cell_name, cell.cell)
    for one in failures:
        starts.setdefault(one.mode, set()).add(one.replicate)
    modes = [planned(mode, spec, replicates=len(starts[mode])) for mode, spec in specs.items()]
    named = {mode.against for mode in modes if mode.against is not None} - set(specs)
    specs |= {base: SessionSpec(server=NO_SERVER, checkpoints={}, against=None) for base in named}
    modes += [PlannedMode(name=base, against=None) for base in sorted(named)]
    modes.sort(key=lambda mode: (mode.against is not None, effort(specs[mode.name]), mode.k or 0, mode.name))
    return Plan(name=name, modes=modes, cells=sorted(cells.values(), key=_by_load))


def planned(mode: str, spec: SessionSpec, *, replicates: int) -> PlannedMode:
    """What a plan says of a mode, from its spec."""
    return PlannedMode(
        name=mode,
        against=spec.against,
        replicates=replicates,
        placebo=spec.placebo,
        lossy=spec.lossy,
        method=spec.server.method,
        k=spec.server.draft_length,
    )


def effort(spec: SessionSpec) -> int:
    """How much a mode adds to a deployment: nothing, a flag, a model of its own."""
    return 0 if not spec.server.speculative else 1 + sum(role != "target" for role in spec.checkpoints)


def _by_load(cell: CellSpec) -> tuple[str, int, float]:
    return cell.kind, cell.load.concurrency or 0, cell.load.rate or 0.0
