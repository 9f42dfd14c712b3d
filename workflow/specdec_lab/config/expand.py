"""The modes that a config comes to: sweeps become modes of their own, the placebo is added, each under one name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..records.base import canonical
from .models import LabConfig, ModeConfig
from .problems import Problem
from .simplicity import baselines
from .strict_yaml import KeyPath

PLACEBO = "placebo"


def name_problems(config: LabConfig) -> Iterator[Problem]:
    """Names that would stand for two modes, of which one would be lost: whatever `only` chooses."""
    if config.protocol.placebo and PLACEBO in config.modes:
        yield Problem(
            ("modes", PLACEBO),
            f"the mode that `protocol.placebo` adds is called `{PLACEBO}` too",
            "Give this mode another name, or leave `protocol.placebo` out.",
        )
    first: dict[str, KeyPath] = {name: ("modes", name) for name, mode in config.modes.items() if mode.sweep is None}
    for name, mode in config.modes.items():
        if mode.sweep is None or mode.speculative is None:
            continue
        option = next(iter(mode.sweep))
        for index, (expanded, _) in enumerate(_swept(name, mode)):
            here: KeyPath = ("modes", name, "sweep", option, index)
            other = first.setdefault(expanded, here)
            if other[:-1] == here[:-1] and other != here:
                yield Problem(here, f"two values make the one mode `{expanded}`", "Keep one of them.")
            elif other != here:
                fix = f"Rename `{other[1]}` or `{name}`, or take this value out of the sweep."
                yield Problem(here, f"this value's mode is called `{expanded}`, as another one is", fix)


def expand(config: LabConfig) -> tuple[dict[str, ModeConfig], dict[str, str]]:
    """Sweeps become modes of their own, the placebo is added, `only` chooses (with the baselines that are needed)."""
    modes: dict[str, ModeConfig] = {}
    origin: dict[str, str] = {}
    chosen = set(config.only) if config.only is not None else set(config.modes)
    plain = baselines(config)
    needed = {against(mode, config.modes, plain) for name, mode in config.modes.items() if name in chosen}
    for name, mode in config.modes.items():
        if name not in chosen and name not in needed:
            continue
        for expanded, one in _swept(name, mode):
            modes[expanded] = one
            origin[expanded] = name
        if config.protocol.placebo and name == plain[0]:
            modes[PLACEBO] = mode
            origin[PLACEBO] = name
    return modes, origin


def _swept(name: str, mode: ModeConfig) -> Iterator[tuple[str, ModeConfig]]:
    if mode.sweep is None or mode.speculative is None:
        yield name, mode
        return
    option, values = next(iter(mode.sweep.items()))
    short = "k" if option in ("num_speculative_tokens", "draft-n-max") else f"{option}-"
    for value in values:
        text = str(value) if isinstance(value, int | float | str) else canonical(value)
        label = "".join(c if c.isalnum() or c in "._-" else "-" for c in text)
        yield (
            f"{name}-{short}{label}",
            mode.model_copy(update={"speculative": {**mode.speculative, option: value}, "sweep": None}),
        )


def against(mode: ModeConfig, modes: Mapping[str, ModeConfig], plain: list[str]) -> str | None:
    """The baseline that a mode is compared with; None for a baseline."""
    if mode.speculative is None:
        return None
    if mode.against is not None:
        return mode.against
    return next((b for b in plain if (modes[b].target or "target") == (mode.target or "target")), None)
