"""`specdec doctor`: what this machine, this config and a failed server's log say, each with the fix."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..records.base import strict_dumps
from ..records.errors import UserError

LARGEST_LOG = 4 * 2**20
"""Bytes of a log's end that are searched; a server that ended writes its reasons there."""
MARKS = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


def run(
    config: Annotated[
        list[Path] | None,
        typer.Option(
            help="Check what this config needs, and its last run; config/config.yaml when none is named. "
            "Several are laid upon each other, as Snakemake's --configfile does."
        ),
    ] = None,
    log: Annotated[Path | None, typer.Option(help="Explain a failed server's log instead.")] = None,
    exit_code: Annotated[int | None, typer.Option(help="With --log: the server's exit code.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    stray: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="")] = None,
) -> None:
    """Looks and changes nothing. Exit code 1 when a line fails, or when a log shows a failure; a log that shows none
    gives 0."""
    if stray:
        named = "".join(f" --config {one}" for one in [*(config or []), stray[0]])
        raise UserError(
            f"doctor takes no file without saying what it is: {' '.join(stray)}",
            fix=f"For a config: specdec doctor{named}; for a failed server's log: --log {stray[0]}",
        )
    if log is not None:
        _explain(log, exit_code, as_json)
        return
    from ..doctor.examine import examine

    lines = examine(config or [])
    failed = sum(line.status == "fail" for line in lines)
    if as_json:
        answer = {"schema_version": 1, "ok": failed == 0, "lines": [line.model_dump(mode="json") for line in lines]}
        sys.stdout.write(strict_dumps(answer))
    else:
        for line in lines:
            sys.stdout.write(f"{MARKS[line.status]}  {line.check:<15} {line.found}\n")
            if line.fix and line.status != "ok":
                sys.stdout.write(f"      {'':<15} fix: {line.fix}\n")
        sys.stdout.write(_verdict(failed, sum(line.status == "warn" for line in lines)))
    if failed:
        raise typer.Exit(1)


def _verdict(failed: int, warned: int) -> str:
    if failed:
        return f"\n{failed} to mend before a run.\n"
    remarks = f", with {warned} remark{'' if warned == 1 else 's'}" if warned else ""
    return f"\nReady{remarks}.\n"


def _explain(log: Path, exit_code: int | None, as_json: bool) -> None:
    from ..failures import diagnose
    from ..launchers.base import Exit
    from ..provenance.redact import redact

    text, skipped = _end_of(log)
    found = diagnose(redact(text), Exit(exit_code) if exit_code is not None else None)
    if as_json:
        sys.stdout.write(
            strict_dumps(
                {
                    "schema_version": 1,
                    "failure": found.model_dump(mode="json") if found else None,
                    "skipped_bytes": skipped,
                }
            )
        )
    elif found is None:
        sys.stdout.write("No failure that is known, and no error, in this log.\n")
        sys.stdout.write("If the server ended all the same, say how: --exit-code N.\n")
    else:
        sys.stdout.write(f"{found.cause}\n  where: {found.place}\n  fix:   {found.fix}\n")
        sys.stdout.write("".join(f"  | {line}\n" for line in found.excerpt))
    if skipped and not as_json:
        sys.stdout.write(
            f"Only the last {LARGEST_LOG // 2**20} MiB of this log were read; its lines are counted from there.\n"
        )
    if found is not None:
        raise typer.Exit(1)


def _end_of(log: Path) -> tuple[str, int]:
    """The log's text, of a large one its end, and how many bytes stand before that. Reading a pipe may never end."""
    try:
        status = log.stat()
        if not stat.S_ISREG(status.st_mode):
            what = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise UserError(f"the log cannot be read: it is {what}", place=str(log), fix="write the log into a file")
        skipped = max(0, status.st_size - LARGEST_LOG)
        with log.open("rb") as file:
            file.seek(skipped)
            return file.read(LARGEST_LOG).decode("utf-8", errors="replace"), skipped
    except OSError as error:
        raise UserError(f"the log cannot be read: {error.strerror}", place=str(log), fix="check the path") from error
