"""What one block of a config cannot know of another, and what a value must be beyond its type (E1, E2)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..nearest import closest
from ..prompts.files import NAME_A_FILE, no_file
from ..records.spec import Load
from . import image, models
from .problems import Problem
from .strict_yaml import KeyPath


def cross_checks(config: models.LabConfig) -> Iterator[Problem]:
    """What one block cannot know of another."""
    if not config.modes:
        yield Problem(("modes",), "no mode is defined", "Define at least a baseline: `baseline: {}`.")
        return
    baselines = [name for name, mode in config.modes.items() if mode.speculative is None]
    if not baselines:
        yield Problem(
            ("modes",), "no mode is a baseline", "Add `baseline: {}`: without it there is nothing to compare with."
        )
    if config.only == []:
        yield Problem(("only",), "no mode is named", "Name the modes to run, or leave `only` out for all of them.")
    for spelling in {name.casefold() for name in config.modes}:
        alike = [name for name in config.modes if name.casefold() == spelling]
        if len(alike) > 1:
            yield Problem(
                ("modes", alike[1]),
                f"it differs from `{alike[0]}` in upper and lower case alone",
                "Give it another name: each mode is a folder, and some file systems take the two for one.",
            )
    for index, name in enumerate(config.only or []):
        if name not in config.modes:
            yield Problem(("only", index), f"the mode `{name}` is not defined", _choices(name, config.modes))
    for name, mode in config.modes.items():
        yield from _mode_checks(name, mode, config, baselines)
    for index, claim in enumerate(config.claims):
        if claim.mode not in config.modes:
            yield Problem(
                ("claims", index, "mode"), f"the mode `{claim.mode}` is not defined", _choices(claim.mode, config.modes)
            )
    yield from _engine_checks(config)
    load = config.load
    for key in ("concurrency", "rates"):
        values = getattr(load, key)
        if len(set(values)) != len(values):
            yield Problem(("load", key), "a value stands twice", "Keep each once.")
    yield from _rate_problems(load.rates)
    for key in ("kinds", "context_tokens"):
        values = getattr(config.workload, key) or []
        if len(set(values)) != len(values):
            yield Problem(("workload", key), "a value stands twice", "Keep each once.")
    named = config.workload.prompts
    if named is not None and (what := no_file(Path(named))):
        yield Problem(("workload", "prompts"), f"{named} is {what}", NAME_A_FILE)
    if not load.concurrency and not load.rates:
        yield Problem(("load",), "there is no load", "Give `concurrency` or `rates`.")
    wanted = config.decision.concurrency
    if wanted is not None and load.concurrency and wanted not in load.concurrency:
        yield Problem(
            ("decision", "concurrency"),
            f"concurrency {wanted} is not measured",
            f"Choose one of {load.concurrency}, or add it to load.concurrency.",
        )


def _choices(name: str, valid: Any) -> str:
    close = closest(name, valid)
    return f"Did you mean `{close}`?" if close else f"Defined are: {', '.join(valid)}."


def _mode_checks(
    name: str, mode: models.ModeConfig, config: models.LabConfig, baselines: Sequence[str]
) -> Iterator[Problem]:
    here: KeyPath = ("modes", name)
    if mode.against is not None:
        if mode.against not in config.modes:
            yield Problem(
                (*here, "against"), f"the mode `{mode.against}` is not defined", _choices(mode.against, config.modes)
            )
        elif mode.against not in baselines:
            yield Problem(
                (*here, "against"), f"`{mode.against}` is no baseline", f"Compare with one of: {', '.join(baselines)}."
            )
        elif (config.modes[mode.against].target or "target") != (mode.target or "target"):
            yield Problem(
                (*here, "against"),
                f"`{mode.against}` serves another target",
                "Give this target a baseline of its own: texts and speeds of two targets are not comparable.",
            )
        if mode.speculative is None:
            yield Problem((*here, "against"), "a baseline is compared with nothing", "Remove `against`.")
    elif mode.speculative is not None and baselines:
        fitting = [b for b in baselines if (config.modes[b].target or "target") == (mode.target or "target")]
        if not fitting:
            yield Problem(
                here,
                f"no baseline serves the target `{mode.target}`",
                f"Add a mode `{{target: {mode.target}}}` without speculation.",
            )
        elif len(fitting) > 1 and baselines[0] not in fitting:
            yield Problem(here, "several baselines fit", f"Say `against:` one of {', '.join(fitting)}.")
    if mode.target is not None and mode.target not in config.checkpoints:
        yield Problem(
            (*here, "target"),
            f"the checkpoint `{mode.target}` is not defined",
            _choices(mode.target, config.checkpoints),
        )
    if mode.sweep is not None:
        if mode.speculative is None:
            yield Problem((*here, "sweep"), "a baseline has nothing to sweep", "Remove `sweep`.")
        if len(mode.sweep) != 1 or not all(mode.sweep.values()):
            yield Problem((*here, "sweep"), "a sweep varies exactly one option", "Give one option with its values.")
    if mode.base_url is not None and config.engine.launcher != "attach":
        yield Problem((*here, "base_url"), "only `launcher: attach` uses a URL", "Remove it, or attach.")


def _rate_problems(rates: Sequence[float]) -> Iterator[Problem]:
    first: dict[str, float] = {}
    for index, rate in enumerate(rates):
        label = Load(rate=rate).label
        other = first.setdefault(label, rate)
        if other != rate:
            told = f"{other!r} and {rate!r} have one name among the results, {label}"
            yield Problem(
                ("load", "rates", index), told, "Keep one, or give rates that differ in their first six digits."
            )


def _variables(place: KeyPath, env: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in env.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII):
            yield Problem(
                (*place, key), f"{key!r} is no name of a variable", "Write NAME: value, with letters and digits."
            )
        if "\0" in value:
            yield Problem((*place, key), "the value holds a NUL character", "Take it out.")
        if re.search(r"TOKEN|SECRET|PASSWORD|API_KEY", key, re.IGNORECASE):
            yield Problem(
                (*place, key), f"`{key}` looks like a secret", "Set it in your own environment; configs are published."
            )


def _engine_checks(config: models.LabConfig) -> Iterator[Problem]:
    engine = config.engine
    if engine.launcher == "attach":
        for name, mode in config.modes.items():
            url = mode.base_url or engine.base_url
            if not url:
                fix = "Give `base_url` here, or in each mode if every mode has a server of its own."
                yield Problem(("engine",), "attach needs a URL", fix, (name,))
            elif not re.match(r"https?://", url):
                own = mode.base_url is not None
                path: KeyPath = ("modes", name, "base_url") if own else ("engine", "base_url")
                yield Problem(path, f"{url!r} is no URL", "Write http://host:port.", () if own else (name,))
    elif "target" not in config.checkpoints:
        yield Problem(
            ("checkpoints",), "the checkpoint `target` is missing", "Add `target:` with hub, path or bundled."
        )
    for key, launcher in (("image", "docker"), ("command", "process"), ("base_url", "attach")):
        if getattr(engine, key) is not None and engine.launcher != launcher:
            yield Problem(
                ("engine", key), f"`{key}` is for `launcher: {launcher}`", f"Remove it, or say `launcher: {launcher}`."
            )
    if engine.launcher == "docker" and engine.image is not None:
        told = image.fault(engine.image)
        if told is not None:
            yield Problem(("engine", "image"), f"{engine.image!r} is no image reference: {told}", image.FORM)
    yield from _variables(("engine", "env"), engine.env)
    for name, mode in config.modes.items():
        if mode.differs is not None:
            yield from _variables(("modes", name, "differs", "env"), mode.differs.env)
    for name, checkpoint in config.checkpoints.items():
        if checkpoint.revision is not None and not re.fullmatch(r"[0-9a-f]{40}", checkpoint.revision):
            yield Problem(
                ("checkpoints", name, "revision"),
                f"{checkpoint.revision!r} is no commit",
                "Pin the 40-digit commit; a branch or tag can move.",
            )
        if checkpoint.revision is not None and not checkpoint.hub:
            yield Problem(("checkpoints", name, "revision"), "only a hub checkpoint has a revision", "Remove it.")
        if checkpoint.hub and not re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", checkpoint.hub):
            yield Problem(("checkpoints", name, "hub"), f"{checkpoint.hub!r} is no repository", "Write owner/name.")
