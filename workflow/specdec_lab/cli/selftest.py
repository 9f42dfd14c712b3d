"""`specdec selftest`: the client against a server with known times (B5)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ..records.base import strict_dumps

if TYPE_CHECKING:
    from ..client.selftest import Trial

_HEAD = "conc.  tok/chunk  chunks/s   TTFT error ms: 1st wave   p50    p95   decode error p50   CPU s/M   lag p99 ms"


def run(
    quick: Annotated[bool, typer.Option("--quick", help="Two seconds at concurrency 16 instead of a minute.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout, nothing else.")] = False,
) -> None:
    """Prints what the client recovers of known times, what it costs and how much it can take.

    Exit code 1 when a median is outside its limit: 0.5 ms for TTFT, 0.1 % for the decode rate.
    """
    from ..client import selftest

    def told(one: Trial) -> None:
        if not as_json:
            typer.echo(_line(one))

    if not as_json:
        typer.echo(_HEAD)
    found = selftest.full((16,), (1,), told=told) if quick else selftest.full(told=told)
    if as_json:
        sys.stdout.write(strict_dumps(found))
    else:
        null = (
            "" if found.null_chunks_s is None else f"; from a server that waits for nothing {found.null_chunks_s:,.0f}"
        )
        typer.echo(f"receive times by the {found.stamps}; one core takes {found.ceiling_chunks_s:,.0f} chunks/s{null}")
        typer.echo(
            "within limits"
            if found.passed
            else "OUTSIDE LIMITS: something else uses this machine, or it is too slow for these loads"
        )
    if not found.passed:
        raise typer.Exit(1)


def _line(one: Trial) -> str:
    return (
        f"{one.concurrency:5} {one.tokens_per_chunk:10} {one.chunks_s:9.0f} {_ms(one.first_wave_ttft_ms):>24}"
        f" {_ms(one.p50_ttft_ms):>7} {_ms(one.p95_ttft_ms):>6}"
        f" {'n/a' if one.p50_decode is None else f'{one.p50_decode:.5%}':>17} {one.cpu_s_per_million:9.1f}"
        f" {_ms(one.loop_lag_p99_ms):>11}{'' if one.within_limits else '  outside'}"
    )


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
