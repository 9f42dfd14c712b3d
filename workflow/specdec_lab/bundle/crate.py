"""RO-Crate metadata (Workflow Run Crate), so that tools that know nothing of this lab can read what a bundle is.

The profile: https://w3id.org/ro/wfrun/workflow/0.5. The same bundle gives the same text: every entity has a fixed id,
and dates are those of the measurement.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..records.base import strict_dumps
from ..records.stack import Stack

CRATE = "ro-crate-metadata.json"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_MEANING = {
    "config.resolved.json": ("The config as resolved", "application/json"),
    "prompts.jsonl": ("The prompts that were measured", "application/jsonl"),
    "summary.txt": ("The table for people", "text/plain"),
    "summary.csv": ("The table for pandas", "text/csv"),
    "comparison.json": ("Every number behind the table", "application/json"),
    "decision.json": ("What to deploy, per workload", "application/json"),
    "decision.md": ("What to deploy, in sentences", "text/markdown"),
    "report.html": ("The report, one page", "text/html"),
    "specdec.prom": ("The results for a dashboard", "text/plain"),
}
_INPUTS = ("config.resolved.json", "prompts.jsonl")


def metadata(
    name: str, paths: Collection[str], *, lab: str, started: str | None, ended: str | None, stack: Stack | None
) -> str:
    """The text of ro-crate-metadata.json for a bundle that holds these paths."""
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    crate = ROCrate()
    crate.name = f"specdec-lab results: {name}"
    crate.description = "What speculative decoding gained on this machine, with everything the numbers stand on."
    crate.datePublished = ended or started or "1970-01-01T00:00:00+00:00"
    crate.license = "The workflow: Apache-2.0. The results belong to whoever measured them."
    profiles = [
        crate.add(ContextEntity(crate, url, properties={"@type": "CreativeWork", "name": title, "version": url[-3:]}))
        for url, title in _PROFILES.items()
    ]
    crate.root_dataset["conformsTo"] = profiles
    workflow = _workflow(crate, paths, lab)
    files = {
        file: crate.add_file(dest_path=f"results/{name}/{file}", properties={"name": title, "encodingFormat": form})
        for file, (title, form) in _MEANING.items()
        if f"results/{name}/{file}" in paths
    }
    folders = [
        crate.add_dataset(dest_path=f"{folder}/", properties={"name": title})
        for folder, title in {
            f"results/{name}/sessions": "Raw rows, counters and logs per mode and server start",
            f"results/{name}/deploy": "Serve commands and routing",
            "cells": "The cell store: what was measured, by content address",
        }.items()
        if any(path.startswith(f"{folder}/") for path in paths)
    ]
    action: dict[str, Any] = {"@type": "CreateAction", "name": f"Measuring {name}"}
    if started is not None:
        action["startTime"] = started
    if ended is not None:
        action["endTime"] = ended
    made = crate.add_action(
        workflow,
        identifier="#run",
        object=[entity for file, entity in files.items() if file in _INPUTS],
        result=[*(entity for file, entity in files.items() if file not in _INPUTS), *folders],
        properties=action,
    )
    if stack is not None:
        made["description"] = stack_sentence(stack)
    crate.root_dataset["mentions"] = made
    return strict_dumps(crate.metadata.generate())


def _workflow(crate: Any, paths: Collection[str], lab: str) -> Any:
    """The workflow as the crate's main entity; without its files in the bundle, the program that it is."""
    from rocrate.model.contextentity import ContextEntity

    if "Snakefile" not in paths:
        described = {"@type": "SoftwareApplication", "name": "specdec-lab", "softwareVersion": lab}
        return crate.add(ContextEntity(crate, "#specdec-lab", properties=described))
    workflow = crate.add_workflow(dest_path="Snakefile", main=True, lang="snakemake")
    workflow["name"] = "specdec-lab"
    workflow["version"] = lab
    return workflow


def stack_sentence(stack: Stack) -> str:
    """The stack in one line."""
    engine = stack.engine
    where = ", ".join(gpu.name for gpu in stack.gpus) or stack.host.cpu
    image = f", image {engine.image_digest}" if engine.image_digest else ""
    driver = f", driver {stack.driver}" if stack.driver else ""
    return f"{engine.software} {engine.version or '(version unknown)'}{image} on {where}{driver}; {stack.host.system}"
