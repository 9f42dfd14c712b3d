"""The cell store: what was measured once is kept under the hash of everything it depends on (B6).

It lies outside the files that Snakemake owns, because Snakemake deletes a job's outputs before it runs and after it
fails. Writes are atomic; a file that cannot be read is set aside and counted as not there; nothing is ever overwritten
by something that was not measured. Two runs may share one store.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue, ValidationError

from ..records.base import digest
from ..records.cell import Cell
from ..records.session import ServerLifetime
from ..records.spec import CellSpec, SessionSpec


def folder() -> Path:
    """Where the store is: what SPECDEC_STORE names, else `cells` where the run was started."""
    return Path(os.environ.get("SPECDEC_STORE") or "cells")


@dataclass(frozen=True)
class Ground:
    """What a cell stands on besides its spec: digests of everything that the number depends on."""

    prompts: str
    """Of the prompts that this cell sends, in order."""
    checkpoints: Mapping[str, str]
    """Role -> content digest or pinned revision."""
    launch: str
    """Of the engine's command line and environment, without ports and paths."""
    image: str | None
    """What the daemon would run; None without a container."""
    engine: str | None
    """Version of the engine's program, where it can be known before a start."""
    hardware: str
    """GPU names and driver, or the CPU, and how many."""
    code: str
    """Of the modules that measure."""


def cell_key(mode: str, replicate: int, spec: SessionSpec, cell: CellSpec, ground: Ground) -> str:
    """The content address of one cell.

    The mode's name is part of it: a placebo has the baseline's spec but must be measured by itself. Where a server
    listens for `attach` is part of it too, since it is all that is known of that server.
    """
    parts: dict[str, JsonValue] = {
        "mode": mode,
        "replicate": replicate,
        "session": _measured(spec),
        "cell": cell.model_dump(mode="json"),
        "ground": {
            "prompts": ground.prompts,
            "checkpoints": dict(ground.checkpoints),
            "launch": ground.launch,
            "image": ground.image,
            "engine": ground.engine,
            "hardware": ground.hardware,
            "code": ground.code,
        },
    }
    return digest(parts)


def _measured(spec: SessionSpec) -> JsonValue:
    """The part of a session's spec that can change a number: not with what it is compared, nor how long to wait."""
    data = spec.model_dump(mode="json")
    for name in ("against", "placebo", "lossy", "objective"):
        del data[name]
    for name in ("ready_timeout_s", "stop_timeout_s"):
        del data["server"][name]
    return data


@dataclass
class Store:
    """A folder of cells and of the server lifetimes they were measured in."""

    root: Path
    set_aside: list[Path] = field(default_factory=list)
    """Files that could not be read as what they claim to be."""

    def path(self, key: str) -> Path:
        """Where a cell with this key lies."""
        return self.root / "measured" / key[:2] / f"{key}.json"

    def get(self, key: str) -> Cell | None:
        """The cell, or None if it was not measured (or its file is torn: then it is set aside)."""
        path = self.path(key)
        try:
            cell = Cell.read(path)
        except FileNotFoundError:
            return None
        except (ValidationError, ValueError):
            self._set_aside(path)
            return None
        if cell.key != key:
            self._set_aside(path)
            return None
        return cell

    def put(self, cell: Cell) -> Path:
        """Keep a cell; an equal key measured meanwhile by another run stays as it is."""
        path = self.path(cell.key)
        if not path.exists():
            cell.write(path)
        return path

    def lifetime_folder(self, identity: str) -> Path:
        """Folder of one server lifetime: lifetime.json, server.log, metrics.prom."""
        return self.root / "servers" / identity

    def put_lifetime(self, lifetime: ServerLifetime) -> None:
        """Write (or rewrite, as it goes on) one lifetime's record."""
        lifetime.write(self.lifetime_folder(lifetime.id) / "lifetime.json")

    def lifetime(self, identity: str) -> ServerLifetime | None:
        """The record of a lifetime, or None if it is gone."""
        try:
            return ServerLifetime.read(self.lifetime_folder(identity) / "lifetime.json")
        except (FileNotFoundError, ValidationError, ValueError):
            return None

    def _set_aside(self, path: Path) -> None:
        aside = path.with_suffix(f".unreadable-{os.getpid()}")
        try:
            path.rename(aside)
        except OSError:
            return
        self.set_aside.append(aside)
