"""All checks in order; none may break the others, and none changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..records.errors import UserError
from . import hardware, software, storage
from .line import Line, Needs, Status

CHECKS: tuple[Callable[[Needs], Iterator[Line]], ...] = (
    hardware.gpu,
    hardware.driver,
    hardware.processor,
    software.docker,
    software.programs,
    software.network,
    software.leftovers,
    storage.token,
    storage.found_checkpoints,
    storage.disk,
    storage.folders,
)


def examine(configs: Sequence[Path]) -> list[Line]:
    """Every line for this machine, and for these configs, laid upon each other; without any for the default one."""
    needs, lines = _config(configs)
    for check in CHECKS:
        try:
            lines += check(needs)
        except UserError as error:
            lines.append(Line(check=check.__name__, status="warn", found=error.cause, fix=error.fix))
        except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, and the others still count
            lines.append(
                Line(check=check.__name__, status="warn", found=f"could not look: {type(error).__name__}: {error}")
            )
    return lines + _failed_sessions(needs)


def _config(configs: Sequence[Path]) -> tuple[Needs, list[Line]]:
    """What the workflow would read: the files that are named, else the default config."""
    from ..dag import DEFAULT_CONFIG, Lab

    named = ", ".join(map(str, configs))
    if not configs:
        if not DEFAULT_CONFIG.exists():
            found = f"none given, and no {DEFAULT_CONFIG} here: the machine in general is looked at"
            return Needs(), [Line(check="config", status="ok", found=found)]
        configs, named = [DEFAULT_CONFIG], f"{DEFAULT_CONFIG} (the default, as --config names none)"
    try:
        lab = Lab.load(configs, root=Path())
    except UserError as error:
        fix = error.fix or "mend the config; every key is described in config/README.md"
        where = f"{error.place}: " if error.place else ""
        return Needs(), [Line(check="config", status="fail", found=f"{named}: {where}{error.cause}", fix=fix)]
    except OSError as error:
        return Needs(), [Line(check="config", status="fail", found=f"{named}: {error.strerror}", fix="check the path")]
    sessions = lab.matrix.sessions
    checkpoints = {
        name: sessions[mode].checkpoints[role]
        for mode, roles in lab.matrix.roles.items()
        for role, name in roles.items()
    }
    needs = Needs(
        [s.server for s in sessions.values()],
        checkpoints,
        lab.results,
        known=True,
        asked=lab.asked,
        document=lab.loaded.document,
    )
    count = f"{len(sessions)} modes, {len(lab.matrix.cells)} cells each, {len(lab.matrix.order)} server starts"
    lines = [Line(check="config", status="ok", found=f"{named}: {count}")]
    for one in lab.matrix.warnings:
        status: Status = "ok" if one.severity == "info" else "warn"
        lines.append(Line(check="config", status=status, found=one.message, fix=one.hint))
    return needs, lines


def _failed_sessions(needs: Needs) -> list[Line]:
    """What failed in the last run of this config, with cause and fix."""
    from ..session.aftermath import failures, together

    if not needs.known:
        return []
    return [
        Line(
            check="last run",
            status="warn",
            found=f"{who}: {same[0].cause}",
            fix=same[0].fix,
        )
        for who, same in together(failures(Path(needs.results), needs.asked))
    ]
