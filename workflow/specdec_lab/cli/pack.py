"""`specdec pack [RESULTS_DIR]`: one archive that holds everything behind a table (M36)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..records.errors import UserError


def run(
    results_dir: Annotated[
        Path | None, typer.Argument(help="The folder to pack, results/<name>; may be left out if there is only one.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where to put the archive. Default: <results>/bundle.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
) -> None:
    """Pack results, cells, logs, stack, tables, report and workflow, with checksums; secrets are taken out."""
    from ..bundle.manifest import Manifest
    from ..bundle.pack import notes, pack

    results = results_dir or _only()
    path = pack(results, out=out)
    manifest = Manifest.read(results / "bundle" / "manifest.json")
    if json:
        typer.echo(manifest.model_dump_json(indent=1))
        return
    typer.echo(f"{path}: {len(manifest.files)} files, {path.stat().st_size / 1e6:.1f} MB")
    for note in notes(manifest):
        typer.echo(f"note: {note.message}")


def _only() -> Path:
    found = sorted(path.parent for path in Path("results").glob("*/comparison.json"))
    if len(found) == 1:
        return found[0]
    raise UserError(
        "Which results are meant?" if found else "There are no results here.",
        place=", ".join(map(str, found)) or str(Path("results").resolve()),
        fix="Name the folder: specdec pack results/demo" if found else "Run the workflow first.",
        code="no_results",
    )
