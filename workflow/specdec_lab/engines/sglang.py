"""SGLang: `python -m sglang.launch_server` (M20). Flags as of 0.5.23."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue

from ..counters.tables import SGLANG
from ..nearest import nearest
from ..records.base import Finding
from ..records.spec import ServerSpec
from . import http
from .base import Named
from .flags import flags, without, word
from .options import Option, bad_args, bad_speculation

NEEDS_MODEL = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH", "DSPARK")
WITHOUT_MODEL = ("NGRAM", "NEXTN", "FROZEN_KV_MTP", "UNO")
METHODS = (*NEEDS_MODEL, *WITHOUT_MODEL)
_ACCEPTANCE = ("accept-threshold-single", "accept-threshold-acc")
OPTIONS = {
    "num-steps": Option("whole", least=1),
    "eagle-topk": Option("whole", least=1),
    "num-draft-tokens": Option("whole", least=1),
    "accept-threshold-single": Option("number", least=0, most=1),
    "accept-threshold-acc": Option("number", least=0, most=1),
    "use-rejection-sampling": Option("switch"),
    "use-block-verification": Option("switch"),
    "adaptive": Option("switch"),
    "token-map": Option("text"),
    "attention-mode": Option("text"),
    "ngram-min-bfs-breadth": Option("whole", least=1),
    "ngram-max-bfs-breadth": Option("whole", least=1),
    "ngram-match-type": Option("text"),
    "ngram-max-trie-depth": Option("whole", least=1),
    "ngram-capacity": Option("whole", least=1),
}
"""Options of a mode's `speculative` block: SGLang's flags without `--speculative-`; `method` is the algorithm."""
OWN_ARGS = ("model", "model-path", "host", "port", "served-model-name")
FAIR_DEFAULTS: dict[str, JsonValue] = {
    "enable-metrics": True,
    "disable-radix-cache": True,  # M26
    "random-seed": 0,
    "stream-interval": 1,
}
MEASURING_ONLY = frozenset({"disable-radix-cache", "random-seed", "stream-interval"})
_FACTS = {
    "args": re.compile(r"server_args=(ServerArgs\(.*\))"),
    "kv_cache_tokens": re.compile(r"max_total_num_tokens=(\d+)"),
    "max_running_requests": re.compile(r"max_running_requests=(\d+)"),
    "context_len": re.compile(r"context_len=(\d+)"),
    "attention_backend": re.compile(r"attention_backend='?(\w+)"),
}


def _name(option: str) -> str:
    return option.replace("_", "-").removeprefix("speculative-")


class Sglang:
    """SGLang's flags, readiness and counters."""

    name = "sglang"
    metrics_path: str | None = "/metrics"
    metric_names = SGLANG
    ready_path = "/ready"
    """Not /health: that generates a token each time it is asked."""
    default_image: str | None = "lmsysorg/sglang:v0.5.23"
    distributions: tuple[str, ...] = ("sglang",)
    deploy_program: tuple[str, ...] = ("python3", "-m", "sglang.launch_server")
    image_program = deploy_program
    usual_port = 30000
    keys: tuple[str, ...] = ()
    measuring_only = MEASURING_ONLY
    context_flag = "context-length"
    context_facts: tuple[str, ...] = ("context_len",)

    def __init__(self) -> None:
        self.default_command: list[str] | None = list(self.deploy_program)

    def problems(self, spec: ServerSpec, roles: Iterable[str]) -> list[Finding]:
        """Unknown algorithms and options, a missing draft, arguments that are the lab's own."""
        found = [
            bad_args(f"`{option}` may not stand among the server's args", "the lab or the mode sets it")
            for option in spec.args
            if option.replace("_", "-") in OWN_ARGS or option.replace("_", "-").startswith("speculative-")
        ]
        return found + (list(_speculation_problems(spec.speculative, set(roles))) if spec.speculative else [])

    def context_shares(self, spec: ServerSpec) -> int:
        """1: it is a limit per request."""
        return 1

    def lossy(self, spec: ServerSpec) -> bool:
        """An acceptance threshold below 1 takes tokens that the target would not have chosen."""
        block = {_name(k): v for k, v in (spec.speculative or {}).items()}
        return any(isinstance(v := block.get(name), int | float) and v < 1 for name in _ACCEPTANCE)

    def argv(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath], *, host: str, port: int) -> list[str]:
        """launch_server's arguments."""
        argv = ["--model-path", str(checkpoints["target"]), "--host", host, "--port", str(port)]
        argv += ["--served-model-name", self.served_model(spec, checkpoints), *flags(self.args(spec))]
        return argv + _speculation(spec, {role: str(path) for role, path in checkpoints.items()})

    def args(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """The config's args upon the fair defaults."""
        return {**FAIR_DEFAULTS, **{k.replace("_", "-"): v for k, v in spec.args.items()}}

    def env(self, spec: ServerSpec) -> dict[str, str]:
        """No network: checkpoints were fetched before."""
        return {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}

    def served_model(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath]) -> str:
        """The config's name, or `target`."""
        return spec.served_model or "target"

    def body_extra(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """Token ids in each chunk (case A8)."""
        return {"return_token_ids": True}

    def version(self, base_url: str) -> str | None:
        """GET /server_info."""
        said = http.get_json(f"{base_url}/server_info")
        version = said.get("version") if isinstance(said, dict) else None
        return version if isinstance(version, str) else None

    def facts(self, log: Iterable[str]) -> dict[str, JsonValue]:
        """Arguments and cache sizes as the server prints them."""
        facts: dict[str, JsonValue] = {}
        for line in log:
            for name, pattern in _FACTS.items():
                if name not in facts and (hit := pattern.search(line)):
                    facts[name] = int(hit[1]) if hit[1].isdigit() else hit[1]
        return facts

    def deploy_args(self, spec: ServerSpec, models: Mapping[str, Named], *, host: str, port: int) -> list[str]:
        """launch_server's arguments without the flags that only a measurement needs."""
        target = models["target"]
        argv = ["--model-path", target.name, "--host", host, "--port", str(port)]
        argv += ["--revision", target.revision] if target.revision else []
        argv += ["--served-model-name", spec.served_model] if spec.served_model else []
        argv += flags(without(self.args(spec), MEASURING_ONLY))
        argv += _speculation(spec, {role: one.name for role, one in models.items()})
        role = (spec.speculative or {}).get("model")
        draft = models.get(role) if isinstance(role, str) else None
        return argv + (["--speculative-draft-model-revision", draft.revision] if draft and draft.revision else [])


def _speculation(spec: ServerSpec, models: Mapping[str, str]) -> list[str]:
    if spec.speculative is None:
        return []
    block = {_name(k): v for k, v in spec.speculative.items()}
    argv = ["--speculative-algorithm", str(block.pop("method"))]
    role = block.pop("model", None)
    if isinstance(role, str):
        argv += ["--speculative-draft-model-path", models.get(role, role)]
    return argv + flags({f"speculative-{k}": v for k, v in block.items()})


def _speculation_problems(block: Mapping[str, JsonValue], roles: set[str]) -> Iterator[Finding]:
    method = block.get("method")
    if method not in METHODS:
        yield bad_speculation(f"SGLang has no speculative algorithm {word(method)}", nearest(str(method), METHODS))
        return
    for option, value in block.items():
        name = _name(option)
        if name in ("method", "model"):
            continue
        if name not in OPTIONS:
            yield bad_speculation(f"unknown option `{option}`", nearest(name, OPTIONS))
        else:
            yield from OPTIONS[name].problems(option, value)
    role = block.get("model")
    if method in NEEDS_MODEL and role is None:
        yield bad_speculation(f"{method} needs `model`", "name one of the config's checkpoints")
    elif role is not None and role not in roles:
        yield bad_speculation(
            f"no checkpoint has the role {word(role)}", f"there are: {', '.join(sorted(roles)) or 'none'}"
        )


ENGINE = Sglang()
