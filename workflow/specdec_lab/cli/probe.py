"""`specdec probe RESULTS_DIR --base-url URL`: near-tie or real, asked of the baseline's server (B2, D4)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    results_dir: Annotated[Path, typer.Argument(help="The folder that holds sessions/ and prompts.jsonl.")],
    base_url: Annotated[str, typer.Option("--base-url", help="A running server of the baseline, without speculation.")],
    model: Annotated[
        str | None, typer.Option("--model", help="Model name in requests; default: what it serves.")
    ] = None,
) -> None:
    """Ask at the first difference of each text that differs, write probe.json, and judge again with it."""
    from ..analysis import compare, decision, tables
    from ..analysis.questions import questions
    from ..session.probe import ask, served

    comparison = compare.compare(results_dir)
    asked = questions(results_dir, comparison)
    baseline = next(mode.name for mode in comparison.plan.modes if mode.against is None)
    if not asked:
        typer.echo("No text differs that could be asked about.")
        return
    spec = comparison.specs.get(baseline)
    probe = ask(
        asked,
        base_url=base_url.rstrip("/").removesuffix("/v1"),
        model=model or served(base_url),
        engine=spec.server.engine if spec else "openai",
        baseline=baseline,
        extra=spec.sampling.extra if spec else None,
        say=typer.echo,
    )
    probe.write(results_dir / compare.PROBE_FILE)
    again = compare.compare(results_dir)
    tables.write(again, results_dir)
    decision.write(results_dir)
    typer.echo((results_dir / "decision.md").read_text(encoding="utf-8"))
