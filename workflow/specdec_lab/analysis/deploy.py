"""The decision as files that a deployment can use: serve commands, a compose file, routes, dynamic K (M32, B7)."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

from ..records.base import Finding, strict_dumps, write_text_atomic
from ..records.comparison import Comparison
from ..records.decision import Decision
from ..records.errors import UserError
from ..records.spec import CheckpointSpec, SessionSpec
from .findings import finding


def write_deploy(decision: Decision, comparison: Comparison, folder: Path) -> Decision:
    """Write the files for every mode that the decision uses; returns the decision with its serve commands.

    The folder is made anew, so that nothing stays of an earlier decision. A mode whose command its engine cannot give
    is a finding, not an end.
    """
    from ..engines import get

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    used = dict.fromkeys(
        [
            *(one.mode for one in decision.workloads if one.mode is not None),
            *(route.mode for route in decision.routes),
            *(one.batch_mode for one in decision.workloads if one.batch_mode is not None),
        ]
    )
    serve: dict[str, list[str]] = {}
    problems: list[Finding] = []
    for mode in used:
        spec = comparison.specs.get(mode)
        if spec is None or spec.server.launcher == "attach":
            continue
        if "target" not in spec.checkpoints:
            problems.append(finding("no_command", f"No serve command for {mode}: its target is not named in its spec."))
            continue
        try:
            serve[mode] = get(spec.server.engine).deploy_command(spec.server, named_models(spec))
        except (UserError, ImportError, KeyError) as error:
            problems.append(finding("no_command", f"No serve command for {mode}: {error}"))
    decision = decision.model_copy(update={"serve": serve, "findings": [*decision.findings, *problems]})
    for mode, argv in serve.items():
        write_text_atomic(folder / f"{mode}.sh", script(mode, argv, decision))
        spec = comparison.specs[mode]
        if spec.server.image or spec.server.image_digest:
            write_text_atomic(folder / f"{mode}.compose.yaml", compose(mode, argv, spec))
    write_text_atomic(folder / "routes.json", strict_dumps(routing(decision)))
    if decision.dynamic_k:
        write_text_atomic(folder / "dynamic_k.json", strict_dumps(dynamic(decision, comparison)))
    write_text_atomic(folder / "README.md", readme(decision))
    return decision


def named_models(spec: SessionSpec) -> dict[str, str]:
    """Checkpoints by role as a user would name them: hub name, else the file's name, else the bundled model's."""
    return {role: _named(checkpoint) for role, checkpoint in spec.checkpoints.items()}


def _named(checkpoint: CheckpointSpec) -> str:
    return checkpoint.hub or checkpoint.path or checkpoint.bundled or ""


def script(mode: str, argv: list[str], decision: Decision) -> str:
    """A shell script that serves one mode. Arguments are quoted for a POSIX shell."""
    kinds = [
        f"{route.kind} at concurrency {route.span}"
        for route in decision.routes
        if route.mode == mode and route.interactive
    ]
    told = f"# {mode}: {', '.join(kinds)}\n" if kinds else f"# {mode}\n"
    words = [shlex.quote(word) for word in argv]
    lines, line = [], words[0]
    for word in words[1:]:
        if word.startswith("--"):
            lines.append(line)
            line = f"  {word}"
        else:
            line += f" {word}"
    lines.append(line)
    return "#!/bin/sh\n" + told + "exec " + " \\\n".join(lines) + "\n"


def compose(mode: str, argv: list[str], spec: SessionSpec) -> str:
    """A Docker Compose file with the very image that was measured. JSON strings are valid YAML scalars."""
    server = spec.server
    image = server.image or ""
    if server.image_digest and "@" not in image:
        image = f"{image.rsplit(':', 1)[0] if '/' in image or ':' in image else image}@{server.image_digest}"
    arguments = argv[1:] if argv and not argv[0].startswith("-") else argv
    if server.engine == "vllm" and arguments[:1] == ["serve"]:
        arguments = arguments[1:]
    lines = ["services:", f"  {json.dumps(mode)}:", f"    image: {json.dumps(image)}", "    command:"]
    lines += [f"      - {json.dumps(word, ensure_ascii=False)}" for word in arguments]
    if server.env:
        lines.append("    environment:")
        lines += [f"      {json.dumps(name)}: {json.dumps(value)}" for name, value in sorted(server.env.items())]
    lines += ["    ports:", '      - "127.0.0.1:8000:8000"', "    ipc: host", "    restart: unless-stopped"]
    lines += ["    volumes:", "      - hub:/root/.cache/huggingface"]
    if server.gpus:
        lines += [
            "    deploy:",
            "      resources:",
            "        reservations:",
            "          devices:",
            f"            - driver: nvidia\n              count: {server.gpus}\n              capabilities: [gpu]",
        ]
    return "\n".join([*lines, "volumes:", "  hub: {}", ""])


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
        name = next(
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
    lines += [f"- `{mode}.sh` serves {mode}." for mode in decision.serve]
    lines += ["- `routes.json`: which workload goes where, by concurrency; the first match wins."]
    if decision.dynamic_k:
        lines.append(
            "- `dynamic_k.json`: vLLM's own draft length by batch size; one server instead of a route by load."
        )
    lines += [
        "",
        "Commands name the checkpoints as they were asked for; add your own port, key and limits. Measure again after",
        "an engine upgrade, a new target or a new GPU.",
        "",
    ]
    return "\n".join(lines)
