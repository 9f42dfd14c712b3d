"""One line of the doctor's answer, and what the checks must know of a config."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from ..asked import Asked
from ..config.strict_yaml import Document
from ..records.base import Record
from ..records.spec import CheckpointSpec, ServerSpec

Status = Literal["ok", "warn", "fail"]


class Line(Record):
    """What was looked at, how it stands, and how to mend it."""

    check: str
    status: Status
    found: str
    fix: str = Field(default="", description="Empty when nothing needs mending.")


@dataclass(frozen=True)
class Needs:
    """What a config asks of this machine; without a config nothing is needed, so that what is missing only warns."""

    servers: list[ServerSpec] = field(default_factory=list)
    checkpoints: dict[str, CheckpointSpec] = field(default_factory=dict)
    results: str = "results"
    known: bool = False
    """Whether there is a config that could be read."""
    asked: Asked = field(default_factory=Asked)
    """The sessions and cells that it asks for."""
    document: Document | None = None
    """Where each key of the config stands."""

    def where(self, *path: str) -> str:
        """`file:line: ` of a key of the config, to stand before a fault; empty without a config."""
        place = self.document.place(path) if self.document is not None else None
        return f"{place.file}:{place.line}: " if place is not None else ""

    @property
    def gpus(self) -> int:
        """GPUs of the server that needs most."""
        return max((server.gpus for server in self.servers), default=0)

    @property
    def docker(self) -> bool:
        """Whether any server runs in a container."""
        return any(server.launcher == "docker" for server in self.servers)

    @property
    def cuda13(self) -> bool:
        """Whether an image is built for CUDA 13 (vLLM's from 0.26 on)."""
        return any(server.engine == "vllm" and server.launcher == "docker" for server in self.servers)

    def lacking(self, needed: bool) -> Status:
        """How bad it is that something is missing: fail when this config needs it, warn when no config says so."""
        return "fail" if needed else "warn"
