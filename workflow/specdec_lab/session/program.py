"""What program a process launcher would run, known before it runs: its environment, its version (B6, M10).

An upgrade in place (a new vLLM in the same environment) must change the key of every cell, though no config changed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_ASK = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


def interpreter(command: Sequence[str]) -> str | None:
    """The Python that the command runs in: itself, or the one beside it (`vllm` in an environment); None for others."""
    found = shutil.which(command[0]) if command else None
    if found is None:
        return None
    path = Path(found)
    if path.name.startswith("python") or found == sys.executable:
        return found
    beside = path.parent / "python3"
    return str(beside) if beside.exists() and _is_script(path) else None


@cache
def version(command: tuple[str, ...], distributions: tuple[str, ...]) -> str | None:
    """`name version` of the first of these distributions in the command's environment, else a digest of the program.

    None when the program cannot be found; that is said when it is started.
    """
    python = interpreter(command)
    for name in distributions if python else ():
        asked = subprocess.run([str(python), "-c", _ASK, name], capture_output=True, text=True, check=False, timeout=60)
        if asked.returncode == 0:
            return f"{name} {asked.stdout.strip()}"
    found = shutil.which(command[0]) if command else None
    if found is None:
        return None
    with Path(found).open("rb") as file:
        return f"{Path(found).name} sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
