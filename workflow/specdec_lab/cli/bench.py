"""`specdec bench`: one cell of a running endpoint, without Snakemake."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..records.base import strict_dumps
from ..records.errors import UserError
from ..writable import require_writable
from .options import key_of, require_positive

if TYPE_CHECKING:
    from ..records.cell import Cell, Summary


def run(
    base_url: Annotated[str, typer.Option(help="Where the server listens: http://host:port, with or without /v1.")],
    prompts: Annotated[Path, typer.Option(help="JSONL with id, kind, messages and max_tokens.")],
    model: Annotated[str, typer.Option(help="The model's name in requests.")],
    out: Annotated[Path, typer.Option(help="Where the cell is written: a file that is not there yet.")],
    concurrency: Annotated[int | None, typer.Option(min=1, help="Closed loop: requests under way, exactly.")] = None,
    rate: Annotated[float | None, typer.Option(help="Open loop: Poisson arrivals per second.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the arrival times.")] = 0,
    kind: Annotated[str | None, typer.Option(help="Only the prompts of this kind.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N prompts.")] = None,
    warmup: Annotated[
        int | None, typer.Option(min=0, help="Unrecorded requests before; default as many as fit once.")
    ] = None,
    deadline: Annotated[float, typer.Option(help="Most seconds for one request.")] = 300.0,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Caps the prompts' own max_tokens.")] = None,
    ignore_eos: Annotated[bool, typer.Option("--ignore-eos", help="Every answer has its full length.")] = False,
    engine: Annotated[str, typer.Option(help="vllm, llama_cpp, sglang, nim, openai; auto: by its counters.")] = "auto",
    ttft_objective: Annotated[float | None, typer.Option(help="Goodput: most seconds to the first token.")] = None,
    tpot_objective: Annotated[float | None, typer.Option(help="Goodput: most seconds per output token.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable that holds the endpoint's key.")] = None,
    selftest: Annotated[bool, typer.Option(help="Prove the client first, in two seconds.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier cell at --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")] = False,
) -> None:
    """Writes the cell and prints what its rows add up to. Exit code 1 when it was aborted or every request failed."""
    from ..bench import Asked, measure
    from ..records.spec import Deadlines, Load, Objective

    if (concurrency is None) == (rate is None):
        raise UserError(
            "A cell has either a concurrency or a rate.", fix="Give exactly one of --concurrency and --rate."
        )
    require_positive("--rate", rate, "2.5")
    require_positive("--deadline", deadline, "300")
    require_positive("--ttft-objective", ttft_objective, "0.5")
    require_positive("--tpot-objective", tpot_objective, "0.05")
    _check_target(out, prompts, overwrite=overwrite)
    headers = {}
    if api_key_env is not None:
        headers["authorization"] = f"Bearer {key_of(api_key_env, '--api-key-env')}"

    def say(line: str) -> None:
        if not as_json:
            sys.stderr.write(f"{line}\n")

    cell = measure(
        Asked(
            base_url=base_url,
            prompts=prompts,
            model=model,
            load=Load(concurrency=concurrency, rate=rate, seed=seed),
            kind=kind,
            limit=limit,
            warmup=warmup,
            deadlines=Deadlines(total_s=deadline, first_byte_s=min(deadline, 120.0), idle_s=min(deadline, 60.0)),
            max_tokens=max_tokens,
            ignore_eos=ignore_eos,
            engine=engine,
            objective=Objective(ttft_s=ttft_objective, tpot_s=tpot_objective),
            headers=headers,
            selftest=selftest,
        ),
        say,
    )
    cell.write(out)
    if as_json:
        sys.stdout.write(strict_dumps({"out": str(out), **cell.model_dump(mode="json", exclude={"rows", "stack"})}))
    else:
        typer.echo("\n".join(_lines(cell)))
        typer.echo(f"written to {out}")
    if not cell.summary.completed or cell.summary.failed == cell.summary.requests:
        raise typer.Exit(1)


def _check_target(out: Path, prompts: Path, *, overwrite: bool) -> None:
    """Whether the cell can be written, and over what, known before the first request."""
    if out.exists() and prompts.exists() and out.samefile(prompts):
        raise UserError("--out is the file of the prompts.", place=str(out), fix="Name another file for --out.")
    if out.exists() and not out.is_file():
        raise UserError("This is no file that a cell can be written to.", place=str(out), fix="Name a file for --out.")
    if out.exists() and not overwrite:
        raise UserError(
            "A file stands here already, and what was measured is not replaced unasked.",
            place=str(out),
            fix="Name another file for --out, or add --overwrite.",
        )
    if out.exists() and not _is_cell(out):
        raise UserError(
            "What stands here is no cell, and --overwrite replaces nothing else.",
            place=str(out),
            fix="Name another file for --out.",
        )
    require_writable(out.absolute().parent, "of the cell", "name another place for --out")


def _is_cell(path: Path) -> bool:
    """By its first keys; an empty or cut cell of an earlier try may be replaced as well."""
    with path.open("rb") as file:
        start = file.read(200)
    return not start.strip() or (start.lstrip().startswith(b"{") and b'"schema_version"' in start)


def _lines(cell: Cell) -> list[str]:
    summary = cell.summary
    lines = [
        f"{cell.cell.name}: {summary.requests} requests, {summary.failed} failed"
        + ("" if summary.completed else ", ABORTED"),
        f"  throughput      {_number(summary.agg_tok_s, '.1f', 'tok/s')}",
        f"  decode p50      {_number(summary.p50_decode_tok_s, '.1f', 'tok/s')} over {summary.decode_n} requests",
        f"  TTFT p50 / p95  {_ms(summary.p50_ttft_s)} / {_ms(summary.p95_ttft_s)}{_few(summary)}",
        f"  chunks          {_number(summary.tokens_per_chunk, '.2f', 'tokens each')},"
        f" gap p50 {_ms(summary.p50_chunk_gap_s)}",
    ]
    if summary.requested_rate is not None:
        lines.append(
            f"  rate            asked {summary.requested_rate:g}/s, sent {_number(summary.achieved_rate, '.3g', '/s')},"
            f" delay p95 {_ms(summary.p95_schedule_delay_s)}"
        )
    if summary.goodput is not None:
        lines.append(f"  goodput         {summary.goodput:.1%}")
    acceptance = cell.counters.acceptance
    if acceptance.status == "measured":
        lines.append(
            f"  acceptance      {_number(acceptance.acceptance_rate, '.3f', '')}, "
            f"mean length {_number(acceptance.acceptance_length, '.2f', '')}"
        )
    for reason in sorted({f"{row.reason}: {row.message}" for row in cell.rows if row.status == "failed"})[:3]:
        lines.append(f"  failed: {reason[:200]}")
    lines += [f"  {finding.severity}: {finding.message}" for finding in cell.warnings]
    return lines


def _few(summary: Summary) -> str:
    return " (few samples)" if "p95_ttft_s" in summary.few_samples else ""


def _number(value: float | None, form: str, unit: str) -> str:
    return "n/a" if value is None else f"{value:{form}} {unit}".rstrip()


def _ms(seconds: float | None) -> str:
    return "n/a" if seconds is None else f"{seconds * 1e3:.1f} ms"
