"""All checks in order; none may break the others, and none changes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def examine(config: Path | None) -> list[Line]:
    """Every line for this machine, and for this config if one is given."""
    needs, lines = _config(config)
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


def _config(config: Path | None) -> tuple[Needs, list[Line]]:
    if config is None:
        return Needs(), [Line(check="config", status="ok", found="none given: the machine in general is looked at")]
    from ..dag import Lab

    try:
        lab = Lab.load([config], root=Path())
    except UserError as error:
        fix = error.fix or "mend the config; every key is described in config/README.md"
        where = f"{error.place}: " if error.place else ""
        return Needs(), [Line(check="config", status="fail", found=f"{where}{error.cause}", fix=fix)]
    except OSError as error:
        return Needs(), [Line(check="config", status="fail", found=f"{config}: {error.strerror}", fix="check the path")]
    sessions = lab.matrix.sessions
    named = {
        name: sessions[mode].checkpoints[role]
        for mode, roles in lab.matrix.roles.items()
        for role, name in roles.items()
    }
    needs = Needs(
        [s.server for s in sessions.values()],
        named,
        lab.results,
        known=True,
        asked=lab.asked,
        document=lab.loaded.document,
    )
    count = f"{len(sessions)} modes, {len(lab.matrix.cells)} cells each, {len(lab.matrix.order)} server starts"
    found = [Line(check="config", status="ok", found=f"{config}: {count}")]
    for one in lab.matrix.warnings:
        status: Status = "ok" if one.severity == "info" else "warn"
        found.append(Line(check="config", status=status, found=one.message, fix=one.hint))
    return needs, found


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
