"""What a number stands on, found out before a server starts: it becomes part of the cell's key (B6)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from .. import prompts
from ..checkpoints import Checkpoint
from ..engines.base import Engine
from ..provenance import code, hardware
from ..records.base import digest
from ..records.prompt import Prompt
from ..records.spec import ServerSpec, SessionSpec
from . import program
from .store import Ground


def common(spec: SessionSpec, engine: Engine, found: Mapping[str, Checkpoint]) -> Ground:
    """The ground that all cells of a session share; the prompts are filled in per cell."""
    server = spec.server
    places = {role: PurePosixPath(f"<{role}>/{_suffix(checkpoint)}") for role, checkpoint in found.items()}
    argv = [] if server.launcher == "attach" else engine.argv(server, places, host="<host>", port=0)
    return Ground(
        prompts="",
        checkpoints={role: checkpoint.digest for role, checkpoint in found.items()},
        launch=digest(
            {"argv": argv, "env": engine.env(server), "body": engine.body_extra(server), "command": server.command}
        ),
        image=server.image_digest,
        engine=_program(server, engine),
        hardware=hardware.fingerprint(server.gpus),
        code=code.digest("measure"),
    )


def _program(server: ServerSpec, engine: Engine) -> str | None:
    command = server.command or engine.default_command
    if server.launcher != "process" or not command:
        return None
    return program.version(tuple(command), engine.distributions)


def of(shared: Ground, chosen: Sequence[Prompt]) -> Ground:
    """The ground of one cell."""
    return dataclasses.replace(shared, prompts=prompts.digest(chosen))


def digests(ground: Ground) -> dict[str, str]:
    """The ground as the cell's envelope shows it."""
    named = {
        "prompts": ground.prompts,
        "launch": ground.launch,
        "image": ground.image,
        "engine": ground.engine,
        "hardware": ground.hardware,
        "code": ground.code,
        **{f"checkpoint.{role}": value for role, value in ground.checkpoints.items()},
    }
    return {name: value for name, value in named.items() if value is not None}


def _suffix(checkpoint: Checkpoint) -> str:
    """The file's name without the machine's folders: a server may name its model by it."""
    return checkpoint.path.name
