"""From a config to what is to be measured: expanded modes, canonical session specs, cells, and the order of sessions.

The specs are what Snakemake sees as params and what keys the cell store; nothing volatile enters them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from .. import engines
from ..checkpoints.bundled import NAMES as BUNDLED
from ..engines.base import Engine
from ..records.base import Finding, canonical
from ..records.spec import (
    CellSpec,
    CheckpointSpec,
    Deadlines,
    Load,
    Objective,
    Sampling,
    ServerSpec,
    SessionSpec,
)
from ..session.schedule import interleaved
from . import arguments, body
from .expand import PLACEBO, against, expand, name_problems
from .load import LoadedConfig
from .models import LabConfig, ModeConfig
from .problems import Problem
from .simplicity import baselines, simple_first
from .strict_yaml import KeyPath

CHECKPOINT_OPTION = "model"
"""The option of `speculative` that names a checkpoint of the config."""


@dataclass(frozen=True)
class Matrix:
    """Everything that a config asks for."""

    config: LabConfig
    sessions: dict[str, SessionSpec]
    """By mode, the simpler ones first."""
    cells: list[CellSpec]
    """The same for every mode, in the order in which they are measured."""
    order: list[tuple[str, int]]
    """Sessions (mode, replicate) in the order in which they are to run."""
    roles: dict[str, dict[str, str]]
    """By mode: role -> name of the checkpoint in the config."""
    warnings: list[Finding]
    origin: dict[str, str]
    """By mode: the config's mode that it was made of (a sweep makes several)."""

    @property
    def results(self) -> str:
        """Folder of this matrix, relative to where the workflow runs."""
        return f"results/{self.config.name}"

    def session(self, mode: str) -> str:
        """Canonical text of what one session of this mode measures: changes exactly when it must be looked at again."""
        return canonical(
            {
                "session": self.sessions[mode].model_dump(mode="json"),
                "cells": [cell.model_dump(mode="json") for cell in self.cells],
            }
        )

    def replicates(self, mode: str) -> int:
        """How many fresh servers this mode gets."""
        return sum(name == mode for name, _ in self.order)

    def workload(self) -> str:
        """Canonical text of what the prompts file depends on."""
        w = self.config.workload
        return canonical({"prompts": w.prompts, "seed": w.seed, "kinds": w.kinds, "context_tokens": w.context_tokens})


def resolve(loaded: LoadedConfig, *, kinds: list[str], known: list[str]) -> Matrix:
    """Expand and check against the engine; ConfigError names every option that this engine would not take.

    `kinds` are the workload kinds to be measured, `known` all that the prompts have. Image digests and commits of
    checkpoints are not known here: they are found out by rules of their own and enter the cells' keys.
    """
    config = loaded.config
    loaded.refuse(list(name_problems(config)))
    modes, origin = expand(config)
    problems: list[Problem] = []
    sessions: dict[str, SessionSpec] = {}
    roles: dict[str, dict[str, str]] = {}
    for name, mode in modes.items():
        spec, roles[name], found = _session(name, mode, origin[name], config)
        sessions[name] = spec
        problems.extend(found)
    loaded.refuse(problems)
    sessions = simple_first(sessions)
    cells = list(_cells(config, kinds))
    loaded.refuse(list(_cell_problems(config, known)))
    replicates = config.protocol.replicates
    counts = {
        name: (config.protocol.baseline_replicates or max(2, replicates))
        if spec.against is None and not spec.placebo
        else replicates
        for name, spec in sessions.items()
    }
    return Matrix(
        config=config,
        sessions=sessions,
        roles=roles,
        cells=cells,
        order=interleaved(
            counts, baselines=[n for n, s in sessions.items() if s.against is None], seed=config.protocol.seed
        ),
        warnings=list(_warnings(config)),
        origin=origin,
    )


def _session(
    name: str,
    mode: ModeConfig,
    origin: str,
    config: LabConfig,
) -> tuple[SessionSpec, dict[str, str], list[Problem]]:
    engine_config = config.engine
    engine = engines.get(engine_config.software)
    here: KeyPath = ("modes", origin)
    problems: list[Problem] = []
    roles = {"target": mode.target or "target"}
    speculative = dict(mode.speculative) if mode.speculative is not None else None
    if speculative is not None and CHECKPOINT_OPTION in speculative and engine_config.launcher != "attach":
        wanted = speculative[CHECKPOINT_OPTION]
        if not isinstance(wanted, str) or wanted not in config.checkpoints:
            problems.append(
                Problem(
                    (*here, "speculative", CHECKPOINT_OPTION),
                    f"the checkpoint {wanted!r} is not defined",
                    f"Name one of the config's checkpoints: {', '.join(config.checkpoints) or 'none is defined'}.",
                )
            )
        else:
            roles["draft"] = wanted
            speculative[CHECKPOINT_OPTION] = "draft"
    differs = mode.differs
    args: dict[str, JsonValue] = {**engine_config.args, **(differs.args if differs else {})}
    image = engine_config.image or (engine.default_image if engine_config.launcher == "docker" else None)
    server = ServerSpec(
        engine=engine_config.software,
        version=engine_config.version,
        launcher=engine_config.launcher,
        image=image,
        command=engine_config.command,
        base_url=mode.base_url or engine_config.base_url,
        served_model=engine_config.served_model,
        args=args,
        env={**engine_config.env, **(differs.env if differs else {})},
        speculative=speculative,
        gpus=engine_config.gpus if mode.gpus is None else mode.gpus,
        ready_timeout_s=engine_config.ready_timeout_s,
        stop_timeout_s=engine_config.stop_timeout_s,
    )
    lossy = engine.lossy(server)
    if lossy and not mode.lossy:
        problems.append(
            Problem(
                (*here, "speculative"),
                "this verification may change the text (it is lossy)",
                "Say `lossy: true` in this mode if you want it; it is then marked everywhere.",
            )
        )
    problems.extend(arguments.problems(engine, server, lambda option: _args_path(config, origin, option), name))
    problems.extend(arguments.twins(mode.speculative or {}, (*here, "speculative")))
    for finding in engine.problems(server, roles):
        place = _finding_path(finding, engine, server, roles, config, origin)
        problems.append(Problem(place, finding.message, finding.hint, (name,)))
    workload, load = config.workload, config.load
    placebo = name == PLACEBO and config.protocol.placebo
    spec = SessionSpec(
        server=server,
        checkpoints={role: _checkpoint(config, named) for role, named in roles.items() if named in config.checkpoints},
        against=origin if placebo else against(mode, config.modes, baselines(config)),
        lossy=lossy,
        placebo=placebo,
        sampling=Sampling(temperature=workload.temperature, extra=workload.body),
        deadlines=Deadlines(
            total_s=load.total_s,
            first_byte_s=load.first_byte_s,
            idle_s=load.idle_s,
            abort_after_failures=load.abort_after_failures,
        ),
        objective=Objective(ttft_s=load.ttft_s, tpot_s=load.tpot_s),
    )
    return spec, {role: named for role, named in roles.items() if named in config.checkpoints}, problems


