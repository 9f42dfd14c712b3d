"""M10: the stack a number was measured on. A number without its stack is refused by compare and bundle."""

from __future__ import annotations

from pydantic import Field

from .base import Record


class Gpu(Record):
    """One GPU as the driver names it."""

    index: int
    name: str
    uuid: str | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    power_limit_w: float | None = None


class Host(Record):
    """The machine that ran the server and the client."""

    cpu: str
    cores: int
    memory_bytes: int
    system: str = Field(description="Kernel and distribution.")
    python: str
    governor: str | None = Field(default=None, description="CPU frequency governor, where the system shows one.")
    boot: str | None = Field(
        default=None, description="Digest of the system's boot id: tells two machines of one kind apart."
    )


class Engine(Record):
    """The server software that really ran, as it reports itself."""

    software: str
    version: str | None = None
    build: str | None = None
    image: str | None = None
    image_digest: str | None = Field(default=None, description="What the daemon really ran.")
    packages: dict[str, str] = Field(default={}, description="Package freeze of the server's environment.")


class Stack(Record):
    """Everything underneath a number."""

    host: Host
    gpus: list[Gpu] = []
    driver: str | None = None
    cuda: str | None = None
    engine: Engine
    checkpoints: dict[str, str] = Field(default={}, description="Role -> digest or pinned revision of what was served.")
    lab: str = Field(description="Version of specdec-lab.")
