"""Which of two modes is simpler to run: the order of modes everywhere, whatever the order of keys in a config.

First come servers without speculation, then what needs no second model, then heads of the target, then a draft model;
within a method the shorter draft; then the name. A server called `baseline` comes before other plain ones.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from ..records.spec import SessionSpec
from .models import LabConfig

_DRAFT_LENGTH = (
    "num_speculative_tokens",
    "draft-n-max",
    "speculative_num_draft_tokens",
    "ngram-simple-size-m",
    "ngram-map-k-size-m",
    "ngram-mod-n-max",
)
_LOOKUP = ("ngram", "suffix", "lookup")
_DRAFT_MODEL = ("draft_model", "draft-simple", "standalone")


def draft_length(speculative: Mapping[str, JsonValue] | None) -> int | None:
    """K, the most tokens that a step proposes; None where the config does not say it."""
    for key in _DRAFT_LENGTH:
        value = (speculative or {}).get(key)
        if isinstance(value, int):
            return value
    return None


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
    speculative = spec.server.speculative
    method = str((speculative or {}).get("method") or (speculative or {}).get("speculative-algorithm") or "")
    return _needs(method) if speculative else 0, name != "baseline", method, draft_length(speculative) or 0, name


def _needs(method: str) -> int:
    lower = method.lower()
    if lower.startswith(_LOOKUP):
        return 1
    return 3 if lower in _DRAFT_MODEL else 2
