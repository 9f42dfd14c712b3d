"""The decision as files that a deployment can use: serve commands, a compose file, routes, dynamic K (M32, B7)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ..records.base import Finding, strict_dumps, write_text_atomic
from ..records.comparison import Comparison
from ..records.decision import Decision
from ..records.errors import UserError
from ..records.spec import SessionSpec
from .commands import DEFAULTS, container, serve, shell
from .findings import finding


def write_deploy(decision: Decision, comparison: Comparison, folder: Path) -> Decision:
    """Write the files for every mode that the decision uses; returns the decision with its serve commands.

    The folder is made anew, so that nothing stays of an earlier decision. A mode whose command its engine cannot give
    is a finding, not an end.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    used = dict.fromkeys(
        [
            *(one.mode for one in decision.workloads if one.mode is not None),
            *(route.mode for route in decision.routes),
            *(one.batch_mode for one in decision.workloads if one.batch_mode is not None),
        ]
    )
    commands: dict[str, list[str]] = {}
    problems: list[Finding] = []
    for mode in used:
        spec = comparison.specs.get(mode)
        if spec is None or spec.server.launcher == "attach":
            continue
        try:
            commands[mode] = serve(spec)
        except (UserError, ImportError, KeyError) as error:
            problems.append(finding("no_command", f"No serve command for {mode}: {error}"))
    decision = decision.model_copy(update={"serve": commands, "findings": [*decision.findings, *problems]})
    for mode, argv in commands.items():
        spec = comparison.specs[mode]
        write_text_atomic(folder / f"{mode}.sh", script(mode, argv, spec, decision))
        if spec.server.launcher == "docker":
            write_text_atomic(folder / f"{mode}.compose.yaml", compose(mode, spec))
    write_text_atomic(folder / "routes.json", strict_dumps(routing(decision)))
    if decision.dynamic_k:
        write_text_atomic(folder / "dynamic_k.json", strict_dumps(dynamic(decision, comparison)))
    write_text_atomic(folder / "README.md", readme(decision))
    return decision


def script(mode: str, argv: list[str], spec: SessionSpec, decision: Decision) -> str:
    """A shell script that serves one mode."""
    kinds = [
        f"{route.kind} at concurrency {route.span}"
        for route in decision.routes
        if route.mode == mode and route.interactive
    ]
    told = f"# {mode}: {', '.join(kinds)}\n" if kinds else f"# {mode}\n"
    return "#!/bin/sh\n" + told + shell(spec, argv, begin="exec ")


def compose(mode: str, spec: SessionSpec) -> str:
    """A Docker Compose file with the very container that was measured. JSON strings are valid YAML scalars."""
    one = container(spec)
    lines = ["services:", f"  {json.dumps(mode)}:", f"    image: {_plain(one.image)}", "    command:"]
    lines += [f"      - {_plain(word)}" for word in one.arguments]
    if one.keys or one.env:
        lines.append("    environment:")
        lines += [f"      {name}:  # yours" for name in one.keys]
        lines += [f"      {json.dumps(name)}: {_plain(value)}" for name, value in one.env.items()]
    lines += ["    ports:", f'      - "127.0.0.1:{one.port}:{one.port}"', "    restart: unless-stopped"]
    if one.mounts:
        lines += ["    volumes:", *(f"      - {_with_defaults(mount)}" for mount in one.mounts)]
    if one.gpus:
        lines += [
            "    ipc: host",
            "    deploy:",
            "      resources:",
            "        reservations:",
            "          devices:",
            f"            - driver: nvidia\n              count: {one.gpus}\n              capabilities: [gpu]",
        ]
    return "\n".join([*lines, ""])


def _plain(text: str) -> str:
    """One scalar in which Compose puts in nothing."""
    return json.dumps(text.replace("$", "$$"), ensure_ascii=False)


def _with_defaults(mount: str) -> str:
    """One mount in which Compose puts in variables, with what they stand for when they are not set."""
    for name, default in DEFAULTS.items():
        mount = mount.replace(f"${name}", f"${{{name}:-{default.replace('$HOME', '${HOME}')}}}")
    return json.dumps(mount, ensure_ascii=False)


def routing(decision: Decision) -> dict[str, object]:
    """The routing table: first match wins; `default` is the plain server, `batch` is for work that nobody waits for."""
    baselines = list(dict.fromkeys(one.baseline for one in decision.workloads))
    return {
        "schema_version": 1,
        "default": baselines[0] if baselines else None,
        "routes": [
            route.model_dump(mode="json", exclude={"interactive"}) for route in decision.routes if route.interactive
        ],
        "batch": {route.kind: route.mode for route in decision.routes if not route.interactive},
    }


def dynamic(decision: Decision, comparison: Comparison) -> list[dict[str, object]]:
    """Per entry the ready value of vLLM's --speculative-config, with the schedule in it."""
    found: list[dict[str, object]] = []
    modes = {mode.name: mode for mode in comparison.plan.modes}
    for one in decision.dynamic_k:
        name = one.mode or next(
            answer.mode
            for answer in decision.workloads
            if answer.mode is not None and answer.speculative and modes[answer.mode].method == one.method
        )
        options = dict(comparison.specs[name].server.speculative or {})
        options["num_speculative_tokens"] = max(k for _, _, k in one.schedule)
        options["num_speculative_tokens_per_batch_size"] = [list(part) for part in one.schedule]
        found.append({"kind": one.kind, "method": one.method, "speculative_config": options, "caution": one.caution})
    return found


def readme(decision: Decision) -> str:
    """What lies in the folder."""
    lines = ["# Deploy", ""]
    for mode, argv in decision.serve.items():
        also = f"; `{mode}.compose.yaml` is the same for Docker Compose" if argv[0] == "docker" else ""
        lines.append(f"- `{mode}.sh` serves {mode} with `{argv[0]}`{also}.")
    lines += ["- `routes.json`: which workload goes where, by concurrency; the first match wins."]
    if decision.dynamic_k:
        lines.append(
            "- `dynamic_k.json`: vLLM's own draft length by batch size; one server instead of a route by load."
        )
    lines += [
        "",
        "Commands are the measured ones, with the engine's usual port on this machine alone: add your own address, key",
        "and limits, and a port for each server that runs beside another. `$SPECDEC_CACHE_DIR` is the lab's cache of",
        "models. Measure again after an engine upgrade, a new target or a new GPU.",
        "",
    ]
    return "\n".join(lines)
