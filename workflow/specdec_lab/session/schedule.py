"""The order in which server starts run, so that drift cannot pass for a gain (B1, M25, case D8).

A pure function of names, counts and a seed: the same input gives the same order on every machine and Python version.

The plan is a row of blocks, one start of each mode per block. The baseline opens the first block and closes the last,
and every second block runs in the opposite order of the one before it. With an even number of replicates each mode has
the same mean place in time, so a linear drift (heat, clocks, a neighbour that grows) adds nothing to any gain: it shows
up as spread between starts, and in the gap between the opening and the closing baseline.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from functools import partial


def interleaved(replicates: Mapping[str, int], *, baselines: Collection[str], seed: int = 0) -> list[tuple[str, int]]:
    """Every (mode, replicate) once, replicates counted from 1, in the order in which they are to run.

    `replicates` says how many fresh servers each mode gets; `baselines` are those among them that open and close.
    Adding or removing a mode leaves the relative order of the others within a block as it was. ValueError when a count
    is below 1 or a baseline has no count.
    """
    for mode, count in replicates.items():
        if count < 1:
            raise ValueError(f"mode {mode} has {count} replicates; at least 1 is needed")
    unknown = sorted(set(baselines) - set(replicates))
    if unknown:
        raise ValueError(f"no replicates given for the baseline {unknown[0]}")
    if not replicates:
        return []
    blocks = max(replicates.values())
    placed: list[list[tuple[str, int]]] = [[] for _ in range(blocks)]
    for mode in replicates:
        for start, block in enumerate(_blocks_of(replicates[mode], blocks, ends=mode in baselines), start=1):
            placed[block].append((mode, start))
    order: list[tuple[str, int]] = []
    for block, starts in enumerate(placed):
        pair, backwards = divmod(block, 2)
        starts.sort(key=partial(_place, seed, pair))
        starts.sort(key=lambda start: start[0] not in baselines)
        if backwards:
            starts.reverse()
        order.extend(starts)
    return _closed(order, baselines)


def priorities(order: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """A priority per start, highest first, for a scheduler that runs the highest priority next."""
    return {start: len(order) - place for place, start in enumerate(order)}


def _blocks_of(count: int, blocks: int, *, ends: bool) -> list[int]:
    """The blocks for `count` starts, spread evenly; `ends` puts the first and the last start into the outer blocks."""
    if ends and count > 1:
        return [round(start * (blocks - 1) / (count - 1)) for start in range(count)]
    if ends:
        return [0]
    return [(2 * start + 1) * blocks // (2 * count) for start in range(count)]


def _place(seed: int, pair: int, start: tuple[str, int]) -> str:
    return hashlib.sha256(f"{seed}:{pair}:{start[0]}".encode()).hexdigest()


def _closed(order: list[tuple[str, int]], baselines: Collection[str]) -> list[tuple[str, int]]:
    """The same order with each baseline's last start (if it has several) moved to the end."""
    last = {mode: start for mode, start in order if mode in baselines}
    closing = [(mode, start) for mode, start in order if last.get(mode) == start and start > 1]
    return [start for start in order if start not in closing] + closing
