"""One server lifetime: lock, launch, ready, cells in order, stop, proof that nothing is left (M8, M19, M26)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from .. import __version__, launchers
from ..checkpoints import Checkpoint
from ..counters.scrape import scrape
from ..engines import context
from ..engines.base import Engine
from ..launchers.base import Running
from ..provenance import hardware
from ..provenance.host import host
from ..provenance.redact import redact
from ..records.base import Finding
from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.session import ServerLifetime
from ..records.spec import CellSpec, SessionSpec
from ..records.stack import Engine as EngineFacts
from ..records.stack import Stack
from . import devices, launch, ready
from .guard import Guard
from .measure import CellAborted, CellJob, Target, measure_cell
from .proof import proof
from .store import Store
from .watch import Watch

Say = Callable[[str], None]


@dataclass(frozen=True)
class MissingCell:
    """A cell that is not in the store: what to send, and the key it will have."""

    spec: CellSpec
    prompts: Sequence[Prompt]
    key: str
    digests: Mapping[str, str]


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
        """The server's log, beside the results from its first line on."""
        return self.folder / "server.log"


@dataclass
class _Live:
    """A server that is up, and the record of it as it grows."""

    running: Running
    target: Target
    lifetime: ServerLifetime
    findings: list[Finding] = field(default_factory=list)


def measure(job: Job, cells: Sequence[MissingCell], guard: Guard, say: Say) -> None:
    """Start the server, measure the cells, stop it. Each cell is in the store as soon as it is complete.

    Whatever ends this early (a signal, a dead server, a failed cell), the server is stopped and its log kept.
    """
    watch = Watch(job.mode, job.replicate, total=len(cells), say=say)
    tell = told(job.mode, job.replicate, say)
    with devices.held(job.spec.server.gpus, tell) as held, _server(job, held, guard, tell) as live:
        for order, cell in enumerate(cells):
            try:
                measured = measure_cell(_cell_job(job, cell), live.target, live.lifetime, order, watch, guard)
            except CellAborted as error:
                error.partial.write(job.folder / "partial" / f"{cell.spec.name}.json")
                guard.check()
                raise
            _refuse_spoilt(live.running)
            job.store.put(measured)
            live.lifetime = live.lifetime.model_copy(update={"cells": [*live.lifetime.cells, cell.spec.name]})
            job.store.put_lifetime(live.lifetime)
            watch.done(measured)


def told(mode: str, replicate: int, say: Say) -> Say:
    """`say` with the session's name before each line: two sessions may wait side by side, one on each GPU."""

    def tell(text: str) -> None:
        say(f"{mode} r{replicate}: {text}")

    return tell


def _refuse_spoilt(running: Running) -> None:
    """A cell that was measured while the server lost its GPU is not used (case C1)."""
    fault = running.fault()
    if fault is not None:
        raise UserError(
            f"The cell cannot be used: {fault}.",
            place=running.base_url,
            fix="See the container toolkit's notes on systemd and cgroups; run the same command again.",
            code="no_gpu_runtime",
        )


def _cell_job(job: Job, cell: MissingCell) -> CellJob:
    return CellJob(job.mode, job.replicate, job.spec, cell.spec, cell.prompts, cell.key, cell.digests)


@contextmanager
def _server(job: Job, held: Sequence[str], guard: Guard, say: Say) -> Iterator[_Live]:
    """A ready server; when this is left it is stopped and proven gone, and its memory is back."""
    launcher = launchers.get(job.spec.server.launcher)
    for removed in launcher.sweep():
        say(f"removed what an earlier run left behind: {removed}")
    before = devices.require_idle(held)
    identity = f"{job.mode}-r{job.replicate}-{uuid.uuid4().hex[:12]}"
    _keep_earlier_log(job.log)
    say("starting the server")
    started, start = now(), time.monotonic()
    running = launcher.start(launch.plan(job.spec.server, job.engine, job.checkpoints, identity, job.log, held))
    live: _Live | None = None
    try:
        try:
            live = _make_ready(job, running, identity, started, start, held, guard, say)
            yield live
            if job.engine.metrics_path is not None:
                _keep(job, live, "metrics.prom", scrape(running.base_url + job.engine.metrics_path))
        except UserError:
            # Whatever could not be read or reached: if the server is gone, that is why.
            if (end := running.exited()) is not None:
                raise ready.ServerDied(end) from None
            raise
    finally:
        running.stop(job.spec.server.stop_timeout_s)
        _redact_log(job.log)
        if live is not None:
            facts = job.engine.facts(ready.read_log(job.log))
            update: dict[str, object] = {"stopped_at": now(), "facts": {**live.lifetime.facts, **facts}}
            live.lifetime = live.lifetime.model_copy(update=update)
            job.store.put_lifetime(live.lifetime)
            if job.log.exists():
                _keep(job, live, "server.log", job.log.read_text(encoding="utf-8", errors="replace"))
    devices.require_released(held, before, say)


