"""Which files make a bundle: results, the cells behind them, Snakemake's records of them, and the workflow itself."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from pydantic import ValidationError
from pydantic_core import from_json

from ..asked import Asked, asked, session_folders
from ..provenance.code import PACKAGE
from ..records.base import Finding
from ..records.session import Session
from ..session.store import Store

METADATA = ".snakemake/metadata"
_WORKFLOW = (
    "Snakefile",
    "workflow",
    "profiles",
    "pyproject.toml",
    "requirements.lock",
    "Makefile",
    "LICENSE",
    "config/checkpoints.lock.json",
    "containers/images.lock.json",
)
_NOT_KEPT = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"})


@dataclass
class Contents:
    """Path in the bundle -> file on this machine, and what could not be taken along."""

    files: dict[str, Path] = field(default_factory=dict)
    left_out: list[Finding] = field(default_factory=list)

    def leave(self, code: str, path: str, why: str) -> None:
        """Note that something is not in the bundle."""
        self.left_out.append(Finding(code=code, message=f"{path}: {why}"))


def collect(results: Path, project: Path, store: Path, traffic: str | None) -> Contents:
    """Everything that belongs to the run of this folder. Links are never followed, special files never opened (E9).

    `project` is the folder in which Snakemake runs; `store` the cell store; `traffic` the user's own prompts file as
    the config names it.
    """
    found = Contents()
    inside = f"results/{results.name}"
    wanted = asked(results)
    others = 0
    for path in _walk(results, inside, found):
        relative = path.relative_to(results).as_posix()
        if not wanted.holds(relative):
            others += 1
        elif not _is_passing(relative):
            found.files[f"{inside}/{relative}"] = path
    if others:
        found.leave("not_asked_for", inside, f"{others} files of sessions and cells that the config does not ask for")
    _cells(results, wanted, store, found)
    _metadata(project, inside, wanted, found)
    _workflow(project, found)
    if traffic is not None:
        _traffic(traffic, project, found)
    return found


def _is_passing(relative: str) -> bool:
    """Earlier bundles, the log of packing itself, and files that were being written."""
    return relative.startswith("bundle/") or relative == "logs/bundle.log" or relative.endswith(".tmp")


def _walk(folder: Path, shown: str, found: Contents) -> Iterator[Path]:
    for place, folders, names in os.walk(folder, followlinks=False, onerror=lambda error: _closed(error, found)):
        here = Path(place)
        folders[:] = sorted(name for name in folders if name not in _NOT_KEPT)
        for name in [*folders, *sorted(names)]:
            path = here / name
            told = f"{shown}/{path.relative_to(folder).as_posix()}"
            if path.is_symlink():
                found.leave("link", told, f"a link (to {path.readlink()}), which is not followed")
            elif name in folders:
                continue
            elif not path.is_file():
                found.leave("special", told, "neither a file nor a folder")
            else:
                yield path
        folders[:] = [name for name in folders if not (here / name).is_symlink()]


def _closed(error: OSError, found: Contents) -> None:
    found.leave("unreadable", Path(error.filename or "?").name, error.strerror or "cannot be read")


def _cells(results: Path, wanted: Asked, store: Path, found: Contents) -> None:
    """The cells as the store has them, so that an unpacked bundle measures nothing again; and their servers."""
    kept = Store(store)
    missing = 0
    for one in session_folders(results, wanted):
        try:
            session = Session.read(one.session)
        except (OSError, ValidationError):
            continue  # the packer refuses or notes unreadable records itself
        for key in (key for name, key in session.cells.items() if wanted.cell(name)):
            cell = kept.path(key)
            if cell.is_file() and not cell.is_symlink():
                found.files[f"cells/{cell.relative_to(store).as_posix()}"] = cell
            else:
                missing += 1
        for lifetime in session.lifetimes:
            folder = kept.lifetime_folder(lifetime.id)
            for file in _walk(folder, f"cells/servers/{lifetime.id}", found) if folder.is_dir() else ():
                found.files[f"cells/{file.relative_to(store).as_posix()}"] = file
    if missing:
        found.leave("not_in_store", "cells/", f"{missing} cells are not in the store; their copies in the results are")


def _metadata(project: Path, inside: str, wanted: Asked, found: Contents) -> None:
    """Snakemake's own records of these outputs: without them a later change of a param would go unseen."""
    folder = project / METADATA
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink():
            continue
        relative = path.relative_to(folder)
        output = recorded_output(relative.parts)
        if output is None or not output.startswith(f"{inside}/") or output.startswith(f"{inside}/bundle/"):
            continue
        if wanted.holds(output.removeprefix(f"{inside}/")):
            found.files[f"{METADATA}/{relative.as_posix()}"] = path
    if not any(name.startswith(METADATA) for name in found.files):
        found.leave("no_metadata", METADATA, "Snakemake has no record of these results here")


def recorded_output(parts: tuple[str, ...]) -> str | None:
    """The output that a record of Snakemake's is about: its name is the path in base64, cut into folders when long."""
    text = "".join(part.removeprefix("@") for part in parts)
    try:
        return base64.urlsafe_b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _workflow(project: Path, found: Contents) -> None:
    root = project if (project / "Snakefile").is_file() else PACKAGE.parent.parent
    if not (root / "Snakefile").is_file():
        found.leave("no_workflow", "Snakefile", "the workflow's own files are not here")
        return
    for name in _WORKFLOW:
        path = root / name
        if path.is_symlink():
            found.leave("link", name, "a link, which is not followed")
        elif path.is_file():
            found.files[name] = path
        elif path.is_dir():
            for file in _walk(path, name, found):
                if ".egg-info" not in file.as_posix():
                    found.files[f"{name}/{file.relative_to(path).as_posix()}"] = file


def _traffic(traffic: str, project: Path, found: Contents) -> None:
    """The user's own prompts file is an input of the workflow; one outside the project cannot be put in its place."""
    path = project / traffic
    name = PurePosixPath(traffic)
    if name.is_absolute() or ".." in name.parts or path.is_symlink():
        found.leave("outside", traffic, "outside the project; the prompts that were measured are in prompts.jsonl")
    elif path.is_file():
        found.files[name.as_posix()] = path
    else:
        found.leave("missing", traffic, "not there")


def has_stack(path: Path) -> bool:
    """Whether a cell's file says on what it was measured (M10)."""
    content = from_json(path.read_bytes())
    stack = content.get("stack") if isinstance(content, dict) else None
    return isinstance(stack, dict) and bool(stack.get("host")) and bool(stack.get("engine"))
