"""What a run needs on this machine and can be looked up without starting anything: programs and checkpoint paths (M18).

Asked when a run really begins, never for a dry run or a finished one: whoever only reads results needs no engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from . import engines
from .checkpoints import local
from .config.problems import Problem
from .config.resolve import Matrix
from .launchers import program
from .records.errors import UserError
from .records.spec import CheckpointSpec, ServerSpec


def problems(
    matrix: Matrix, *, modes: Iterable[str], checkpoints: Iterable[str], servers_here: bool = True
) -> Iterator[Problem]:
    """Everything that is missing for these modes and checkpoints, each at the key of the config that asks for it.

    `servers_here` is False where another machine of a cluster runs the servers: their programs are its own matter.
    """
    wanted = set(modes)
    for mode in matrix.sessions if servers_here else ():
        if mode not in wanted:
            continue
        server = matrix.sessions[mode].server
        fault = program_fault(server)
        if fault is not None:
            yield Problem(("engine", "command" if server.command else "software"), *fault, (mode,))
    for name in sorted({*checkpoints, *(name for mode in wanted for name in matrix.roles[mode].values())}):
        fault = path_fault(CheckpointSpec.model_validate(matrix.config.checkpoints[name].model_dump()))
        if fault is not None:
            yield Problem(("checkpoints", name, "path"), *fault, users(matrix, name))


def users(matrix: Matrix, checkpoint: str) -> tuple[str, ...]:
    """The modes that use a checkpoint of the config."""
    return tuple(mode for mode, roles in matrix.roles.items() if checkpoint in roles.values())


def program_fault(server: ServerSpec) -> tuple[str, str] | None:
    """Why the process launcher cannot start this server's program, and the fix; None when it can, or starts none."""
    if server.launcher != "process":
        return None
    command = server.command or engines.get(server.engine).default_command
    if not command:
        fix = "Name it: `command: [program, first arguments]`."
        return f"the engine {server.engine} has no program of its own, and the config names none", fix
    if server.engine == "llama_cpp" and server.command is None and find_spec("xllamacpp") is None:
        return "the embedded engine is not installed", "Run `pip install -e '.[demo]'` (make demo does it)."
    return program.fault(command[0])


def path_fault(spec: CheckpointSpec) -> tuple[str, str] | None:
    """Why a checkpoint given as `path` cannot be used, and the fix; None when it can, or comes from elsewhere."""
    if spec.path is None:
        return None
    try:
        local.find(spec)
    except UserError as error:
        return error.cause, error.fix
    return None
