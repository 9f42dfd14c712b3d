"""What lies in a bundle's folder and is not in its manifest: nothing may, but what working in that folder leaves.

An archive holds its manifest's files and nothing else. In an unpacked folder Snakemake, Python and `make setup` put
files of their own. They are no part of the bundle; they are told and not looked at.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

_AT_THE_TOP = frozenset({".snakemake", ".venv"})
_ANYWHERE = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints"})
_OWN = re.compile(r"results/[^/]+/(bundle/[^/]+\.tar\.gz|logs/bundle\.log)")
"""Packing's own log, and the archives that it makes."""


def unlisted(folder: Path, listed: Collection[str], *, worked_in: bool) -> Iterator[str]:
    """Everything in the folder that is not listed, and no folder itself; links are told and not followed.

    Where somebody may have worked in it, a folder that some tool keeps, and of which nothing is listed, is one name
    with a slash at its end.
    """
    parents = {name[: place + 1] for name in listed for place, letter in enumerate(name) if letter == "/"}
    closed: list[OSError] = []
    for place, folders, names in os.walk(folder, followlinks=False, onerror=closed.append):
        here = Path(place).relative_to(folder)
        links = [name for name in folders if (Path(place) / name).is_symlink()]
        kept = []
        for name in sorted(set(folders) - set(links)):
            path = f"{(here / name).as_posix()}/"
            if worked_in and left_by_tools(path) and path not in parents:
                yield path
            else:
                kept.append(name)
        folders[:] = kept
        yield from sorted(path for name in [*names, *links] if (path := (here / name).as_posix()) not in listed)
    yield from (f"{Path(one.filename).relative_to(folder).as_posix()}/" for one in closed)


def left_by_tools(path: str) -> bool:
    """Whether working in the folder leaves such a file there."""
    first, *others = path.split("/")
    inside = (first, *others[:-1])
    return (
        (first in _AT_THE_TOP and others != [])
        or any(name in _ANYWHERE or name.endswith(".egg-info") for name in inside if others)
        or _OWN.fullmatch(path) is not None
    )


def shown(text: str) -> str:
    """The text with whatever a terminal would obey, or could not write, escaped."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
