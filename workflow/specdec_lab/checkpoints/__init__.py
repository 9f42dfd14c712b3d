"""Checkpoints (M11, M12, C6): fetched in a step of their own, pinned, found again offline.

`fetch` may download; `locate` never does. Both give a `Checkpoint`, or a UserError that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from .checkpoint import Checkpoint

Say = Callable[[str], None]

__all__ = ["Checkpoint", "fetch", "locate", "source"]


def source(spec: CheckpointSpec) -> str:
    """Which provider serves this spec: hub, path or bundled. UserError unless exactly one is named."""
    given = [name for name in ("hub", "path", "bundled") if getattr(spec, name)]
    if len(given) != 1:
        raise UserError(
            f"a checkpoint names one source, this one names {' and '.join(given) or 'none'}",
            fix="give exactly one of hub:, path:, bundled:",
            code="bad_checkpoint",
        )
    return given[0]


def locate(spec: CheckpointSpec) -> Checkpoint:
    """The checkpoint as it lies on this machine; UserError (code `not_fetched`) if it does not."""
    match source(spec):
        case "path":
            from . import local

            return local.locate(spec)
        case "bundled":
            from . import bundled

            return bundled.locate(spec)
        case _:
            from . import hub

            return hub.locate(spec)


def fetch(spec: CheckpointSpec, *, say: Say = lambda _text: None) -> Checkpoint:
    """Make sure that the checkpoint is on this machine, downloading what is missing; `say` receives progress."""
    match source(spec):
        case "path":
            from . import local

            return local.locate(spec)
        case "bundled":
            from . import bundled

            return bundled.fetch(spec, say=say)
        case _:
            from . import hub

            return hub.fetch(spec, say=say)
