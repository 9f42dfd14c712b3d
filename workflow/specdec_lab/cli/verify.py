"""`specdec verify BUNDLE`: checksums, formats, and every table recomputed from the rows (M36)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    bundle: Annotated[Path, typer.Argument(help="The archive, or the folder it unpacks to.")],
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check a bundle; exit code 1 when anything fails."""
    from ..bundle.verify import tell, verify

    found = verify(bundle)
    if json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        tell(found, typer.echo)
    if not found.good:
        raise typer.Exit(1)
