"""From a results folder to the comparison: every planned row, measured or not, beside the noise it must beat.

Serves M10, M25, M28-M33, B1, B2, B4. Cells are read one kind and load at a time; the judging itself is pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..quantities import median
from ..records.base import Finding
from ..records.comparison import CellResult, Comparison, FailedMode, Floor, Start
from ..records.decision import PlannedMode
from ..records.probe import Probe
from ..records.reading import must_read
from ..records.spec import CellSpec, SessionSpec
from ..records.stack import Stack
from ..records.verdict import Verdict
from .cells import Heat, Measured
from .comparable import confounders, other_contexts
from .curves import curves
from .findings import finding
from .group import Ties, judge_group
from .load import Source, open_folder
from .outlook import with_outlook
from .overall import Remembered, over_all_cells
from .overlap import side_by_side

PROBE_FILE = "probe.json"


def compare(results_dir: Path) -> Comparison:
    """Judge every cell of a results folder; UserError when there is nothing to judge."""
    return judge(open_folder(results_dir), read_ties(results_dir))


def judge(folder: Source, ties: Ties) -> Comparison:
    """Judge cells from wherever they come, one kind and load at a time."""
    results: list[CellResult] = []
    floors: list[Floor] = []
    seen = _Seen()
    specs = {cell.name: cell for cell in folder.plan.cells}
    bases = {mode.name for mode in folder.plan.modes if mode.against is None}
    for name, cells in folder.groups():
        spec = specs.get(name) or cells[0].cell
        group = judge_group(cells, spec, folder.plan, ties)
        present = {row.mode for row in group.results}
        rows = [
            *group.results,
            *(_absent(mode, spec, folder) for mode in folder.plan.modes if mode.name not in present),
        ]
        order = {mode.name: place for place, mode in enumerate(folder.plan.modes)}
        results.extend(sorted(rows, key=lambda row: order[row.mode]))
        floors.extend(group.floors)
        seen.add(cells, bases)
    against = {mode.name: mode.against for mode in folder.plan.modes}
    comparison = Comparison(
        name=folder.plan.name,
        plan=folder.plan,
        cells=results,
        floors=floors,
        starts=seen.starts(),
        failed=_failed(folder, results),
        confounders=confounders(folder.sessions, against),
        findings=[*_whole_run(folder, floors), *side_by_side(folder.sessions), *other_contexts(folder.sessions)],
        stack=seen.stack,
        specs=seen.specs,
    )
    judged = with_outlook(over_all_cells(comparison, seen.memory))
    return judged.model_copy(update={"curves": curves(judged)})


def read_ties(results_dir: Path) -> Ties:
    """Gaps that a probe wrote: `probe.json`, mode -> cell -> prompt id -> gap. Empty when nobody probed."""
    path = results_dir / PROBE_FILE
    if not path.is_file():
        return {}
    probe = must_read(path, Probe, fix="Delete the file, or run `specdec probe` again.")
    ties: dict[tuple[str, str], dict[str, float]] = {}
    for one in probe.answers:
        if one.gap is not None:
            ties.setdefault((one.mode, one.cell), {})[one.id] = one.gap
    return ties


@dataclass
class _Seen:
    """What is kept of each cell after its group was judged: order, heat, and what a drafter could remember."""

    memory: list[Remembered] = field(default_factory=list)
    stack: Stack | None = None
    specs: dict[str, SessionSpec] = field(default_factory=dict)
    starts_seen: dict[tuple[str, int, str], list[tuple[str, Heat]]] = field(default_factory=dict)

    def add(self, cells: list[Measured], bases: set[str]) -> None:
        """Keep the little that is needed later, never the requests."""
        for cell in cells:
            if self.stack is None and cell.mode in bases:
                self.stack = cell.stack
            if cell.key:
                self.specs.setdefault(cell.mode, cell.session)
            start = (cell.mode, cell.replicate, cell.server)
            self.starts_seen.setdefault(start, []).append((cell.started_at, cell.heat))
            self.memory.append(
                Remembered(
                    mode=cell.mode,
                    kind=cell.cell.kind,
                    load=cell.cell.load.label,
                    server=cell.server,
                    order=cell.order,
                    rate=cell.counters.acceptance.acceptance_rate,
                )
            )

    def starts(self) -> list[Start]:
        """Every server start in the order in which it ran."""
        found = [
            Start(
                mode=mode,
                replicate=replicate,
                server=server,
                started_at=min(at for at, _ in cells),
                cells=len(cells),
                sm_clock_mhz=_middle(heat.sm_clock_mhz for _, heat in cells),
                temperature_c=_middle(heat.temperature_c for _, heat in cells),
                power_w=_middle(heat.power_w for _, heat in cells),
                throttle=sorted({reason for _, heat in cells for reason in heat.throttle}),
            )
            for (mode, replicate, server), cells in self.starts_seen.items()
        ]
        return sorted(found, key=lambda start: (start.started_at, start.mode, start.replicate))


def _middle(values: Iterable[float | None]) -> float | None:
    return median(value for value in values if value is not None)


def _absent(mode: PlannedMode, cell: CellSpec, folder: Source) -> CellResult:
    """A planned row without a measurement: failed when a failure is on file, else missing. Never zeros (C2)."""
    failure = next((one for one in folder.failures if one.mode == mode.name), None)
    if failure is not None:
        found = finding("failed_mode", f"{mode.name} r{failure.replicate} failed: {failure.cause}")
    else:
        found = finding("missing_cell", f"{mode.name} has no cell {cell.name}.")
    return CellResult(
        kind=cell.kind,
        load=cell.load.label,
        concurrency=cell.load.concurrency,
        rate=cell.load.rate,
        mode=mode.name,
        against=mode.against,
        status="failed" if failure is not None else "missing",
        findings=[found],
        verdict=None if mode.against is None else Verdict(word="not comparable", reasons=[found]),
    )


def _failed(folder: Source, rows: list[CellResult]) -> list[FailedMode]:
    """Modes with a failure on file, and modes that have no cell at all."""
    found = []
    for mode in folder.plan.modes:
        failures = [one for one in folder.failures if one.mode == mode.name]
        nothing = all(row.starts == 0 for row in rows if row.mode == mode.name)
        if failures or nothing:
            starts = sorted({one.replicate for one in failures}) or list(range(1, mode.replicates + 1))
            found.append(FailedMode(mode=mode.name, replicates=starts, failure=failures[0] if failures else None))
    return found


def _whole_run(folder: Source, floors: list[Floor]) -> list[Finding]:
    """Remarks on the run as a whole (M25)."""
    found = []
    for base in (mode for mode in folder.plan.modes if mode.against is None):
        own = [floor for floor in floors if floor.baseline == base.name]
        noisy = [floor for floor in own if floor.decode is not None and floor.decode >= folder.plan.rules.noise_limit]
        if noisy:
            worst = max(noisy, key=lambda floor: floor.decode or 0.0)
            text = (
                f"In {len(noisy)} of {len(own)} cells the spread between starts of {base.name} is "
                f"{folder.plan.rules.noise_limit:.0%} or more (at most {worst.decode or 0:.0%}, in "
                f"{worst.kind}_{worst.load})."
            )
            found.append(finding("noise_high", text, severity="warn"))
        if own and all(floor.starts < 2 for floor in own):
            found.append(finding("no_floor", f"{base.name} ran once, so nothing can be adopted."))
    return found
