"""The texts of every prompt in every mode, each stored once, for the side-by-side view (M5, M33)."""

from __future__ import annotations

from typing import Any

from ..records.cell import Cell
from .source import Results

LARGEST_CHARS = 4_000_000
"""More text than this would make the page slow to open; heavier loads are then left out, and the page says so."""


def side_by_side(results: Results) -> dict[str, Any]:
    """`texts` (each once), `prompts` (by id), `cells` with the numbers of each prompt's answer, reasoning, calls.

    The first start of every mode is shown, and the second of each baseline, so that a mode's differences can be held
    against the baseline's own.
    """
    place: dict[str, int] = {}
    size = 0
    shown: list[dict[str, Any]] = []
    left_out: list[str] = []
    loads = {load: number for number, load in enumerate(results.loads)}
    modes = {mode: number for number, mode in enumerate(results.modes)}
    for cell in sorted(_first_starts(results), key=lambda c: (loads.get(c.cell.load.label, 99), modes.get(c.mode, 99))):
        texts = {row.id: (row.text, row.reasoning, row.tool_calls) for row in cell.rows if row.status == "ok"}
        fresh = {t for channels in texts.values() for t in channels if t is not None and t not in place}
        added = sum(map(len, fresh))
        name = f"{cell.mode} at {cell.cell.name}"
        if size + added > LARGEST_CHARS:
            left_out.append(name)
            continue
        size += added
        rows = {}
        for prompt, channels in texts.items():
            rows[prompt] = [None if text is None else place.setdefault(text, len(place)) for text in channels]
        shown.append(
            {
                "kind": cell.cell.kind,
                "load": cell.cell.load.label,
                "mode": cell.mode,
                "replicate": cell.replicate,
                "against": cell.session.against,
                "rows": rows,
            }
        )
    return {"texts": list(place), "cells": shown, "prompts": _prompts(results), "left_out": left_out}


def _first_starts(results: Results) -> list[Cell]:
    starts: dict[str, list[int]] = {}
    for cell in results.cells:
        numbers = starts.setdefault(cell.mode, [])
        if cell.replicate not in numbers:
            numbers.append(cell.replicate)
    wanted = {mode: set(sorted(numbers)[: 2 if mode in results.baselines else 1]) for mode, numbers in starts.items()}
    return [cell for cell in results.cells if cell.replicate in wanted[cell.mode]]


def _prompts(results: Results) -> dict[str, str]:
    from ..prompts import load
    from ..records.errors import UserError

    path = results.folder / "prompts.jsonl"
    if not path.exists():
        return {}
    try:
        rows = load(path)
    except UserError:
        return {}
    sent = {row.id for cell in results.cells for row in cell.rows}
    return {
        row.id: "\n\n".join(
            message.content if message.role == "user" else f"[{message.role}] {message.content}"
            for message in row.messages
        )[:20_000]
        for row in rows
        if row.id in sent
    }