def _make_ready(
    job: Job,
    running: Running,
    identity: str,
    started: str,
    start: float,
    held: Sequence[str],
    guard: Guard,
    say: Say,
) -> _Live:
    spec, engine = job.spec.server, job.engine
    ready.wait_until_healthy(running, engine, spec.ready_timeout_s, say)
    ready.prove_ours(running)
    model = engine.served_model(spec, launch.seen(spec, job.checkpoints))
    extra: dict[str, JsonValue] = {**engine.body_extra(spec), **job.spec.sampling.extra}
    ready.first_completion(running.base_url, model, extra, timeout_s=min(300.0, spec.ready_timeout_s))
    took = time.monotonic() - start
    facts = engine.facts(ready.read_log(job.log))
    version = ready.check_version(engine, spec, running.base_url, facts)
    metrics = running.base_url + engine.metrics_path if engine.metrics_path is not None else None
    if metrics is not None:
        ready.check_speculation(metrics, engine, spec, facts)
    say(f"server ready after {took:.1f} s")
    other_context = context.changed(engine, spec, facts)
    if other_context is not None:
        say(other_context)
    lifetime = ServerLifetime(
        id=identity,
        started_at=started,
        ready_s=took,
        argv=[redact(word) for word in launch.argv(spec, engine, job.checkpoints)],
        facts=facts,
        stack=_stack(job, running, version, facts, held),
    )
    job.store.put_lifetime(lifetime)

    def death() -> str | None:
        end = running.exited()
        return guard.reason() if end is None else str(ready.ServerDied(end))

    target = Target(
        base_url=running.base_url,
        model=model,
        extra=extra,
        metrics_url=metrics,
        names=engine.metric_names,
        death=death,
        selftest=proof(),
        devices=held,
    )
    return _Live(running, target, lifetime)


def _stack(
    job: Job, running: Running, version: str | None, facts: Mapping[str, JsonValue], held: Sequence[str]
) -> Stack:
    spec = job.spec.server
    known = running.facts()
    build = facts.get("build")
    return Stack(
        host=host(),
        gpus=hardware.gpus(held),
        driver=hardware.driver() if held else None,
        cuda=hardware.cuda() if held else None,
        engine=EngineFacts(
            software=spec.engine,
            version=version,
            build=build if isinstance(build, str) else None,
            image=spec.image,
            image_digest=known.get("image_digest") or spec.image_digest,
            packages=running.packages(),
        ),
        checkpoints={role: checkpoint.digest for role, checkpoint in job.checkpoints.items()},
        lab=__version__,
    )


def now() -> str:
    """The wall clock, for people; durations are never taken from it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _keep_earlier_log(log: Path) -> None:
    """The log of an earlier try is evidence: it moves aside instead of being overwritten."""
    if not log.exists():
        return
    number = 1
    while (aside := log.with_name(f"server.{number}.log")).exists():
        number += 1
    log.rename(aside)


def _keep(job: Job, live: _Live, name: str, text: str) -> None:
    folder = job.store.lifetime_folder(live.lifetime.id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(redact(text), encoding="utf-8")


def _redact_log(path: Path) -> None:
    """A server may print its environment; no secret stays in a log (case E9)."""
    if not path.exists():
        return
    text = path.read_text(encoding="utf-8", errors="replace")
    clean = redact(text)
    if clean != text:
        path.write_text(clean, encoding="utf-8")
