"""B5: the client's self-test on this machine, made once and kept for the session's cells."""

from __future__ import annotations

from functools import cache

from ..client.selftest import quick
from ..records.cell import ClientProof


@cache
def proof() -> ClientProof | None:
    """What the client's quick self-test finds here; None where it could not be run."""
    try:
        return quick()
    except (OSError, RuntimeError):
        return None
