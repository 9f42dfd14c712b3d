"""What an engine is to the lab: command line, readiness, version, metric names, log facts, request extras, lossy flags.

An engine knows nothing of how it is started; a launcher knows nothing of engines. The session brings the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from pydantic import JsonValue

from ..counters.names import MetricNames
from ..records.base import Finding
from ..records.spec import ServerSpec


@dataclass(frozen=True)
class Named:
    """A checkpoint as a server in production is told of it: a hub repository with its commit, or a path."""

    name: str
    revision: str | None = None


class Engine(Protocol):
    """One server software."""

    name: str
    metrics_path: str | None
    """Where counters are scraped; None when the engine has no such endpoint."""
    metric_names: MetricNames
    ready_path: str
    """Answers 200 only when the server can take requests."""
    default_image: str | None
    distributions: tuple[str, ...]
    """Python packages that may be this engine; the first that is installed names its version before a start."""
    default_command: list[str] | None
    """For the process launcher, when the config names no command."""
    deploy_program: tuple[str, ...]
    """The program that a user starts in production, when the config names no command."""
    image_program: tuple[str, ...]
    """What stands before the flags when its image runs; empty when the image's entrypoint is the server."""
    usual_port: int
    """Where it listens unless told otherwise."""
    keys: tuple[str, ...]
    """Environment variables of the user that its image asks for; never their values."""
    measuring_only: frozenset[str]
    """Flags (long names) that only a measurement needs: fixed seeds, no reuse of earlier prompts."""
    context_flag: str
    """The argument that sets how long prompt and answer may be together; empty when there is none."""
    context_facts: tuple[str, ...]
    """Facts of the log that say what the engine made of it, the one that counts first."""

    def problems(self, spec: ServerSpec, roles: Iterable[str]) -> list[Finding]:
        """Everything wrong with this spec that can be known before a start: methods, options, versions (M18).

        `roles` are the checkpoint roles that the mode has. The finding's code is `bad_speculation` or `bad_args`; its
        message names the option, its hint says what to use instead.
        """

    def context_shares(self, spec: ServerSpec) -> int:
        """Among how many requests the context's argument is divided: 1 where each may take all of it."""

    def lossy(self, spec: ServerSpec) -> bool:
        """Whether this spec's verification may change the text (fly, synthetic, thresholds below 1)."""

    def argv(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath], *, host: str, port: int) -> list[str]:
        """The engine's arguments after the program's name; checkpoints as the server will see them, by role."""

    def env(self, spec: ServerSpec) -> dict[str, str]:
        """Environment that every server of this engine gets (no secrets)."""

    def served_model(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath]) -> str:
        """The model name that requests carry."""

    def body_extra(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """Request fields that this engine needs for a fair measurement, the same in every mode."""

    def version(self, base_url: str) -> str | None:
        """The version that the running server reports; None when it does not say."""

    def facts(self, log: Iterable[str]) -> dict[str, JsonValue]:
        """What the log says of the server as it really runs (B3): effective arguments, async scheduling, token budget,
        KV blocks, CUDA graphs, attention backend, runner. Unknown facts are left out, never guessed."""

    def args(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """The server's flags under their long names: the config's, and the lab's own for a fair measurement."""

    def deploy_args(self, spec: ServerSpec, models: Mapping[str, Named], *, host: str, port: int) -> list[str]:
        """What `argv` gives, for a server in production: without `measuring_only`, and under the model's own name
        unless the config gives it another one; models by role."""
