"""`make trust`: how often the judge is wrong, on synthetic servers whose truth is known (B1, D4, D8).

Each trial makes cells with a stated variation between server starts, a stated true gain, near-tie flips in every
mode and real corruption in some, and sends them through the code that judges real ones. Counted is how often a mode is
called deployable at that load. Nothing here is a measurement of a server.

    python -m specdec_lab.analysis.trust [--trials 200] [--page docs/trust.md]
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..records.base import write_text_atomic
from ..records.decision import Plan, PlannedMode
from ..records.session import Failure, Session
from ..records.spec import CellSpec, Load
from ..session.schedule import interleaved
from .cells import Measured, parse_cell
from .compare import judge
from .decision import decide
from .synthetic import Made, cell, flipped, plain_text

PROMPTS = 24
FLIPS = 0.02
"""Chance that a text parts late from what it was, in any start of any mode, the baseline included."""
REQUEST_SPREAD = 0.02
"""Standard deviation of a request's log decode rate between two starts, beside what the whole start shares."""
PROMPT_SPREAD = 0.2
"""Standard deviation of the prompts' log decode rates, the same in every start."""
CONCURRENCY = 4
RATES = [random.Random(i).lognormvariate(0.0, PROMPT_SPREAD) for i in range(PROMPTS)]
TEXTS = [plain_text(i) for i in range(PROMPTS)]
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"


@dataclass(frozen=True)
class Truth:
    """What a synthetic mode really is."""

    name: str
    gain: float = 0.0
    corrupt: str | None = None
    """How its text is spoilt: early | scattered | cut | loop."""


@dataclass(frozen=True)
class World:
    """The machine on which a trial runs."""

    label: str
    variation: float
    """Standard deviation of a log rate between starts."""
    replicates: int
    modes: tuple[Truth, ...]
    mode_variation: float | None = None
    """The same for all modes but the baseline, where it differs."""
    drift: float = 0.0
    """Change of every rate from the first start to the last, as a share."""
    interleaved: bool = True
    """False: all baseline starts first, then the modes, and no closing baseline."""


@dataclass
class Simulated:
    """A source of cells for the judge."""

    plan: Plan
    cells: list[Measured]
    failures: list[Failure] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)

    def groups(self) -> Iterator[tuple[str, list[Measured]]]:
        """The one cell of the simulation."""
        yield self.plan.cells[0].name, self.cells


TWIN = Truth("twin")
ALL = (
    TWIN,
    Truth("gain3", 0.03),
    Truth("gain10", 0.10),
    Truth("gain50", 0.50),
    Truth("spoilt_early", 0.5, "early"),
    Truth("spoilt_some", 0.5, "scattered"),
    Truth("spoilt_cut", 0.5, "cut"),
)


def simulate(world: World, rng: random.Random) -> Simulated:
    """One run of the lab in that world."""
    names = ["baseline", *(mode.name for mode in world.modes)]
    counts = dict.fromkeys(names, world.replicates)
    order = interleaved(counts, baselines=["baseline"], seed=rng.randrange(2**32))
    if not world.interleaved:
        order = [(name, start) for name in names for start in range(1, world.replicates + 1)]
    truths = {mode.name: mode for mode in world.modes}
    plan = Plan(
        name="trust",
        modes=[
            PlannedMode(name=name, against=None if name == "baseline" else "baseline", replicates=world.replicates)
            for name in names
        ],
        cells=[CellSpec(kind="chat", load=Load(concurrency=CONCURRENCY), warmup=CONCURRENCY)],
    )
    cells = []
    for place, (name, start) in enumerate(order):
        truth = truths.get(name)
        spread = world.variation if truth is None or world.mode_variation is None else world.mode_variation
        share = place / max(len(order) - 1, 1)
        level = (
            100.0 * (1 + (truth.gain if truth else 0.0)) * (1 + world.drift * share) * rng.lognormvariate(0.0, spread)
        )
        cells.append(_cell(name, start, level, truth, place, rng))
    return Simulated(plan, cells)


def _cell(name: str, start: int, level: float, truth: Truth | None, place: int, rng: random.Random) -> Measured:
    texts = [flipped(text, rng.randrange(200, 1100)) if rng.random() < FLIPS else text for text in TEXTS]
    if truth is not None and truth.corrupt is not None:
        texts = [_spoilt(text, i, truth.corrupt) for i, text in enumerate(texts)]
    made = Made(
        name,
        start,
        [level * own * rng.lognormvariate(0.0, REQUEST_SPREAD) for own in RATES],
        concurrency=CONCURRENCY,
        against=None if truth is None else "baseline",
        texts=texts,
        started_at=f"2026-01-01T{place // 60:02d}:{place % 60:02d}:00Z",
        speculative=None if truth is None else {"method": "eagle3", "num_speculative_tokens": 3},
        drafts=None if truth is None else 800,
        draft_tokens=None if truth is None else 2400,
        accepted=None if truth is None else 1500,
    )
    return parse_cell(cell(made), Path(f"{made.name}.json"), name, start)


def _spoilt(text: str, prompt: int, how: str) -> str:
    """The same spoiling in every start, as a fault of the code would do it."""
    if how == "early":
        return flipped(text, prompt % 7)
    if prompt % 5:
        return text
    place = 100 + 97 * prompt % 900
    return text[:place] if how == "cut" else flipped(text, place)


