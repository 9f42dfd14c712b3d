"""The config of a bundle: what was resolved, as a config file that resolves to the same again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..records.base import strict_dumps

CONFIG = "config/config.yaml"
"""Where the workflow looks by itself, so that an unpacked bundle needs no option."""

_HEAD = "# The config of this bundle as resolved, every key written out. JSON is YAML; made by `specdec pack`.\n"


def config_text(resolved: Mapping[str, Any]) -> str:
    """The config file of a `config.resolved.json`.

    That file has sorted keys, but the order of modes has a meaning (ties go to the earlier one): it is taken from the
    plan, where modes are a list.
    """
    config = dict(resolved["config"])
    planned = [mode["name"] for mode in resolved["plan"]["modes"]]
    modes = config["modes"]
    config["modes"] = {name: modes[name] for name in sorted(modes, key=lambda name: _place(name, planned, modes))}
    return _HEAD + strict_dumps(config)


def _place(name: str, planned: Sequence[str], modes: Mapping[str, Any]) -> int:
    """Where the first mode made of this entry stands in the plan; a sweep's modes carry the entry's name in front."""
    for place, mode in enumerate(planned):
        origin = max((entry for entry in modes if mode == entry or mode.startswith(f"{entry}-")), key=len, default=None)
        if origin == name:
            return place
    return len(planned)


def traffic(resolved: Mapping[str, Any]) -> str | None:
    """The user's own prompts file, as the config names it."""
    found = resolved["config"]["workload"]["prompts"]
    return found if isinstance(found, str) else None
