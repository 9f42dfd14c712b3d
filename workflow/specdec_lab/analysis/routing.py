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


def routes(answer: WorkloadDecision) -> list[Route]:
    """Ranges of concurrency for one kind, from 1 on without gaps: what its sentence says, for a router.

    Outside the range that the mode is for the baseline serves. Empty for a mode decided by a request rate, which a
    router does not see.
    """

    def route(begin: int, end: int | None, speculative: bool) -> Route:
        mode = answer.mode if speculative and answer.mode else answer.baseline
        return Route(kind=answer.kind, from_concurrency=begin, to_concurrency=end, mode=mode, speculative=speculative)

    if not answer.speculative:
        return [route(1, None, False)]
    if answer.from_concurrency is None or answer.up_to is None:
        return []
    below = [route(1, answer.from_concurrency - 1, False)] if answer.from_concurrency > 1 else []
    return [*below, route(answer.from_concurrency, answer.up_to, True), route(answer.up_to + 1, None, False)]


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
    """vLLM's schedule per adopted method: the best paying K up to each measured load, 0 from where none pays on."""
    modes = {mode.name: mode for mode in comparison.plan.modes}
    found: list[DynamicK] = []
    for answer in workloads:
        mode = modes.get(answer.mode or "")
        if not answer.speculative or mode is None or not _fits(mode, comparison):
            continue
        schedule = _schedule(answer, mode, modes, comparison, pays)
        if schedule:
            found.append(
                DynamicK(method=mode.method or "", mode=mode.name, kind=answer.kind, schedule=schedule, caution=CAUTION)
            )
    if len(found) == len(workloads) > 1 and all(
        (one.mode, one.schedule) == (found[0].mode, found[0].schedule) for one in found
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
        ended = any(k for _, _, k in schedule) and schedule[-1][2] == 0
        outside = ended or concurrency < (answer.from_concurrency or 1)
        here = [row for row in rows if row.concurrency == concurrency and pays(row) and not outside]
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