@dataclass
class Count:
    """How often each mode was called deployable, of so many trials."""

    trials: int
    adopted: dict[str, int]


def run(world: World, trials: int, seed: int) -> Count:
    """Judge so many trials."""
    rng = random.Random(seed)
    adopted = {mode.name: 0 for mode in world.modes}
    for _ in range(trials):
        answer = decide(judge(simulate(world, rng), {})).workloads[0]
        for candidate in answer.candidates:
            adopted[candidate.mode] += candidate.adoptable
    return Count(trials, adopted)


def worlds() -> list[tuple[str, list[World]]]:
    """Every table: its title and its rows."""
    variations = (0.005, 0.02, 0.05, 0.10)
    tables = [
        (
            f"Seven modes, {replicates} starts each",
            [World(f"{variation:.1%} between starts", variation, replicates, ALL) for variation in variations],
        )
        for replicates in (2, 4)
    ]
    alone = (TWIN, Truth("gain10", 0.10))
    for replicates in (2, 4):
        rows = [World(f"{v:.1%}, only the twin", v, replicates, (TWIN,)) for v in variations]
        rows += [World(f"{v:.1%}, twin and a 10 % gain", v, replicates, alone) for v in variations[:2]]
        tables.append((f"One or two modes, {replicates} starts each", rows))
    drifting = [
        World(
            f"{drift:+.0%}, interleaved, {replicates} starts",
            0.01,
            replicates,
            (TWIN, Truth("gain3", 0.03), Truth("gain50", 0.5)),
            drift=drift,
        )
        for drift in (0.05, 0.10, 0.20, -0.20)
        for replicates in (2, 4)
    ]
    drifting += [
        World(
            f"{drift:+.0%}, baseline first, {replicates} starts",
            0.01,
            replicates,
            (TWIN, Truth("gain3", 0.03)),
            drift=drift,
            interleaved=False,
        )
        for drift in (0.10, 0.30)
        for replicates in (2, 4)
    ]
    tables.append(("Drift", drifting))
    noisy = [
        World(
            f"0.5% baseline, {v:.0%} modes, {replicates} starts",
            0.005,
            replicates,
            (TWIN, Truth("gain50", 0.5)),
            mode_variation=v,
        )
        for v in (0.02, 0.05)
        for replicates in (2, 4)
    ]
    tables.append(("Modes noisier than their baseline", noisy))
    return tables


def table(title: str, rows: Sequence[World], counts: Sequence[Count]) -> str:
    """One table in Markdown: adoptions of each mode per world."""
    names = list(dict.fromkeys(mode.name for world in rows for mode in world.modes))
    lines = [f"### {title}", "", f"| world | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    for world, count in zip(rows, counts, strict=True):
        shown = [f"{count.adopted[name]}/{count.trials}" if name in count.adopted else "" for name in names]
        lines.append(f"| {world.label} | {' | '.join(shown)} |")
    return "\n".join([*lines, ""])


def bars(results: Sequence[tuple[World, Count]]) -> list[str]:
    """Each bar that was missed, as a sentence; empty when all hold. Scaled to the trials that were run."""
    missed = []
    for world, count in results:
        for mode in world.modes:
            adopted, allowed = count.adopted[mode.name], max(count.trials // 200, 1)
            if (mode.gain == 0 or mode.corrupt) and world.mode_variation is None and adopted > allowed:
                missed.append(f"{world.label}, {world.replicates} starts: {mode.name} adopted {adopted} times.")
            small = world.drift and mode.gain < 0.05
            if small and adopted > allowed:
                missed.append(f"{world.label}: {mode.name} adopted {adopted} times under drift.")
            quiet = world.variation <= 0.02 and not world.drift and world.replicates >= 4
            if mode.gain == 0.10 and not mode.corrupt and quiet and adopted < 0.95 * count.trials:
                missed.append(f"{world.label}: a true 10 % gain adopted {adopted} times only.")
    return missed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run everything, print the tables, write them into the page if asked; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description="How often the judge is wrong, on servers whose truth is known.")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, help="Processes; default: one per core.")
    parser.add_argument("--page", type=Path, help="Markdown page whose tables are written anew.")
    asked = parser.parse_args(arguments)
    began = time.monotonic()
    texts: list[str] = []
    results: list[tuple[World, Count]] = []
    with ProcessPoolExecutor(max_workers=asked.jobs) as pool:
        for title, rows in worlds():
            seeds = [asked.seed + len(results) + place for place in range(len(rows))]
            counts = list(pool.map(run, rows, [asked.trials] * len(rows), seeds))
            results += zip(rows, counts, strict=True)
            texts.append(table(title, rows, counts))
            sys.stdout.write(texts[-1] + "\n")
            sys.stdout.flush()
    missed = bars(results)
    told = missed or ["All bars hold."]
    sys.stdout.write("\n".join(told) + f"\n{time.monotonic() - began:.0f} s\n")
    if asked.page is not None:
        head, _, rest = asked.page.read_text(encoding="utf-8").partition(BEGIN)
        _, _, tail = rest.partition(END)
        body = "\n".join([f"{asked.trials} trials per row, seed {asked.seed}.", "", *texts, *told])
        write_text_atomic(asked.page, f"{head}{BEGIN}\n{body}\n{END}{tail}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
