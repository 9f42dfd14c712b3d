"""Cell files that a finished session should have and has not: deleted, or cut off.

Snakemake does not look at inputs of what is up to date, so a run would say that nothing is to be done. What was
measured is in the store; the session's job brings it back from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

END = b"}\n"
"""Every record ends like this."""


def lost(files: Iterable[str | Path]) -> list[Path]:
    """Those of these files that are not there whole, of sessions that came to their end (session.json is there)."""
    found = []
    for path in map(Path, files):
        if (path.parent / "session.json").is_file() and not _whole(path):
            found.append(path)
    return found


def _whole(path: Path) -> bool:
    """By its last bytes alone: results may have thousands of cells, and this is done as every run begins."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            file.seek(-len(END), 2)
            return file.read() == END
    except OSError:
        return False


_LOOKS = (
    "--dry-run --dryrun --lint --report --summary -S --detailed-summary -D --list-rules --list -l --list-target-rules "
    "--lt --list-changes --lc --dag --rulegraph --filegraph --d3dag --unlock --touch -t --archive --cleanup-metadata "
    "--containerize --delete-all-output --delete-temp-output --print-compilation --version --help -h"
)


def only_looks(argv: Iterable[str]) -> bool:
    """Whether a snakemake command line asks for no run; Snakemake itself knows only after it has read the rules."""
    words = {word.split("=", 1)[0] for word in argv}
    return not words.isdisjoint(_LOOKS.split(" ")) or any(re.fullmatch(r"-[pqFk]*n[pqFk]*", word) for word in words)


def make_again(files: Iterable[Path], comparison: Path) -> None:
    """Remove what is left of these files and the comparison made of them, so that both are made again."""
    for path in files:
        if path.is_file() or path.is_symlink():
            path.unlink()
    comparison.unlink(missing_ok=True)
