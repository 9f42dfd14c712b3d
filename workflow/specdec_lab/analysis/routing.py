"""B7, M32: routes that a router can execute, and vLLM's own dynamic draft length where it fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..records.comparison import CellResult, Comparison
from ..records.decision import DynamicK, PlannedMode, Route, WorkloadDecision

DYNAMIC_METHODS = frozenset({"ngram", "eagle", "eagle3", "mtp", "draft_model", "dflash"})
"""Methods for which vLLM 0.33 takes `num_speculative_tokens_per_batch_size`."""
MAX_BATCH = 1024
"""End of the last range when the server's max-num-seqs is not given."""
CAUTION = (
    "Measured at the context lengths of this workload only: the best K falls with longer contexts (vLLM issue 48627). "
    "Not available with data parallelism; the V1 runner then captures CUDA graphs piecewise."
)


def routes(answer: WorkloadDecision, winners: Mapping[str, CellResult], comparison: Comparison) -> list[Route]:
    """Ranges of concurrency per kind, from 1 on without gaps; beyond what was measured the baseline serves.

    A load that was measured answers for the concurrencies from just above the next lower load up to itself.
    """
    loads = sorted(
        {
            (row.concurrency, row.load)
            for row in comparison.cells
            if row.kind == answer.kind and row.concurrency is not None and answer.baseline in (row.mode, row.against)
        }
    )
    found: list[Route] = []
    begin = 1
    for concurrency, label in loads:
        winner = winners.get(label)
        mode = winner.mode if winner is not None else answer.baseline
        if found and found[-1].mode == mode:
            found[-1] = found[-1].model_copy(update={"to_concurrency": concurrency})
        else:
            found.append(
                Route(
                    kind=answer.kind,
                    from_concurrency=begin,
                    to_concurrency=concurrency,
                    mode=mode,
                    speculative=winner is not None,
                )
            )
        begin = concurrency + 1
    if found and not found[-1].speculative:
        found[-1] = found[-1].model_copy(update={"to_concurrency": None})
    elif found:
        found.append(
            Route(
                kind=answer.kind, from_concurrency=begin, to_concurrency=None, mode=answer.baseline, speculative=False
            )
        )
    return found


def batch_routes(answer: WorkloadDecision) -> list[Route]:
    """M31: where work that nobody waits for goes, if the answer for it is another one."""
    if answer.batch_mode is None or answer.batch_mode == answer.mode:
        return []
    return [
        Route(
            kind=answer.kind,
            from_concurrency=1,
            to_concurrency=None,
            mode=answer.batch_mode,
            speculative=answer.batch_mode != answer.baseline,
            interactive=False,
        )
    ]


def dynamic_k(
    workloads: Sequence[WorkloadDecision], comparison: Comparison, pays: Callable[[CellResult], bool]
) -> list[DynamicK]:
    """vLLM's schedule per adopted method: the best paying K up to each measured load, 0 beyond the last that pays."""
    modes = {mode.name: mode for mode in comparison.plan.modes}
    found: list[DynamicK] = []
    for answer in workloads:
        mode = modes.get(answer.mode or "")
        if not answer.speculative or mode is None or not _fits(mode, comparison):
            continue
        schedule = _schedule(answer, mode, modes, comparison, pays)
        if schedule:
            found.append(DynamicK(method=mode.method or "", kind=answer.kind, schedule=schedule, caution=CAUTION))
    if len(found) == len(workloads) > 1 and all(
        (one.method, one.schedule) == (found[0].method, found[0].schedule) for one in found
    ):
        return [found[0].model_copy(update={"kind": None})]
    return found


def _fits(mode: PlannedMode, comparison: Comparison) -> bool:
    spec = comparison.specs.get(mode.name)
    if spec is None or spec.server.engine not in ("vllm", "nim") or mode.k is None:
        return False
    parallel = spec.server.args.get("data-parallel-size", spec.server.args.get("data_parallel_size", 1))
    return mode.method in DYNAMIC_METHODS and parallel in (1, "1")


def _schedule(
    answer: WorkloadDecision,
    mode: PlannedMode,
    modes: Mapping[str, PlannedMode],
    comparison: Comparison,
    pays: Callable[[CellResult], bool],
) -> list[tuple[int, int, int]]:
    rows = [
        row
        for row in comparison.cells
        if row.kind == answer.kind
        and row.concurrency is not None
        and row.against == answer.baseline
        and modes[row.mode].method == mode.method
    ]
    schedule: list[tuple[int, int, int]] = []
    begin = 1
    for concurrency in sorted({row.concurrency for row in rows if row.concurrency is not None}):
        here = [row for row in rows if row.concurrency == concurrency and pays(row)]
        best = max(here, key=lambda row: (row.decode.ratio or 0.0) if row.decode else 0.0, default=None)
        k = (modes[best.mode].k or 0) if best is not None else 0
        _extend(schedule, begin, concurrency, k)
        begin = concurrency + 1
    if not any(k for _, _, k in schedule):
        return []
    server = comparison.specs[mode.name].server
    limit = server.args.get("max-num-seqs", server.args.get("max_num_seqs"))
    end = limit if isinstance(limit, int) and not isinstance(limit, bool) else MAX_BATCH
    if end >= begin:
        _extend(schedule, begin, end, 0)
    return schedule


def _extend(schedule: list[tuple[int, int, int]], begin: int, end: int, k: int) -> None:
    if schedule and schedule[-1][2] == k:
        schedule[-1] = (schedule[-1][0], end, k)
    else:
        schedule.append((begin, end, k))
