"""Sessions side by side on one machine: apart by device, not by memory bandwidth, processor and power (B10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..records.base import Finding
from ..records.session import ServerLifetime, Session
from .findings import finding

_SHOWN = 2


def side_by_side(sessions: Sequence[Session]) -> list[Finding]:
    """One remark if servers of different sessions were up at the same time on the same machine; else nothing.

    The machine is told by its boot (`Host.boot`); where that is unknown, nothing is said.
    """
    pairs = list(_overlapping(sessions))
    if not pairs:
        return []
    shown = ", ".join(f"{one} beside {other}" for one, other in pairs[:_SHOWN])
    more = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
    text = f"Servers ran side by side on one machine ({shown}{more}) and shared its memory bandwidth and power."
    return [finding("side_by_side", text)]


def _overlapping(sessions: Sequence[Session]) -> Iterator[tuple[str, str]]:
    """Names of two sessions, in the order of their starts, for each pair that overlaps."""
    lifetimes = sorted(
        ((one, f"{session.mode} r{session.replicate}") for session in sessions for one in session.lifetimes),
        key=lambda pair: pair[0].started_at,
    )
    for place, (one, name) in enumerate(lifetimes):
        for other, other_name in lifetimes[place + 1 :]:
            if one.stopped_at is None or other.started_at >= one.stopped_at:
                break
            if other_name != name and _same_machine(one, other):
                yield name, other_name


def _same_machine(one: ServerLifetime, other: ServerLifetime) -> bool:
    return one.stack.host.boot is not None and one.stack.host.boot == other.stack.host.boot
