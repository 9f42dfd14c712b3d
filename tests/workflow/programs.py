"""Programs as a user runs them: in a folder of their own, with their output as text; Snakemake on a copy of the lab."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LAB = ("Snakefile", "workflow", "profiles")
"""What a run of the workflow needs beside a config."""


def copy(names: Iterable[str], folder: Path) -> None:
    """Copy files and folders of the repository, in which no test may write."""
    for name in names:
        source = REPOSITORY / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """This process's environment, with the package of the copy in `folder` and its own locks."""
    return {
        **os.environ,
        "PYTHONPATH": str(folder / "workflow"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SPECDEC_LOCK_DIR": str(folder / "locks"),
        **more,
    }


def run(
    command: list[str], folder: Path, variables: Mapping[str, str], *, timeout_s: float = 400
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end in `folder`; its exit code is for the caller to judge."""
    return subprocess.run(
        command, cwd=folder, env=dict(variables), capture_output=True, text=True, timeout=timeout_s, check=False
    )
