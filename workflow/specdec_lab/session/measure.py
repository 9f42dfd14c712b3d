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
from ..counters.names import MetricNames
from ..counters.scrape import Settled, settle
from ..counters.window import between, unavailable
from ..records.base import Finding
from ..records.cell import Cell, ClientProof, CounterWindow
from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.session import ServerLifetime
from ..records.spec import CellSpec, SessionSpec
from .guard import Guard
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


class CellAborted(UserError):
    """A cell that could not be completed; `partial` is what was measured until then, marked as such."""

    def __init__(self, partial: Cell, cause: str) -> None:
        super().__init__(
            cause,
            place=f"mode {partial.mode}, replicate {partial.replicate}, cell {partial.cell.name}",
            fix="Look at the server's log. Cells that were complete are kept; this one is under partial/.",
            code="cell_aborted",
        )
        self.partial = partial


def measure_cell(
    job: CellJob, target: Target, lifetime: ServerLifetime, order: int, watch: Watch, guard: Guard
) -> Cell:
    """Measure one cell. CellAborted (with what there is) if the server dies in it, if requests fail in a row, or if
    every request fails: that is a failure of the mode, not a row of zeros (case C2)."""
    cell, session = job.cell, job.session
    with guard.deferred(), Client(Endpoint(target.base_url, target.model)) as client:
        warm = _send(client, job, target, workload.warmup_for(cell.kind, cell.warmup, list(job.prompts)), None)
        if _died(warm):
            raise _aborted(job, lifetime, order, warm, unavailable(speculative=False), "The warm-up failed")
        before = _counters(target)
        with watch.gpu(target.devices) as samples:
            measured = _send(client, job, target, job.prompts, watch.cell(cell.name))
        if _died(measured):
            raise _aborted(job, lifetime, order, measured, unavailable(speculative=False), "The cell was aborted")
        counters = _window(target, before, speculative=session.server.speculative is not None)
    complete = _cell(job, lifetime, order, measured, counters)
    return complete.model_copy(
        update={
            "gpu": samples.readings,
            "energy_j": samples.energy_j,
            "warmup": {
                "requests": len(warm.rows),
                "failed": warm.summary.failed,
                "p50_ttft_s": warm.summary.p50_ttft_s,
            },
        }
    )


def _died(measured: Measured) -> bool:
    """Aborted, or nothing succeeded."""
    return measured.aborted is not None or all(row.status == "failed" for row in measured.rows)


def _aborted(
    job: CellJob, lifetime: ServerLifetime, order: int, measured: Measured, counters: CounterWindow, what: str
) -> CellAborted:
    failed = [row for row in measured.rows if row.status == "failed"]
    reasons = sorted({f"{row.reason}: {row.message}" if row.message else str(row.reason) for row in failed})
    cause = (
        f"{what}: {measured.aborted or 'every request failed'} ({len(failed)} of {len(measured.rows)} requests failed"
    )
    cause += f"; {'; '.join(reasons[:3])[:600]})." if reasons else ")."
    partial = _cell(job, lifetime, order, measured, counters)
    return CellAborted(
        partial.model_copy(update={"summary": partial.summary.model_copy(update={"completed": False})}), cause
    )


def _cell(job: CellJob, lifetime: ServerLifetime, order: int, measured: Measured, counters: CounterWindow) -> Cell:
    return Cell(
        key=job.key,
        mode=job.mode,
        replicate=job.replicate,
        cell=job.cell,
        session=job.session,
        digests=dict(job.digests),
        stack=lifetime.stack,
        server=lifetime.id,
        order=order,
        started_at=measured.started_at,
        warnings=_warnings(measured, job.cell, job.prompts),
        summary=measured.summary,
        counters=counters,
        client=measured.client,
        rows=measured.rows,
    )


def _send(
    client: Client,
    job: CellJob,
    target: Target,
    chosen: Sequence[Prompt],
    on_progress: Callable[[int, int, int], None] | None,
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


def _counters(target: Target) -> Settled | None:
    if target.metrics_url is None:
        return None
    return settle(target.metrics_url, target.names, limit_s=SETTLE_S)


def _window(target: Target, before: Settled | None, *, speculative: bool) -> CounterWindow:
    if target.metrics_url is None or before is None:
        return unavailable(speculative=speculative)
    after = settle(target.metrics_url, target.names, limit_s=SETTLE_S)
    return between(before, after, target.names, speculative=speculative)


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
