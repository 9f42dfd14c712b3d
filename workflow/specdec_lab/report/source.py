"""What the report is made from: the files of one results folder, read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from ..asked import session_folders
from ..records.cell import Cell
from ..records.comparison import CellResult, Comparison
from ..records.decision import Decision
from ..records.reading import must_read
from ..records.session import Session

_AGAIN = "Run `specdec compare` on the results."


@dataclass(frozen=True)
class Results:
    """One results folder. `cells` and `sessions` may be incomplete: a mode may have failed."""

    folder: Path
    comparison: Comparison
    decision: Decision
    sessions: list[Session] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Files that are there and are not what they should be, relative to the folder."""

    @property
    def kinds(self) -> list[str]:
        """Workload kinds in the order of the table."""
        return list(dict.fromkeys(row.kind for row in self.comparison.cells))

    @property
    def modes(self) -> list[str]:
        """Modes in the order of the plan, baselines first as they stand there, then any others."""
        planned = [mode.name for mode in self.comparison.plan.modes]
        return list(dict.fromkeys([*planned, *(row.mode for row in self.comparison.cells)]))

    @property
    def baselines(self) -> list[str]:
        """Modes that others are compared with."""
        return list(dict.fromkeys(row.mode for row in self.comparison.cells if row.against is None))

    @property
    def loads(self) -> list[str]:
        """Load labels from the lightest to the heaviest, closed loop first."""
        rows = {row.load: row for row in self.comparison.cells}
        return sorted(rows, key=lambda load: load_order(rows[load]))

    def rows(self, kind: str) -> list[CellResult]:
        """The rows of one kind, lightest load first, modes in their order."""
        place = {mode: number for number, mode in enumerate(self.modes)}
        found = [row for row in self.comparison.cells if row.kind == kind]
        return sorted(found, key=lambda row: (load_order(row), place[row.mode]))


def load_order(row: CellResult) -> tuple[int, float, str]:
    """Sorts loads: by concurrency, then open loop by rate."""
    if row.concurrency is not None:
        return (0, row.concurrency, row.load)
    return (1, row.rate or 0.0, row.load)


def load_words(row: CellResult) -> str:
    """A load as people say it: `4` for concurrency 4, `2.5/s` for an open loop."""
    if row.concurrency is not None:
        return str(row.concurrency)
    return f"{row.rate:g}/s" if row.rate is not None else row.load


def load_title(results: Results) -> str:
    """What a load axis is called: `concurrency`, or `load` where requests also arrive at a rate."""
    return "concurrency" if all(row.rate is None for row in results.comparison.cells) else "load"


def read(folder: Path) -> Results:
    """Read a results folder. UserError when comparison or decision are not there or of another version."""
    comparison = must_read(folder / "comparison.json", Comparison, fix=_AGAIN)
    decision = must_read(folder / "decision.json", Decision, fix=_AGAIN)
    sessions: list[Session] = []
    cells: list[Cell] = []
    unreadable: list[str] = []
    for one in session_folders(folder):
        for path in sorted([*one.cells, *([one.session] if one.session.is_file() else [])]):
            try:
                if not path.is_file():
                    raise FileNotFoundError(path)  # a pipe would never end
                if path == one.session:
                    sessions.append(Session.read(path))
                else:
                    cells.append(Cell.read(path))
            except (OSError, ValidationError):
                unreadable.append(str(path.relative_to(folder)))
    return Results(folder, comparison, decision, sessions, cells, unreadable)
