"""`specdec acceptance`: the acceptance between two scrapes of a server's metrics, as JSON (M4)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..records.base import Finding, strict_dumps
from ..records.cell import CounterWindow
from ..records.errors import UserError


def run(
    before: Annotated[Path, typer.Argument(help="Metrics text scraped when the window opened (after the warm-up).")],
    after: Annotated[Path, typer.Argument(help="Metrics text scraped when the window closed.")],
    engine: Annotated[
        str, typer.Option(help="vllm, llama_cpp, sglang or nim; auto: the one whose counters are there.")
    ] = "auto",
    baseline: Annotated[
        bool, typer.Option("--baseline", help="The server is meant to run without speculation.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON only: nothing is said on stderr beside it.")] = False,
) -> None:
    """Prints JSON on stdout and remarks on stderr. Exit code 1 when the window has no valid acceptance."""
    from ..counters import window
    from ..counters.tables import TABLES, guess

    first, second = _read(before), _read(after)
    name = guess(first, second) if engine == "auto" else engine.replace("-", "_").replace(".", "_")
    if name not in TABLES:
        raise UserError(
            f"No counter table for the engine {engine!r}.", place="--engine", fix=f"Use one of: {', '.join(TABLES)}."
        )
    result = window(first, second, TABLES[name], speculative=not baseline)
    sys.stdout.write(strict_dumps(_answer(result, name)))
    if not as_json:
        for finding in [*result.findings, *result.acceptance.findings]:
            sys.stderr.write(_line(finding))
    if result.acceptance.status in ("absent", "invalid"):
        raise typer.Exit(1)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise UserError(
            f"Cannot read the scrape: {error.strerror}.",
            place=str(path),
            fix="Save it with: curl -s URL/metrics > FILE",
        ) from error


def _answer(result: CounterWindow, engine: str) -> dict[str, Any]:
    from ..counters.acceptance import FORMULAS, PASS_FORMULAS

    acceptance = result.acceptance
    passes_only = acceptance.acceptance_length is not None and acceptance.accepted_tokens is None
    hits, queries = result.prefix_cache_hits, result.prefix_cache_queries
    return {
        "schema_version": 1,
        "engine": engine,
        **acceptance.model_dump(mode="json"),
        "formulas": PASS_FORMULAS if passes_only else FORMULAS,
        "prefix_cache_hit_rate": hits / queries if hits is not None and queries else None,
        "window": result.model_dump(mode="json", exclude={"acceptance"}),
    }


def _line(finding: Finding) -> str:
    hint = f" {finding.hint}" if finding.hint else ""
    return f"{finding.severity}: {finding.message}{hint}\n"
