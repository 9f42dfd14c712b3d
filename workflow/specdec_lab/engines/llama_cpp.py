"""llama.cpp's llama-server, as a program, in a container, or embedded out of a wheel (M20)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from pydantic import JsonValue

from ..counters.tables import LLAMA_CPP
from ..nearest import nearest
from ..records.base import Finding
from ..records.spec import ServerSpec
from . import http
from .base import Named
from .context import tokens
from .flags import flags, without, word
from .llama_flags import DRAFT_METHODS, METHODS, SERVER_FLAGS, SPECULATION_FLAGS, WORDS, Flag, long_name
from .options import plain_whole

SPECULATION_NAMES = {flag.name: flag for flag in SPECULATION_FLAGS}
REMOVED = {"draft", "draft-max", "draft-min", "draft-p-min", "spec-ngram-size-n", "spec-ngram-size-m"}
OWN_ARGS = {"model", "host", "port", "alias", "spec-type", *SPECULATION_NAMES}
"""Set by the lab or by the mode's `speculative` block, so refused among a server's `args`."""
FAIR_DEFAULTS: dict[str, JsonValue] = {
    "metrics": True,
    "cache-prompt": False,  # M26: a later cell may not find an earlier one's prompts
    "cache-ram": 0,
    "fit": "off",  # otherwise llama.cpp picks arguments by the memory that happens to be free
    "seed": 0,
}
MEASURING_ONLY = frozenset({"cache-prompt", "cache-ram", "seed"})
"""Not `fit`: with it llama-server would choose other arguments than were measured."""
_FACTS_LINE = '{"specdec_engine":'
_PATTERNS: dict[str, re.Pattern[str]] = {
    "build": re.compile(r"build_info: (?!b0-)(\S+)"),  # b0: a build that does not know its own number
    "slots": re.compile(r"initializing, n_slots = (\d+)"),
    "slot_context": re.compile(r"n_ctx_slot = (\d+)"),
    "kv_unified": re.compile(r"kv_unified = '(\w+)'"),
    "threads": re.compile(r"threadpool init, n_threads = (\d+)"),
}
_LOST_SPECULATION = re.compile(
    r"failed to initialize speculative decoding context|vocabs are not compatible|vocab type must match", re.IGNORECASE
)


def speculation_flag(option: str) -> str:
    """The flag behind an option of a mode's `speculative` block.

    The block uses llama-server's flag names without `--spec-`: `draft-n-max`, `ngram-simple-size-n`, `threads-draft`;
    `model` is the draft checkpoint's role.
    """
    name = long_name(option)
    if name == "model":
        return "spec-draft-model"
    return name if name in SPECULATION_NAMES else f"spec-{name}"


def _bad_value(option: str, flag: Flag, value: JsonValue) -> Iterable[Finding]:
    """A server flag's value that its kind cannot be. Ranges are llama.cpp's own; -1 often means `you choose`."""
    text = word(value)
    if flag.kind == "whole" and (isinstance(value, bool) or not text.removeprefix("-").isdigit()):
        yield _finding("bad_args", f"`{option}` must be a whole number, not {text!r}", plain_whole(value))
    elif flag.kind == "switch" and not isinstance(value, bool):
        yield _finding("bad_args", f"`{option}` must be true or false, not {text!r}", "write true or false")
    elif (
        flag.kind in WORDS
        and text not in WORDS[flag.kind]
        and not (isinstance(value, bool) and flag.kind != "cache_type")
    ):
        hint = nearest(text, list(WORDS[flag.kind]))
        yield _finding("bad_args", f"`{option}` cannot be {text!r}", hint)


class LlamaCpp:
    """llama-server's flags, metrics and log lines; the process launcher's default program is the embedded server."""

    name = "llama_cpp"
    metrics_path: str | None = "/metrics"
    metric_names = LLAMA_CPP
    ready_path = "/health"
    distributions: tuple[str, ...] = ("xllamacpp",)
    default_image: str | None = None
    deploy_program: tuple[str, ...] = ("llama-server",)
    image_program: tuple[str, ...] = ()
    usual_port = 8080
    keys: tuple[str, ...] = ()
    measuring_only = MEASURING_ONLY
    context_flag = "ctx-size"
    context_facts: tuple[str, ...] = ("slot_context",)

    def __init__(self) -> None:
        self.default_command: list[str] | None = [sys.executable, "-u", "-m", "specdec_lab.engines.embedded_llama"]

    def problems(self, spec: ServerSpec, roles: Iterable[str]) -> list[Finding]:
        """Unknown methods, options of another method, removed flags, a missing draft; see engines.base."""
        found = [*self._bad_args(spec)]
        if spec.speculative is not None:
            found += self._bad_speculation(spec.speculative, set(roles))
        return found

    def _bad_args(self, spec: ServerSpec) -> Iterable[Finding]:
        embedded = spec.launcher == "process" and spec.command is None
        known = {flag.name: flag for flag in SERVER_FLAGS}
        for option, value in spec.args.items():
            name = long_name(option)
            if name in OWN_ARGS:
                hint = "put speculation into the mode's `speculative` block; the lab sets model, host, port and alias"
                yield _finding("bad_args", f"`{option}` may not stand among the server's args", hint)
            elif name in REMOVED:
                yield _finding("bad_args", f"llama-server has no `--{name}` any more", "use the `--spec-draft-*` names")
            elif embedded and name.removeprefix("no-") not in known:
                hint = f"{nearest(name, known)} or set `command: [llama-server]` to use a full llama-server"
                yield _finding("bad_args", f"the embedded server has no flag `--{name}`", hint)
            elif name.removeprefix("no-") in known:
                yield from _bad_value(option, known[name.removeprefix("no-")], value)

    def _bad_speculation(self, block: Mapping[str, JsonValue], roles: set[str]) -> Iterable[Finding]:
        method = block.get("method")
        names = [part.strip() for part in method.split(",")] if isinstance(method, str) else []
        if not names:
            yield _finding("bad_speculation", "`method` is missing", f"one of {', '.join(METHODS)}")
            return
        for name in names:
            if name not in METHODS:
                yield _finding("bad_speculation", f"llama.cpp has no method {name!r}", nearest(name, METHODS))
        if set(names) - set(METHODS):
            return
        for option, value in block.items():
            if option == "method":
                continue
            name = speculation_flag(option)
            flag = SPECULATION_NAMES.get(name)
            if flag is None and (name.removeprefix("spec-") in REMOVED or long_name(option) in REMOVED):
                yield _finding(
                    "bad_speculation", f"`{option}` was removed from llama.cpp", "use `draft-n-max` and its kin"
                )
            elif name.startswith("spec-synth-"):
                if _not_positive(value):
                    yield _finding("bad_speculation", f"`{option}` must be positive", "write more than 0")
            elif flag is None:
                options = [f.name.removeprefix("spec-") for f in SPECULATION_FLAGS if set(f.methods) & set(names)]
                yield _finding("bad_speculation", f"unknown option `{option}`", nearest(option, options))
            elif not set(flag.methods) & set(names):
                hint = f"it belongs to {', '.join(flag.methods)}"
                yield _finding("bad_speculation", f"`{option}` does nothing for {', '.join(names)}", hint)
            elif flag.kind in ("whole", "number"):
                yield from _bad_number(option, flag.kind, value)
        yield from self._bad_draft(names, block.get("model", "draft"), roles, "model" in block)

    def _bad_draft(self, names: list[str], role: JsonValue, roles: set[str], given: bool) -> Iterable[Finding]:
        needs = [name for name in names if name in DRAFT_METHODS and name != "draft-mtp"]
        if (needs or given) and role not in roles:
            hint = f"name one of the mode's checkpoints: {', '.join(sorted(roles)) or 'none given'}"
            yield _finding("bad_speculation", f"no checkpoint has the role {word(role)!r} that the draft needs", hint)

    def context_shares(self, spec: ServerSpec) -> int:
        """`parallel`, unless `kv-unified`. Without `parallel` llama.cpp unifies by itself."""
        args = self.args(spec)
        return 1 if args.get("kv-unified") else tokens(args.get("parallel")) or 1

    def lossy(self, spec: ServerSpec) -> bool:
        """Synthetic acceptance gives wrong text by design."""
        return any(speculation_flag(option).startswith("spec-synth-") for option in spec.speculative or {})

    def argv(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath], *, host: str, port: int) -> list[str]:
        """llama-server's arguments; the fair defaults (no prompt cache, metrics on) give way to the config's args."""
        argv = ["--model", str(checkpoints["target"]), "--host", host, "--port", str(port)]
        argv += ["--alias", self.served_model(spec, checkpoints), *self._flags(self.args(spec))]
        return argv + self._speculation(spec, {role: str(path) for role, path in checkpoints.items()})

    def args(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """The config's args upon the fair defaults."""
        return {**FAIR_DEFAULTS, **{long_name(name): value for name, value in spec.args.items()}}

    def _flags(self, args: Mapping[str, JsonValue]) -> list[str]:
        """Flags with a value of on or off take the word even where YAML read a truth value."""
        taking_words = {flag.name for flag in SERVER_FLAGS if flag.kind in ("on_off", "on_off_auto")}
        return flags(
            {
                name: ("on" if value else "off") if name in taking_words and isinstance(value, bool) else value
                for name, value in args.items()
            }
        )

    def _speculation(self, spec: ServerSpec, models: Mapping[str, str]) -> list[str]:
        block = spec.speculative
        if block is None:
            return []
        method = str(block["method"])
        argv = ["--spec-type", method]
        draft = any(name.strip() in DRAFT_METHODS and name.strip() != "draft-mtp" for name in method.split(","))
        if draft or "model" in block:
            argv += ["--spec-draft-model", models[str(block.get("model", "draft"))]]
        rest = {speculation_flag(k): v for k, v in block.items() if k not in ("method", "model")}
        return argv + flags(rest)

    def env(self, spec: ServerSpec) -> dict[str, str]:
        """Nothing: llama-server is steered by its flags alone."""
        return {}

    def served_model(self, spec: ServerSpec, checkpoints: Mapping[str, PurePosixPath]) -> str:
        """The config's name, or the target file's stem."""
        return spec.served_model or checkpoints["target"].stem

    def body_extra(self, spec: ServerSpec) -> dict[str, JsonValue]:
        """Running counts in each chunk, so that several tokens in one chunk are known as such (case A8)."""
        return {"timings_per_token": True}

    def version(self, base_url: str) -> str | None:
        """`b11549-...` from /props; the embedded build does not name itself there (its log does)."""
        props = http.get_json(f"{base_url}/props")
        build = props.get("build_info") if isinstance(props, dict) else None
        return build if isinstance(build, str) and not build.startswith("b0-") else None

    def facts(self, log: Iterable[str]) -> dict[str, JsonValue]:
        """Effective arguments, version, slots, context, threads, and whether speculation was lost on the way."""
        facts: dict[str, JsonValue] = {}
        for line in log:
            if line.startswith(_FACTS_LINE):
                facts.update(_embedded_facts(line))
            for name, pattern in _PATTERNS.items():
                if name not in facts and (hit := pattern.search(line)):
                    facts[name] = int(hit[1]) if hit[1].isdigit() else hit[1]
            if _LOST_SPECULATION.search(line):
                facts["speculation_lost"] = line.strip()
        return facts

    def deploy_args(self, spec: ServerSpec, models: Mapping[str, Named], *, host: str, port: int) -> list[str]:
        """llama-server's arguments without the flags that only a measurement needs."""
        kept = without(self.args(spec), MEASURING_ONLY)
        argv = ["--model", models["target"].name, "--host", host, "--port", str(port)]
        argv += ["--alias", spec.served_model] if spec.served_model else []
        return argv + self._flags(kept) + self._speculation(spec, {role: one.name for role, one in models.items()})


def _embedded_facts(line: str) -> dict[str, JsonValue]:
    try:
        said = json.loads(line)["specdec_engine"]
    except ValueError:
        return {}
    return {key: said[key] for key in ("software", "package", "version", "system", "args") if said.get(key) is not None}


def _finding(code: str, message: str, hint: str) -> Finding:
    return Finding(code=code, severity="error", message=message, hint=hint)


def _not_positive(value: JsonValue) -> bool:
    return isinstance(value, int | float) and value <= 0


def _bad_number(option: str, kind: str, value: JsonValue) -> Iterable[Finding]:
    if isinstance(value, bool) or not isinstance(value, int if kind == "whole" else int | float):
        wanted = "whole number" if kind == "whole" else "number"
        hint = plain_whole(value) if kind == "whole" else "write a number"
        yield _finding("bad_speculation", f"`{option}` must be a {wanted}, not {word(value)}", hint)
    elif value < 0 or (value == 0 and option.endswith(("n-max", "size-n", "size-m", "n-match"))):
        yield _finding("bad_speculation", f"`{option}` must be positive, not {word(value)}", "write 1 or more")


ENGINE = LlamaCpp()