def _finding_path(
    finding: Finding, engine: Engine, server: ServerSpec, roles: Iterable[str], config: LabConfig, origin: str
) -> KeyPath:
    """An engine speaks of flags and methods; the user wrote them under the mode or under the engine.

    Which option it is about is found by leaving options out: an engine's findings name no key.
    """
    mode = config.modes[origin]

    def found(**change: object) -> bool:
        return finding in engine.problems(server.model_copy(update=change), roles)

    if finding.code == "bad_args":
        if found(args={}):
            return ("engine",)
        for option in server.args:
            if not found(args={k: v for k, v in server.args.items() if k != option}):
                return _args_path(config, origin, option)
        return ("engine", "args")
    block = server.speculative
    if block is None:
        return ("modes", origin)
    for option in block:
        if option != "method" and not found(speculative={k: v for k, v in block.items() if k != option}):
            return ("modes", origin, "sweep" if option in (mode.sweep or {}) else "speculative", option)
    return ("modes", origin, "speculative")


def _args_path(config: LabConfig, origin: str, option: str) -> KeyPath:
    differs = config.modes[origin].differs
    own = differs is not None and option in differs.args
    return ("modes", origin, "differs", "args", option) if own else ("engine", "args", option)


def args_path(matrix: Matrix, mode: str, option: str) -> KeyPath:
    """Where an argument of this mode's server is written."""
    return _args_path(matrix.config, matrix.origin[mode], option)


def _checkpoint(config: LabConfig, name: str) -> CheckpointSpec:
    return CheckpointSpec.model_validate(config.checkpoints[name].model_dump())


def _cells(config: LabConfig, kinds: list[str]) -> Iterator[CellSpec]:
    workload, load = config.workload, config.load
    loads = [Load(concurrency=n) for n in load.concurrency] + [Load(rate=r, seed=load.seed) for r in load.rates]
    for kind in kinds:
        for one in loads:
            yield CellSpec(
                kind=kind,
                load=one,
                requests=workload.requests,
                warmup=workload.warmup or max(2, one.concurrency or 2),
                max_tokens=workload.max_tokens.get(kind, workload.max_tokens.get(_plain(kind))),
                ignore_eos=workload.ignore_eos,
            )


def _cell_problems(config: LabConfig, known: list[str]) -> Iterator[Problem]:
    workload = config.workload
    for role, checkpoint in config.checkpoints.items():
        if checkpoint.bundled is not None and checkpoint.bundled not in BUNDLED:
            told = f"there is no bundled model `{checkpoint.bundled}`"
            yield Problem(("checkpoints", role, "bundled"), told, f"One of: {', '.join(BUNDLED)}.")
    yield from body.problems(config)
    there = f"They have: {', '.join(known)}."
    for index, kind in enumerate(workload.kinds or []):
        if kind not in known:
            yield Problem(("workload", "kinds", index), f"the prompts have no kind `{kind}`", there)
    for kind in workload.max_tokens:
        if kind not in known:
            yield Problem(("workload", "max_tokens", kind), f"the prompts have no kind `{kind}`", there)
    for index, concurrency in enumerate(config.load.concurrency):
        if workload.requests is not None and concurrency > workload.requests:
            yield Problem(
                ("load", "concurrency", index),
                f"{workload.requests} requests per cell can never be {concurrency} in flight",
                f"Set workload.requests to {concurrency} or more (twice as many is better), or lower the concurrency.",
            )


def _plain(kind: str) -> str:
    """The kind without its long context."""
    return kind.split("_ctx")[0]


def _warnings(config: LabConfig) -> Iterator[Finding]:
    if config.workload.temperature > 0:
        yield Finding(
            code="sampling",
            severity="info",
            message=f"Temperature is {config.workload.temperature:g}: texts differ by design; identity is not judged.",
            hint="Measure at temperature 0 to judge identity.",
        )
    if config.protocol.replicates < 2:
        yield Finding(
            code="one_replicate",
            message="Each mode runs on one server only: no interval can be given and nothing is adopted.",
            hint="Set protocol.replicates to 2 or more.",
        )
