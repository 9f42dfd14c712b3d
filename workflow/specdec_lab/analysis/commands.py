"""The command that serves a mode outside the lab: the session's own, without what only a measurement needs (M32).

Models are named as a server can open them: a hub repository with its commit, or a path. A path within the lab's cache
begins with `$SPECDEC_CACHE_DIR`, so that the same text is right on every machine; shells and Docker Compose put it in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..checkpoints import bundled, source
from ..engines import get
from ..engines.base import Engine, Named
from ..engines.flags import flags, without
from ..records.errors import UserError
from ..records.spec import CheckpointSpec, SessionSpec

MODELS = PurePosixPath("/models")
"""Where a container finds local checkpoints, as in a session."""
HUB_CACHE = "/root/.cache/huggingface"
DEFAULTS = {
    "SPECDEC_CACHE_DIR": "${XDG_CACHE_HOME:-$HOME/.cache}/specdec-lab",
    "HF_HOME": "${XDG_CACHE_HOME:-$HOME/.cache}/huggingface",
}
"""Variables that need not be set, and what they stand for then."""
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_OPTION = re.compile(r"--?[A-Za-z]")


@dataclass(frozen=True)
class Container:
    """What a mode's container is started with, beside its arguments.

    Attributes:
        image: the image that was measured, with its digest.
        port: published on this machine's loopback under the same number.
        keys: variables of the user that are passed on; never their values.
        env: the config's variables.
        mounts: folders of this machine and where the container finds them; `:ro` unless it must write there.
        gpus: how many.
        arguments: what follows the image's name.
    """

    image: str
    port: int
    keys: list[str]
    env: dict[str, str]
    mounts: list[str]
    gpus: int
    arguments: list[str]


def serve(spec: SessionSpec) -> list[str]:
    """The command as argv; variables in paths are written `$NAME`. UserError when there is none."""
    server, engine = spec.server, get(spec.server.engine)
    if server.launcher == "docker":
        return docker_run(container(spec))
    program = server.command or list(engine.deploy_program)
    if not program:
        raise UserError(f"{server.engine} has no program of its own.", code="no_command")
    models = {role: Named(place(one), one.revision) for role, one in spec.checkpoints.items()}
    return [*program, *_arguments(spec, engine, models, "127.0.0.1")]


def container(spec: SessionSpec) -> Container:
    """The container of a mode that was measured in one."""
    server, engine = spec.server, get(spec.server.engine)
    models, mounts = {}, []
    for role, one in spec.checkpoints.items():
        if one.hub:
            models[role] = Named(one.hub, one.revision)
            mounts.append(f"$HF_HOME:{HUB_CACHE}")
        else:
            inside = str(MODELS / role / PurePosixPath(place(one)).name)
            models[role] = Named(inside)
            mounts.append(f"{place(one)}:{inside}:ro")
    image = server.image or ""
    gated = any(one.gated for one in spec.checkpoints.values())
    return Container(
        image=f"{image.split('@')[0]}@{server.image_digest}" if server.image_digest else image,
        port=engine.usual_port,
        keys=[*engine.keys, *(["HF_TOKEN"] if gated else [])],
        env=dict(sorted(server.env.items())),
        mounts=list(dict.fromkeys(mounts)),
        gpus=server.gpus,
        arguments=[*engine.image_program, *_arguments(spec, engine, models, "0.0.0.0")],
    )


def _arguments(spec: SessionSpec, engine: Engine, models: dict[str, Named], host: str) -> list[str]:
    if "target" not in models:
        raise UserError("Its target is not named in its spec.", code="no_command")
    return engine.deploy_args(spec.server, models, host=host, port=engine.usual_port)


def docker_run(one: Container) -> list[str]:
    """The container as a command."""
    argv = ["docker", "run", "--rm", *(["--gpus", str(one.gpus), "--ipc", "host"] if one.gpus else [])]
    argv += ["-p", f"127.0.0.1:{one.port}:{one.port}"]
    for name in [*one.keys, *(f"{name}={value}" for name, value in one.env.items())]:
        argv += ["-e", name]
    for mount in one.mounts:
        argv += ["-v", mount]
    return [*argv, one.image, *one.arguments]


def place(checkpoint: CheckpointSpec) -> str:
    """What a server opens: a hub repository, or a path in which variables are written `$NAME`."""
    match source(checkpoint):
        case "hub":
            return str(checkpoint.hub)
        case "bundled":
            return f"$SPECDEC_CACHE_DIR/{bundled.place(checkpoint)}"
        case _:
            path = str(checkpoint.path)
            return path.replace("~", "$HOME", 1) if path.startswith("~/") else path


def left_out(spec: SessionSpec) -> list[str]:
    """The flags that the session had and the command has not."""
    engine = get(spec.server.engine)
    args = engine.args(spec.server)
    kept = without(args, engine.measuring_only)
    return flags({name: value for name, value in args.items() if name not in kept})


def variables(spec: SessionSpec) -> list[str]:
    """Names of the variables in the paths of this mode's command, in order."""
    texts = [place(one) for one in spec.checkpoints.values() if not one.hub]
    if spec.server.launcher == "docker":
        texts = container(spec).mounts
    return list(dict.fromkeys(hit[1] or hit[2] for text in texts for hit in _VARIABLE.finditer(text)))


