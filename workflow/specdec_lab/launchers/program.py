"""What can be known of a local program without starting it: its interpreter and its packages (M10)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

_FREEZE = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions() if d.metadata['Name']}))"
)
FREEZE_COMMAND = ("-c", _FREEZE)
"""Arguments for a Python interpreter that prints its environment's packages as JSON."""


def interpreter(program: str) -> str | None:
    """The Python that runs this program: itself, or the one its first line names; None for other programs."""
    found = shutil.which(program)
    if found is None:
        return None
    if re.fullmatch(r"python[\d.]*", Path(found).name):
        return found
    try:
        with Path(found).open("rb") as file:
            first = file.readline(400).decode("utf-8", "replace")
    except OSError:
        return None
    named = re.match(r"#!\s*(\S*python[\d.]*)\s*$", first)
    return named[1] if named and Path(named[1]).exists() else None


def parse_freeze(text: str) -> dict[str, str]:
    """Packages by name out of what FREEZE_COMMAND printed; empty if it is not that."""
    try:
        said = json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        return {}
    return {str(k): str(v) for k, v in sorted(said.items())} if isinstance(said, dict) else {}


@cache
def packages(program: str) -> dict[str, str]:
    """The packages of the environment that this program runs in; empty when it is no Python program."""
    python = interpreter(program)
    if python is None:
        return {}
    try:
        done = subprocess.run([python, *FREEZE_COMMAND], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_freeze(done.stdout)
