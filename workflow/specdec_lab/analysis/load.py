"""Reads a results folder, one workload and load at a time, in bounded memory; and the plan that it was made by.

A folder may hold thousands of cells. Only those of one kind and load are in memory at once, and of each request only
what judging needs. A file that cannot be read is no reason to stop: it becomes a cell with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from ..records.decision import Plan, PlannedMode
from ..records.errors import UserError
from ..records.session import Failure, Session
from ..records.spec import CellSpec, SessionSpec
from .cells import NO_SERVER, Measured, first_problem, read_cell
from .theory import draft_length, method_of

Kept = TypeVar("Kept", Failure, Session)

NOT_CELLS = frozenset({"session.json", "failure.json"})


class Source(Protocol):
    """Where cells come from: a results folder, or a simulation."""

    plan: Plan
    failures: list[Failure]
    sessions: list[Session]

    def groups(self) -> Iterator[tuple[str, list[Measured]]]:
        """Cell name and the cells of that name, of all modes and starts."""


@dataclass(slots=True)
class Folder:
    """What lies in a results folder: the plan, the files of the cells, the failures and the sessions."""

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
    sessions_folder = results / "sessions"
    if not sessions_folder.is_dir():
        raise UserError(
            "there are no measured sessions here",
            place=str(results),
            fix="give the folder that holds `sessions/`, or run the workflow first",
            code="no_results",
        )
    paths: dict[str, list[tuple[str, int, Path]]] = {}
    failures: list[Failure] = []
    sessions: list[Session] = []
    for folder in sorted(sessions_folder.glob("*/r*"), key=lambda path: (path.parent.name, _number(path.name))):
        start = _number(folder.name)
        if start is None or not folder.is_dir():
            continue
        mode = folder.parent.name
        for path in sorted(folder.glob("*.json")):
            if path.name not in NOT_CELLS:
                paths.setdefault(path.stem, []).append((mode, start, path))
        failures.extend(_records(Failure, folder / "failure.json"))
        sessions.extend(_records(Session, folder / "session.json"))
    if not paths and not failures:
        raise UserError(
            "no cell was measured here", place=str(sessions_folder), fix="run the workflow first", code="no_results"
        )
    plan = read_plan(results, paths, failures)
    return Folder(results, plan, paths, failures, sessions)


def _number(name: str) -> int | None:
    return int(name[1:]) if name[:1] == "r" and name[1:].isdigit() else None


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


def read_plan(results: Path, paths: dict[str, list[tuple[str, int, Path]]], failures: list[Failure]) -> Plan:
    """The plan from `config.resolved.json`; else read off the cells that are there."""
    path = results / "config.resolved.json"
    if path.is_file():
        try:
            content = from_json(path.read_bytes(), allow_inf_nan=False)
        except ValueError as error:
            raise UserError(
                f"not JSON: {error}", place=str(path), fix="run the workflow again", code="unreadable"
            ) from error
        if isinstance(content, dict) and content.get("plan") is not None:
            try:
                return Plan.model_validate(content["plan"])
            except ValidationError as error:
                raise UserError(
                    f"the plan is not understood: {first_problem(error)}",
                    place=f"{path}: plan",
                    fix="write it with the lab's own version",
                    code="unreadable",
                ) from error
    return _plan_from(results.resolve().name, paths, failures)


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
        method=method_of(spec.server.speculative),
        k=draft_length(spec.server.speculative),
    )


def effort(spec: SessionSpec) -> int:
    """How much a mode adds to a deployment: nothing, a flag, a model of its own."""
    return 0 if not spec.server.speculative else 1 + sum(role != "target" for role in spec.checkpoints)


def _by_load(cell: CellSpec) -> tuple[str, int, float]:
    return cell.kind, cell.load.concurrency or 0, cell.load.rate or 0.0
