"""Records of files that no stage reads back as a whole: the resolved config, what can be deployed, checkpoints."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from .base import Finding, Record
from .decision import Plan, Route
from .spec import SessionSpec


class ResolvedConfig(Record):
    """`config.resolved.json`: the config with every default filled in, and what follows from it."""

    schema_version: Literal[1] = 1
    config: dict[str, JsonValue]
    sessions: dict[str, SessionSpec] = Field(description="Mode -> what one of its sessions is.")
    order: list[str] = Field(description="Sessions as <mode>/r<replicate>, in the order in which they run.")
    plan: Plan
    warnings: list[Finding] = []
    lab: str = Field(description="Version of specdec-lab.")


class CheckpointFile(Record):
    """`checkpoints/<name>.json`: what a checkpoint is; where it lies on a machine is no part of that."""

    digest: str
    revision: str | None = None
    size_bytes: int
    origin: str


class RoutingTable(Record):
    """`deploy/routes.json`: the first match wins; else `default`, the plain server."""

    schema_version: Literal[1] = 1
    default: str | None
    routes: list[Route]
    batch: dict[str, str] = Field(default={}, description="Kind -> mode for work that nobody waits for.")


class DynamicKEntry(Record):
    """One entry of `deploy/dynamic_k.json`."""

    kind: str | None
    method: str
    speculative_config: dict[str, JsonValue]
    caution: str = ""