def shell(spec: SessionSpec, argv: Sequence[str], *, begin: str = "") -> str:
    """The lines that a POSIX shell runs: variables and environment first, then the command, an option a line.

    `begin` stands before the command: a script says `exec `, which would close the shell of whoever pastes the lines.
    """
    known = variables(spec)
    lines = []
    if gone := left_out(spec):
        lines.append(f"# Left out, because only a measurement needs it: {shlex.join(gone)}")
    if _relative(spec):
        lines.append("# Its paths are relative to the folder that the lab ran in: run it there.")
    if spec.server.launcher == "docker" and spec.server.image_digest:
        tag = (spec.server.image or "").split("@")[0]
        lines.append(f"# The very image that was measured. One that was built here has no digest elsewhere: {tag}")
    for name in known:
        if name in DEFAULTS:
            lines.append(f': "${{{name}:={DEFAULTS[name]}}}"')
        elif name != "HOME":
            lines.append(f': "${{{name}:?set it as it was when the lab ran}}"')
    if spec.server.launcher == "process":
        lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(spec.server.env.items())]
    return "\n".join([*lines, begin + _folded(quoted(argv, known))]) + "\n"


def _relative(spec: SessionSpec) -> bool:
    own = [one.path for one in spec.checkpoints.values() if one.path]
    if spec.server.launcher == "process" and spec.server.command and "/" in spec.server.command[0]:
        own.append(spec.server.command[0])
    return any(not path.startswith(("/", "~", "$")) for path in own)


def quoted(argv: Iterable[str], known: Sequence[str]) -> list[str]:
    """Each word so that a POSIX shell gives it back, with the known variables put in and no other."""
    return [_word(word, known) for word in argv]


def _word(text: str, known: Sequence[str]) -> str:
    parts, at = [], 0
    for hit in _VARIABLE.finditer(text):
        if (name := hit[1] or hit[2]) in known:
            parts += [re.sub(r'([\\"`$])', r"\\\1", text[at : hit.start()]), f"${{{name}}}"]
            at = hit.end()
    if not parts:
        return shlex.quote(text)
    return '"' + "".join(parts) + re.sub(r'([\\"`$])', r"\\\1", text[at:]) + '"'


def _folded(words: Sequence[str]) -> str:
    lines = [words[0]]
    for word in words[1:]:
        if _OPTION.match(word):
            lines.append(f"  {word}")
        else:
            lines[-1] += f" {word}"
    return " \\\n".join(lines)
