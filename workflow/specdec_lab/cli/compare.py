"""`specdec compare RESULTS_DIR`: tables, verdicts and deploy files again, from the raw rows only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    results_dir: Annotated[Path, typer.Argument(help="The folder that holds sessions/.")],
    json: Annotated[bool, typer.Option("--json", help="Print the decision as JSON instead of the table.")] = False,
) -> None:
    """Compare every mode with its baseline, decide, and write the files into the results folder."""
    from ..analysis import compare, decision, tables

    comparison = compare.compare(results_dir)
    tables.write(comparison, results_dir)
    decided = decision.write(results_dir)
    if json:
        typer.echo(decided.model_dump_json(indent=1))
        return
    typer.echo((results_dir / "summary.txt").read_text(encoding="utf-8"))
    typer.echo((results_dir / "decision.md").read_text(encoding="utf-8"))
