"""`specdec diff A B`: two bundles side by side (M37)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    a: Annotated[Path, typer.Argument(help="What was before: a bundle, or a results folder.")],
    b: Annotated[Path, typer.Argument(help="What is now.")],
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", help="Exit with 1 on this: slower:5%, acceptance:5%, decision, ... May be repeated."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the difference as JSON.")] = False,
) -> None:
    """Stack differences first, then speed, acceptance, identity, and the decisions that changed."""
    from ..bundle.diff import diff
    from ..bundle.gate import Gate
    from ..bundle.side_by_side import text

    gates = [Gate.parse(one) for one in fail_on or []]
    found = diff(a, b)
    typer.echo(found.model_dump_json(indent=1) if json else text(found))
    broken = [told for gate in gates for told in gate.broken(found)]
    for told in broken:
        typer.echo(f"failed: {told}", err=True)
    if broken:
        raise typer.Exit(1)
