"""One server lifetime and one session: what was started, what it said, what it cost, how it ended (M19, B3)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from .base import Finding, Record
from .spec import SessionSpec
from .stack import Stack


class ServerLifetime(Record):
    """One start of one server, from launch to proven end."""

    id: str
    started_at: str = Field(description="RFC 3339, UTC.")
    ready_s: float | None = Field(default=None, description="Launch -> health and one real completion.")
    stopped_at: str | None = None
    argv: list[str] = Field(default=[], description="The server's command line, secrets removed.")
    facts: dict[str, JsonValue] = Field(
        default={},
        description="What the engine reports of itself: effective arguments, async scheduling, KV blocks, ...",
    )
    stack: Stack
    cells: list[str] = Field(default=[], description="Names of the cells measured in this lifetime, in order.")
    findings: list[Finding] = []


class Session(Record):
    """`session.json`: all cells of one mode and replicate are there, each measured in one of these lifetimes."""

    schema_version: Literal[1] = 1
    mode: str
    replicate: int
    spec: SessionSpec
    cells: dict[str, str] = Field(description="Cell name -> key of the cell in the store.")
    lifetimes: list[ServerLifetime]
    measured: int = Field(description="Cells measured now; the others came from the store.")


class Failure(Record):
    """`failure.json`: why a session could not be measured. Kept beside the log until the session succeeds."""

    schema_version: Literal[1] = 1
    mode: str
    replicate: int
    spec: SessionSpec
    at: str = Field(description="RFC 3339, UTC.")
    code: str = Field(description="A code from the failures' table, or `unknown`.")
    cause: str
    place: str
    fix: str
    log: str | None = Field(default=None, description="The server log beside this file.")
    exit_code: int | None = None
    excerpt: list[str] = Field(default=[], description="The lines of the log that tell.")
    cells_done: list[str] = []
