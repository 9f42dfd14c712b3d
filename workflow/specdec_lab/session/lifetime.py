"""One server lifetime: lock, launch, ready, cells in order, stop, proof that nothing is left (M8, M19, M26)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__, launchers
from ..checkpoints import Checkpoint
from ..counters.scrape import scrape
from ..engines.base import Engine
from ..launchers.base import LaunchPlan, Running
from ..provenance import hardware, host
from ..provenance.redact import redact
from ..records.prompt import Prompt
from ..records.session import ServerLifetime
from ..records.spec import CellSpec, SessionSpec
from ..records.stack import Engine as EngineFacts
from ..records.stack import Stack
from . import devices, ports, ready
from .measure import Target, measure_cell
from .store import Store

Say = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """What one job measures, and where it keeps it."""

    mode: str
    replicate: int
    spec: SessionSpec
    engine: Engine
    checkpoints: Mapping[str, Checkpoint]
    folder: Path
    store: Store

    @property
    def log(self) -> Path:
        """The server's log of this try, beside the results from its first line on."""
        return self.folder / "server.log"


def measure(job: Job, cells: Sequence[tuple[CellSpec, list[Prompt], str]], say: Say) -> None:
    """Start the server, measure the cells, stop it. Each cell is in the store as soon as it is complete."""
    launcher = launchers.get(job.spec.server.launcher)
    with devices.held(job.spec.server.gpus, say) as held:
        for removed in launcher.sweep():
            say(f"removed what an earlier run left behind: {removed}")
        devices.require_free(held)
        identity = f"{job.mode}-r{job.replicate}-{uuid.uuid4().hex[:12]}"
        keep_earlier_log(job.log)
        started, start = now(), time.monotonic()
        running = launcher.start(_plan(job, identity, held.ids))
        try:
            target = _ready(job, running, say)
            lifetime = _lifetime(job, identity, running, target, started, time.monotonic() - start, held)
            say(f"{job.mode} r{job.replicate}: server ready after {lifetime.ready_s:.1f} s")
            for order, (cell, prompts, key) in enumerate(cells):
                measured = measure_cell(
                    job.mode, job.replicate, job.spec, cell, prompts, key, target, lifetime, order, say
                )
                job.store.put(measured)
                lifetime = lifetime.model_copy(update={"cells": [*lifetime.cells, cell.name]})
                job.store.put_lifetime(lifetime)
            if job.engine.metrics_path is not None:
                _keep(job, lifetime.id, "metrics.prom", scrape(target.base_url + job.engine.metrics_path))
        finally:
            running.stop(job.spec.server.stop_timeout_s)
            if job.log.exists():
                _redact_file(job.log)
        devices.require_released(held, say)
    lifetime = lifetime.model_copy(update={"stopped_at": now(), "facts": job.engine.facts(ready.read_log(job.log))})
    job.store.put_lifetime(lifetime)
    if job.log.exists():
        _keep(job, lifetime.id, "server.log", job.log.read_text(encoding="utf-8", errors="replace"))


def now() -> str:
    """The wall clock, for people; durations are never taken from it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def keep_earlier_log(log: Path) -> None:
    """The log of an earlier try is evidence: it moves aside instead of being overwritten."""
    if not log.exists():
        return
    number = 1
    while (aside := log.with_name(f"server.{number}.log")).exists():
        number += 1
    log.rename(aside)


def _plan(job: Job, identity: str, devices_held: Sequence[str]) -> LaunchPlan:
    server, engine = job.spec.server, job.engine
    return launchers.plan(
        server,
        engine,
        {role: checkpoint.path for role, checkpoint in job.checkpoints.items()},
        name=f"specdec-{identity}",
        log=job.log,
        port=ports.free(),
        devices=list(devices_held),
    )


def _ready(job: Job, running: Running, say: Say) -> Target:
    spec, engine = job.spec.server, job.engine
    ready.wait_until_healthy(running, engine, spec.ready_timeout_s, say)
    ready.prove_ours(running)
    model = engine.served_model(spec, launchers.seen_paths(spec, {r: c.path for r, c in job.checkpoints.items()}))
    extra = {**engine.body_extra(spec), **job.spec.sampling.extra}
    ready.first_completion(running.base_url, model, extra, timeout_s=min(300.0, spec.ready_timeout_s))
    end = running.exited()
    if end is not None:
        raise ready.ServerDied(end)
    return Target(base_url=running.base_url, model=model, engine=engine, extra=extra, running=running)


def _lifetime(
    job: Job, identity: str, running: Running, target: Target, started: str, took: float, held: devices.Held
) -> ServerLifetime:
    spec = job.spec.server
    facts = job.engine.facts(ready.read_log(job.log))
    version = ready.check_version(job.engine, spec, running.base_url, facts)
    known = running.facts()
    stack = Stack(
        host=host.host(),
        gpus=hardware.gpus(held.ids),
        driver=hardware.driver(),
        engine=EngineFacts(
            software=spec.engine,
            version=version,
            build=str(facts["build"]) if "build" in facts else None,
            image=spec.image,
            image_digest=known.get("image_digest") or spec.image_digest,
            packages=running.packages(),
        ),
        checkpoints={role: checkpoint.digest for role, checkpoint in job.checkpoints.items()},
        lab=__version__,
    )
    lifetime = ServerLifetime(
        id=identity,
        started_at=started,
        ready_s=took,
        argv=[redact(word) for word in running.argv],
        facts=facts,
        stack=stack,
    )
    job.store.put_lifetime(lifetime)
    return lifetime


def _keep(job: Job, identity: str, name: str, text: str) -> None:
    folder = job.store.lifetime_folder(identity)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(redact(text), encoding="utf-8")


def _redact_file(path: Path) -> None:
    """A server may print its environment; no secret stays in a log (E9)."""
    text = path.read_text(encoding="utf-8", errors="replace")
    clean = redact(text)
    if clean != text:
        path.write_text(clean, encoding="utf-8")
