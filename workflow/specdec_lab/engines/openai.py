"""Any OpenAI-compatible endpoint by URL (M20): what it does not offer is unknown, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue

from ..counters.names import MetricNames
from ..records.base import Finding
from ..records.spec import ServerSpec
from .base import Named
from .options import bad_args, bad_speculation


class OpenAi:
    """An endpoint of which only the OpenAI API is known: no counters, no log, no arguments."""

    name = "openai"
    metrics_path: str | None = None
    metric_names = MetricNames()
    ready_path = "/v1/models"
    default_image: str | None = None
    distributions: tuple[str, ...] = ()
    deploy_program: tuple[str, ...] = ()
    image_program: tuple[str, ...] = ()
    usual_port = 8000
    keys: tuple[str, ...] = ()
    measuring_only: frozenset[str] = frozenset()
    context_flag = ""
    context_facts: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.default_command: list[str] | None = None

    def problems(self, spec: ServerSpec, roles: Iterable[str]) -> list[Finding]:
        """It can only be attached to, by name; a mode only labels what runs there."""
        found: list[Finding] = []
        if spec.launcher != "attach":
            found.append(bad_args("an unknown engine can only be attached to", "launcher: attach, with base_url"))
        if spec.args:
            found.append(bad_args("a running server takes no args from here", "leave `args` out"))
        if spec.served_model is None:
            found.append(bad_args("the endpoint's model name is not known", "set engine.served_model"))
        if spec.speculative is not None and not isinstance(spec.speculative.get("method"), str):
            found.append(
                bad_speculation("`method` is missing", "say which method that server runs; it is a label here")
            )
        return found

    def context_shares(self, spec: ServerSpec) -> int:
        """Not known; 1 says nothing about it."""
        return 1

    def lossy(self, spec: ServerSpec) -> bool:
        """Not known from here: the mode's `lossy: true` says so."""
        return False

    def argv(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath], *, host: str, port: int) -> list[str]:
        """Nothing is started."""
        return []

    def env(self, spec: ServerSpec) -> dict[str, str]:
        """Nothing is started."""
        return {}

    def served_model(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath]) -> str:
        """The config's name."""
        return spec.served_model or "target"

    def body_extra(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """Nothing: a strict endpoint refuses fields that it does not know."""
        return {}

    def version(self, base_url: str) -> str | None:
        """Not known."""
        return None

    def facts(self, log: Iterable[str]) -> dict[str, JsonValue]:
        """No log."""
        return {}

    def args(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """None: see `problems`."""
        return {}

    def deploy_args(self, spec: ServerSpec, models: Mapping[str, Named], *, host: str, port: int) -> list[str]:
        """What runs there is known to whoever started it."""
        return []


ENGINE = OpenAi()
