"""NVIDIA NIM for LLMs 2.x: an image per model that serves vLLM or SGLang behind its own paths (M20).

From NVIDIA's documentation; the image is closed. The model comes with the image, so no checkpoint is mounted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue

from ..counters.tables import NIM
from ..records.base import Finding
from ..records.spec import ServerSpec
from . import http, vllm_log, vllm_speculation
from .base import Named
from .flags import flags
from .options import bad_args


class Nim:
    """NIM's paths; its backend's flags are passed on as command-line arguments."""

    name = "nim"
    metrics_path: str | None = "/v1/metrics"
    metric_names = NIM
    ready_path = "/v1/health/ready"
    default_image: str | None = None
    distributions: tuple[str, ...] = ()
    deploy_program: tuple[str, ...] = ()
    image_program: tuple[str, ...] = ()
    usual_port = 8000
    keys: tuple[str, ...] = ("NGC_API_KEY",)
    measuring_only: frozenset[str] = frozenset()
    context_flag = "max-model-len"
    context_facts: tuple[str, ...] = ("target_shortened_to", "max_model_len")

    def __init__(self) -> None:
        self.default_command: list[str] | None = None

    def problems(self, spec: ServerSpec, roles: Iterable[str]) -> list[Finding]:
        """The speculative config is vLLM's; a NIM needs a container or a running server."""
        found: list[Finding] = []
        if spec.launcher == "process":
            found.append(bad_args("a NIM runs in its container", "launcher: docker, or attach to a running one"))
        if spec.launcher == "docker" and not spec.image:
            found.append(bad_args("a NIM is an image of its own for each model", "set engine.image, with its tag"))
        if spec.speculative is not None:
            found += vllm_speculation.problems(spec.speculative, roles, vllm_speculation.NEWEST)
        return found

    def context_shares(self, spec: ServerSpec) -> int:
        """1: it is a limit per request."""
        return 1

    def lossy(self, spec: ServerSpec) -> bool:
        """As vLLM's."""
        return vllm_speculation.lossy(spec.speculative)

    def argv(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath], *, host: str, port: int) -> list[str]:
        """Arguments that NIM hands to its backend; they rank above its profile and its environment."""
        models = {role: str(path) for role, path in checkpoints.items()}
        return flags(self.args(spec)) + vllm_speculation.argv(spec.speculative, models)

    def args(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """The config's args, as they are."""
        return spec.args

    def env(self, spec: ServerSpec) -> dict[str, str]:
        """Nothing of the lab's."""
        return {}

    def served_model(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath]) -> str:
        """The config's name: a NIM's model is called what its image calls it."""
        return spec.served_model or "target"

    def body_extra(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """Nothing: which backend answers is the image's affair."""
        return {}

    def version(self, base_url: str) -> str | None:
        """GET /v1/version."""
        said = http.get_json(f"{base_url}/v1/version")
        if not isinstance(said, dict):
            return None
        version = said.get("api") or said.get("release") or said.get("version")
        return version if isinstance(version, str) else None

    def facts(self, log: Iterable[str]) -> dict[str, JsonValue]:
        """vLLM's lines, when vLLM is the backend."""
        return vllm_log.read(log)

    def deploy_args(self, spec: ServerSpec, models: Mapping[str, Named], *, host: str, port: int) -> list[str]:
        """The backend's arguments: its address is the image's own affair."""
        return flags(self.args(spec)) + vllm_speculation.deploy_argv(spec.speculative, models)


ENGINE = Nim()
