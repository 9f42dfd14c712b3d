"""Which of two modes is simpler to run: the order of modes everywhere, whatever the order of keys in a config.

First come servers without speculation, then what needs no second model, then heads of the target, then a draft model;
within a method the shorter draft; then the name. A server called `baseline` comes before other plain ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..records.spec import SessionSpec, looks_up
from .models import LabConfig

_DRAFT_MODEL = ("draft_model", "draft-simple", "standalone")


def baselines(config: LabConfig) -> list[str]:
    """Names of the modes without speculation; the first is the one that others are compared with by default."""
    return sorted(
        (name for name, mode in config.modes.items() if mode.speculative is None),
        key=lambda name: (name != "baseline", name),
    )


def simple_first(sessions: Mapping[str, SessionSpec]) -> dict[str, SessionSpec]:
    """The same sessions, the simpler modes before the more demanding ones."""
    return dict(sorted(sessions.items(), key=lambda item: _demand(*item)))


def _demand(name: str, spec: SessionSpec) -> tuple[int, bool, str, int, str]:
    server = spec.server
    method = server.method or ""
    return _needs(method) if server.speculative else 0, name != "baseline", method, server.draft_length or 0, name


def _needs(method: str) -> int:
    """Of several methods side by side (llama.cpp takes a comma list) the most demanding counts."""
    if looks_up(method):
        return 1
    return 3 if any(part.strip().lower() in _DRAFT_MODEL for part in method.split(",")) else 2
