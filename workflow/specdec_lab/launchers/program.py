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


def fault(program: str) -> tuple[str, str] | None:
    """Why this program cannot be started, and the fix; None when it can. A bare name is looked up on PATH."""
    found = shutil.which(program)
    if found is not None:
        wanted = _named_interpreter(Path(found))
        if wanted is not None and not Path(wanted).exists():
            fix = "Install it anew where it is: an environment that was copied or moved does not work."
            return f"the program {program!r} asks for {wanted}, which does not exist", fix
        return None
    if program.startswith("~") or "$" in program:
        return (
            f"there is no program {program!r}",
            "Write the path out: `~` and variables are not expanded in a command.",
        )
    path = Path(program)
    if path.name == program:
        return f"there is no program {program!r} on PATH", "Install it, or name it by its full path under `command:`."
    if not path.exists():
        fix = "Check the path (a relative one counts from the folder in which the run is started), or install it."
        return f"the program {program!r} does not exist", fix
    if path.is_dir():
        return f"{program!r} is a folder, not a program", "Name the program in it under `command:`."
    return f"the program {program!r} may not be executed", f"Check that it is one, then: chmod +x {program}"


def _named_interpreter(path: Path) -> str | None:
    """What a script's first line names as its interpreter; None for other programs."""
    try:
        with path.open("rb") as file:
            first = file.readline(400).decode("utf-8", "replace")
    except OSError:
        return None
    named = re.match(r"#!\s*(\S+)", first)
    return named[1] if named else None


def interpreter(program: str) -> str | None:
    """The Python that runs this program: itself, or the one its first line names; None for other programs."""
    found = shutil.which(program)
    if found is None:
        return None
    if re.fullmatch(r"python[\d.]*", Path(found).name):
        return found
    named = _named_interpreter(Path(found))
    is_python = named is not None and re.fullmatch(r"python[\d.]*", Path(named).name) is not None
    return named if is_python and Path(str(named)).exists() else None


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
