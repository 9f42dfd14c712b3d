"""From a spec to what a launcher starts: the engine's arguments with paths, host and port as the server sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from ..checkpoints import Checkpoint
from ..engines.base import Engine
from ..launchers.base import LaunchPlan, Mount
from ..records.errors import UserError
from ..records.spec import ServerSpec
from . import ports

CONTAINER_PORT = 8000
CONTAINER_MODELS = PurePosixPath("/models")


def seen(spec: ServerSpec, checkpoints: Mapping[str, Checkpoint]) -> dict[str, PurePosixPath]:
    """Checkpoint paths by role as the server sees them."""
    if spec.launcher == "docker":
        return {role: CONTAINER_MODELS / role / one.path.name for role, one in checkpoints.items()}
    return {role: PurePosixPath(one.path.resolve()) for role, one in checkpoints.items()}


def argv(spec: ServerSpec, engine: Engine, checkpoints: Mapping[str, Checkpoint], port: int = 0) -> list[str]:
    """The whole command line for this launcher; port 0 stands for the one that is chosen at the start."""
    places = seen(spec, checkpoints)
    match spec.launcher:
        case "attach":
            return [str(spec.base_url)]
        case "docker":
            # Inside its own network a server must listen on all addresses; the port is published on loopback only.
            return engine.argv(spec, places, host="0.0.0.0", port=CONTAINER_PORT)
        case _:
            command = spec.command or engine.default_command
            if not command:
                raise UserError(
                    f"The engine {spec.engine} has no program of its own.",
                    place="engine.command",
                    fix="Name the program, e.g. command: [vllm, serve].",
                    code="no_command",
                )
            return [*command, *engine.argv(spec, places, host="127.0.0.1", port=port)]


def plan(
    spec: ServerSpec,
    engine: Engine,
    checkpoints: Mapping[str, Checkpoint],
    identity: str,
    log: Path,
    devices: Sequence[str],
) -> LaunchPlan:
    """What to start; a free loopback port is chosen here."""
    port = 0 if spec.launcher == "attach" else ports.free()
    mounts = (
        [Mount(one.path.resolve(), str(CONTAINER_MODELS / role / one.path.name)) for role, one in checkpoints.items()]
        if spec.launcher == "docker"
        else []
    )
    image = f"{spec.image.split('@')[0]}@{spec.image_digest}" if spec.image and spec.image_digest else spec.image
    return LaunchPlan(
        name=f"specdec-{identity}",
        argv=argv(spec, engine, checkpoints, port),
        log=log,
        env={**engine.env(spec), **spec.env},
        port=port,
        container_port=CONTAINER_PORT,
        image=image,
        program=list(spec.command or engine.default_command or []),
        mounts=mounts,
        devices=list(devices),
    )
