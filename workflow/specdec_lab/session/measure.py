"""One cell on a ready server: warm up, counters, requests, counters (M22-M26). What a number depends on is in here and
in what this imports, and nothing else: its digest is part of every cell's key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from .. import prompts as workload
from ..client.measure import Client, Measured
from ..client.request import Endpoint
from ..counters import scrape
from ..counters.names import MetricNames
from ..counters.window import unavailable, window
from ..records.cell import Cell, ClientProof, CounterWindow, GpuSample
from ..records.base import Finding
from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.session import ServerLifetime
from ..records.spec import CellSpec, SessionSpec
from ..records.stack import Stack
from .watch import Watch

Say = Callable[[str], None]
SETTLE_S = 20.0
"""How long the counters may take to come to rest after the last answer (case B5)."""


@dataclass(frozen=True)
class Target:
    """A server that is ready to be measured."""

    base_url: str
    model: str
    extra: Mapping[str, JsonValue]
    metrics_url: str | None
    names: MetricNames
    death: Callable[[], str | None]
    """A sentence when the server has ended; asked while requests are under way."""
    selftest: ClientProof | None
    devices: Sequence[str] = field(default_factory=list)


@dataclass(frozen=True)
class CellJob:
    """One cell to be measured: where it belongs and what it sends."""

    mode: str
    replicate: int
    session: SessionSpec
    cell: CellSpec
    prompts: Sequence[Prompt]
    key: str
    digests: Mapping[str, str]


def measure_cell(job: CellJob, target: Target, lifetime: ServerLifetime, order: int, progress: Watch) -> Cell:
    """Measure one cell. UserError if the server dies in it or every request fails; nothing is kept of it then."""
    cell, session = job.cell, job.session
    with Client(Endpoint(target.base_url, target.model)) as client:
        warm = _send(client, job, target, workload.warmup_for(cell.kind, cell.warmup, list(job.prompts)), None)
        _refuse_dead(warm, job, "warm-up")
        before = _counters(target)
        with progress.gpu(target.devices) as samples:
            measured = _send(client, job, target, job.prompts, progress.cell(cell.name, len(job.prompts)))
        counters = _window(target, before, speculative=session.server.speculative is not None)
    _refuse_dead(measured, job, "measurement")
    return Cell(
        key=job.key,
        mode=job.mode,
        replicate=job.replicate,
        cell=cell,
        session=session,
        digests=dict(job.digests),
        stack=lifetime.stack,
        server=lifetime.id,
        order=order,
        started_at=measured.started_at,
        warnings=_warnings(measured, cell, job.prompts),
        summary=measured.summary,
        counters=counters,
        client=measured.client,
        gpu=samples.readings,
        energy_j=samples.energy_j,
        warmup={"requests": len(warm.rows), "failed": warm.summary.failed, "p50_ttft_s": warm.summary.p50_ttft_s},
        rows=measured.rows,
    )


def _send(
    client: Client,
    job: CellJob,
    target: Target,
    chosen: Sequence[Prompt],
    on_progress: Callable[[int, int], None] | None,
) -> Measured:
    return client.measure(
        chosen,
        job.cell.load,
        sampling=job.session.sampling,
        deadlines=job.session.deadlines,
        max_tokens=job.cell.max_tokens,
        ignore_eos=job.cell.ignore_eos,
        extra_body=target.extra,
        objective=job.session.objective,
        on_progress=on_progress,
        give_up=target.death,
        selftest=target.selftest,
    )


def _refuse_dead(measured: Measured, job: CellJob, part: str) -> None:
    """A cell in which the server died or nothing succeeded is a failure of the mode, not a row of zeros (case C2)."""
    failed = [row for row in measured.rows if row.status == "failed"]
    if measured.aborted is None and len(failed) < len(measured.rows):
        return
    reasons = sorted({f"{row.reason}: {row.message}" if row.message else str(row.reason) for row in failed})
    raise UserError(
        f"The {part} of {job.cell.name} failed: {measured.aborted or 'every request failed'}"
        f" ({len(failed)} of {len(measured.rows)} requests; {'; '.join(reasons[:3])[:600]}).",
        place=f"mode {job.mode}, replicate {job.replicate}",
        fix="Look at the server's log; the cells before this one are kept.",
        code="cell_failed",
    )


def _counters(target: Target) -> str | None:
    if target.metrics_url is None:
        return None
    return scrape.settle(target.metrics_url, target.names, limit_s=SETTLE_S).text


def _window(target: Target, before: str | None, *, speculative: bool) -> CounterWindow:
    if target.metrics_url is None or before is None:
        return unavailable(speculative=speculative)
    after = scrape.settle(target.metrics_url, target.names, limit_s=SETTLE_S)
    made = window(before, after.text, target.names, speculative=speculative)
    return made.model_copy(update={"settled": after.settled, "findings": [*made.findings, *after.findings]})


def _warnings(measured: Measured, cell: CellSpec, sent: Sequence[Prompt]) -> list[Finding]:
    out = []
    if cell.requests is not None and len(sent) < cell.requests:
        out.append(
            Finding(
                code="fewer_prompts",
                severity="info",
                message=f"{cell.requests} requests were asked for, the workload has {len(sent)} prompts of this kind.",
                hint="Lower workload.requests or add prompts; none is sent twice.",
            )
        )
    if measured.summary.failed:
        out.append(
            Finding(
                code="failed_requests",
                message=f"{measured.summary.failed} of {measured.summary.requests} requests failed.",
                hint="Their reasons stand in the cell's rows; they count in no speed.",
            )
        )
    return out


def stack_digests(stack: Stack) -> dict[str, str]:
    """The checkpoints of a stack, by role, for the envelope."""
    return {f"checkpoint.{role}": value for role, value in stack.checkpoints.items()}
