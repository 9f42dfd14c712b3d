"""The difference of two bundles as text for people: stack, speed, acceptance and identity, decisions (M37)."""

from __future__ import annotations

from ..records.comparison import Gain
from .difference import CellChange, Difference, StackChange

MISSING = "n/a"
_PACKAGES = 12
"""So many changed packages are told one by one."""


def text(found: Difference) -> str:
    """The whole page."""
    from tabulate import tabulate

    lines = [f"A: {found.a}", f"B: {found.b}", "", *_stack(found.stack), ""]
    for note in found.findings:
        lines.append(f"note: {note.message} {note.hint}".rstrip())
    headers = ["kind", "load", "mode", "P50 decode B/A", "interval", "tok/s B/A", "TTFT B/A"]
    headers += ["accept A", "B", "identical A", "B", "same text", "verdict"]
    table = tabulate([_row(cell) for cell in found.cells], headers=headers, tablefmt="simple", disable_numparse=True)
    lines += ["Speed, acceptance, identity (B against A)", "", table, ""]
    lines += [f"only in A: {row}" for row in found.only_a] + [f"only in B: {row}" for row in found.only_b]
    changed = [one for one in found.decisions if one.changed]
    lines.append(f"Decisions: {len(changed)} of {len(found.decisions)} changed")
    for one in changed:
        lines += [f"  {one.kind}:", f"    A: {one.sentence_a}", f"    B: {one.sentence_b}"]
    lines += [f"  not compared: {one}" for one in found.undecided]
    return "\n".join(lines)


def _stack(changes: list[StackChange]) -> list[str]:
    if not changes:
        return ["Stack: the same"]
    lines = [f"Stack: {len(changes)} differences"]
    packages = [one for one in changes if one.where == "package"]
    for one in changes:
        if one.where != "package" or len(packages) <= _PACKAGES:
            lines.append(f"  {one.where}: {one.fact}: {one.a or MISSING} -> {one.b or MISSING}")
    if len(packages) > _PACKAGES:
        lines.append(f"  package: {len(packages)} differ; --json lists them")
    return lines


def _row(cell: CellChange) -> list[str]:
    same = MISSING if not cell.same_text_n else f"{cell.same_text}/{cell.same_text_n}"
    return [
        cell.kind,
        cell.load,
        cell.mode,
        _times(cell.decode),
        MISSING if cell.decode.low is None else f"{cell.decode.low:.2f}-{cell.decode.high:.2f}",
        _times(cell.aggregate),
        _times(cell.ttft),
        _percent(cell.acceptance_a),
        _percent(cell.acceptance_b),
        _percent(cell.identical_a),
        _percent(cell.identical_b),
        same,
        f"{cell.word}{f' ({cell.remark})' if cell.remark else ''}",
    ]


def _times(gain: Gain) -> str:
    return MISSING if gain.ratio is None else f"{gain.ratio:.3f}x"


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:.0%}"
