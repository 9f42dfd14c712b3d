"""How a server is started and surely stopped. A launcher knows nothing of engines."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Mount:
    """A host folder or file that the server sees read-only at another place (docker only)."""

    source: Path
    target: str


@dataclass(frozen=True)
class LaunchPlan:
    """What to start. `log` receives everything the server prints, from its first line."""

    name: str
    """Unique for this lifetime; becomes part of the container's name."""
    argv: list[str]
    """process: program and arguments. docker: arguments after the image's entrypoint. attach: the base URL alone."""
    log: Path
    env: dict[str, str] = field(default_factory=dict)
    port: int = 0
    """The loopback port on which the server must answer (chosen by the session, proved to be free)."""
    container_port: int = 8000
    image: str | None = None
    program: list[str] = field(default_factory=list)
    """docker: what runs the arguments in an image that has no entrypoint of its own."""
    mounts: list[Mount] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    """GPU ids, as strings: "0" means device 0, never a count."""
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Exit:
    """How a server ended by itself."""

    code: int | None
    oom_killed: bool = False
    detail: str = ""


class Running(Protocol):
    """A started server. Closing it twice is harmless."""

    base_url: str

    def exited(self) -> Exit | None:
        """None while it lives; cheap, so that every poll can ask."""

    def facts(self) -> dict[str, str]:
        """What the launcher knows of what really runs: pid, image digest, devices, packages are the session's task."""

    def fault(self) -> str | None:
        """Why numbers taken from it are spoilt although it lives (a container that lost its GPU); None when well.

        May take a moment: ask between cells, not within one.
        """

    def packages(self) -> dict[str, str]:
        """Package freeze of the server's environment (M10), by name; empty where there is none to see."""

    def owns_port(self) -> bool | None:
        """Whether the listener on the port is this very server; None where that cannot be told (M19).

        Ask when the server is ready: a stranger that took the port in between would answer in its place.
        """

    def stop(self, timeout_s: float) -> None:
        """Stop it and everything it started; return when it is proven gone, or raise UserError saying what remains."""


class Launcher(Protocol):
    """One way to start a server."""

    name: str

    def sweep(self) -> list[str]:
        """Remove what an earlier, killed run of ours left; say what was removed. Never touches what is not ours."""

    def start(self, plan: LaunchPlan) -> Running:
        """Start it, or raise UserError with nothing left behind."""
