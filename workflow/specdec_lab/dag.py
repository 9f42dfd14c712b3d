"""What the Snakefile asks of the package: paths, params and order of every job. Pure functions of the config files.

Every param is a canonical JSON string or a digest, computed from the config and the sources alone, so that a job runs
again exactly when what it depends on has changed (see docs/architecture.md, section reruns).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from . import __version__, preflight, prompts
from .asked import Asked
from .config import fit
from .config.load import LoadedConfig, load_config
from .config.plan import plan
from .config.resolve import Matrix, resolve
from .prompts.need import needs
from .provenance import code
from .records.base import canonical
from .records.errors import UserError
from .session.schedule import priorities
from .session.store import folder as store_folder
from .writable import require_writable

DEFAULT_CONFIG = Path("config/config.yaml")


@dataclass(frozen=True)
class Lab:
    """One configured matrix, seen by the workflow."""

    matrix: Matrix
    loaded: LoadedConfig

    @classmethod
    def load(cls, files: Sequence[str | Path], *, root: Path, overrides: dict[str, object] | None = None) -> Lab:
        """Read and check the config; UserError before any job is made.

        `root` is the folder of the Snakefile, where the default config lies. `overrides` is what came by `--config`,
        which is refused: nested values arrive there as text.
        """
        if overrides:
            raise UserError(
                f"Values given with --config are not read: {', '.join(overrides)}.",
                fix="Write them into a small YAML file and add it: --configfile config/demo.yaml mine.yaml",
                code="config",
            )
        loaded = load_config([Path(f) for f in files] or [root / DEFAULT_CONFIG])
        w = loaded.config.workload
        kinds = prompts.kinds_of(prompts=w.prompts, seed=w.seed, kinds=w.kinds, context_tokens=w.context_tokens)
        known = prompts.kinds_of(prompts=w.prompts, seed=w.seed, kinds=None, context_tokens=w.context_tokens)
        matrix = resolve(loaded, kinds=kinds, known=known)
        needed = needs(
            prompts=w.prompts,
            seed=w.seed,
            kinds=w.kinds,
            context_tokens=w.context_tokens,
            requests=w.requests,
            max_tokens=w.max_tokens,
        )
        loaded.refuse(list(fit.problems(matrix, needed)))
        made = cls(replace(matrix, warnings=[*matrix.warnings, *fit.warnings(matrix, needed)]), loaded)
        require_writable(Path(made.results), "of the results", "give the config another `name`")
        require_writable(store_folder(), "of the measured cells", "name another folder in SPECDEC_STORE")
        return made

    def require_here(self, jobs: Iterable[tuple[str, Mapping[str, str]]], *, servers_here: bool) -> None:
        """Refuse a run that is about to begin if this machine lacks what it needs; ConfigError names file and line.

        `jobs` are the rules, with their wildcards, that are going to run: what is done already needs nothing any more.
        """
        planned = list(jobs)
        modes = list(dict.fromkeys(named["mode"] for rule, named in planned if rule == "session"))
        fetched = [named["checkpoint"] for rule, named in planned if rule == "checkpoint"]
        self.loaded.refuse(
            list(preflight.problems(self.matrix, modes=modes, checkpoints=fetched, servers_here=servers_here))
        )

    @property
    def remarks(self) -> list[str]:
        """What is to be told before a run begins although it may go on: a sentence each, with what to do about it."""
        return [f"{one.message} {one.hint}".strip() for one in self.matrix.warnings]

    @property
    def results(self) -> str:
        """Folder of the results, relative to where the workflow runs."""
        return self.matrix.results

    @property
    def modes(self) -> list[str]:
        """Names of the modes that run."""
        return list(self.matrix.sessions)

    @property
    def checkpoints(self) -> list[str]:
        """Names of the checkpoints that the modes use."""
        return sorted({name for roles in self.matrix.roles.values() for name in roles.values()})

    @property
    def own_traffic(self) -> list[str]:
        """The user's own prompts file, as an input of the prompts rule; empty when prompts are generated."""
        source = self.matrix.config.workload.prompts
        return [source] if source else []

    def code(self, stage: str) -> str:
        """Digest of the code of a stage, shortened: enough to notice a change."""
        return code.digest(stage)[:16]

    def session_spec(self, mode: str) -> str:
        """What a session of this mode depends on."""
        return self.matrix.session(mode)

    def session_inputs(self, mode: str) -> list[str]:
        """The prompts and the checkpoints that a session of this mode needs."""
        return [
            f"{self.results}/prompts.jsonl",
            *(f"{self.results}/checkpoints/{name}.json" for name in self.matrix.roles[mode].values()),
            *([f"{self.results}/image.json"] if self.image(mode) else []),
        ]

    def image(self, mode: str | None = None) -> str | None:
        """The image that this mode's containers run, or that of any mode; None when no container is started."""
        servers = [self.matrix.sessions[mode].server] if mode else [s.server for s in self.matrix.sessions.values()]
        return next((server.image for server in servers if server.launcher == "docker" and server.image), None)

    def cell_names(self) -> list[str]:
        """File stems of the cells of every session."""
        return [cell.name for cell in self.matrix.cells]

    @property
    def asked(self) -> Asked:
        """Which files of the results folder this config asks for."""
        return Asked.by(plan(self.matrix))

    def session_files(self) -> list[str]:
        """Every file of every session, in the order in which they run."""
        return [
            f"{self.results}/sessions/{mode}/r{replicate}/{name}.json"
            for mode, replicate in self.matrix.order
            for name in ["session", *self.cell_names()]
        ]

    def priority(self, mode: str, replicate: int) -> int:
        """Earlier slots have the higher priority, so that sessions run in the planned, interleaved order."""
        return priorities(self.matrix.order)[(mode, replicate)]

    def gpus(self, mode: str) -> int:
        """Measuring places a session takes: its GPUs, and one for a server on the CPU."""
        return max(1, self.matrix.sessions[mode].server.gpus)

    def checkpoint_spec(self, name: str) -> str:
        """What a checkpoint depends on."""
        return canonical(self.matrix.config.checkpoints[name])

    def resolved(self) -> str:
        """The config as resolved: what `config.resolved.json` holds."""
        return canonical(
            {
                "schema_version": 1,
                "config": self.matrix.config.model_dump(mode="json"),
                "sessions": {name: spec.model_dump(mode="json") for name, spec in self.matrix.sessions.items()},
                "order": [f"{mode}/r{replicate}" for mode, replicate in self.matrix.order],
                "plan": plan(self.matrix).model_dump(mode="json"),
                "warnings": [warning.model_dump(mode="json") for warning in self.matrix.warnings],
                "lab": __version__,
            }
        )
