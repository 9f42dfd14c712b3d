"""One fault of a config, and all of them together as an error, each with its place and its mend (E1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..records.errors import UserError
from .strict_yaml import Document, KeyPath, key_path


@dataclass(frozen=True)
class Problem:
    """One fault: what is wrong at which key, and how to mend it."""

    path: KeyPath
    cause: str
    fix: str
    modes: tuple[str, ...] = ()
    """The modes that it concerns, where the key is one that modes share."""


def _once(problems: Sequence[Problem]) -> list[Problem]:
    """A fault of a shared setting once, with all its modes, instead of once per mode."""
    modes: dict[Problem, dict[str, None]] = {}
    for problem in problems:
        modes.setdefault(replace(problem, modes=()), {}).update(dict.fromkeys(problem.modes))
    return [replace(problem, modes=tuple(names)) for problem, names in modes.items()]


class ConfigError(UserError):
    """Everything that is wrong with a config, with places."""

    def __init__(self, problems: Sequence[Problem], document: Document) -> None:
        self.problems = _once(problems)
        lines = []
        for problem in self.problems:
            place = document.place(problem.path)
            concerned = f"\n  modes: {', '.join(problem.modes)}" if problem.modes and problem.path[0] != "modes" else ""
            lines.append(
                f"{key_path(problem.path) or 'config'}: {problem.cause}\n  where: {place}\n"
                f"  fix:   {problem.fix}{concerned}"
            )
        count = f"{len(lines)} faults in the config:\n" if len(lines) > 1 else ""
        super().__init__(count + "\n".join(lines), code="config")
