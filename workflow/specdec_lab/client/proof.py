"""B5: how near the client was to its own limits while it measured a cell."""

from __future__ import annotations

from collections.abc import Sequence

from .. import quantities
from ..records.cell import ClientProof, Row
from .load import Offer

CEILING_SHARE = 0.5
"""A cell that needs more than this share of the self-test's ceiling is client-bound."""

CPU_SHARE = 0.8
"""A client that used more than this share of one core is client-bound."""

LAG_LIMIT_MS = 10.0
"""A loop that is later than this at its 99th percentile is client-bound: its stamps may be that late."""

LAG_LIMIT_KERNEL_MS = 50.0
"""The same where the kernel stamps: then lateness only delays the next request of a closed loop."""


def client_bound(
    *,
    chunks_s: float | None,
    ceiling: float | None,
    cpu_share: float | None,
    lag_ms: float | None,
    lag_limit_ms: float = LAG_LIMIT_MS,
) -> bool:
    """Whether the client itself, not the server, may have set the numbers."""
    near_ceiling = chunks_s is not None and ceiling is not None and chunks_s > CEILING_SHARE * ceiling
    busy = cpu_share is not None and cpu_share > CPU_SHARE
    late = lag_ms is not None and lag_ms > lag_limit_ms
    return near_ceiling or busy or late


def prove(offer: Offer, rows: Sequence[Row], *, cpu_s: float, selftest: ClientProof | None) -> ClientProof:
    """The proof of one cell. `cpu_s`: the process's CPU time while it ran; `selftest`: the machine's own."""
    ends = [exchange.ended_at for exchange in offer.exchanges]
    wall = max(ends) - offer.started_at if ends else 0.0
    chunks = sum(len(row.arrivals) for row in rows)
    chunks_s = chunks / wall if wall > 0 else None
    cpu_share = cpu_s / wall if wall > 0 else None
    lag = quantities.percentile(offer.lags, 99)
    lag_ms = lag * 1e3 if lag is not None else None
    known = selftest or ClientProof()
    return ClientProof(
        selftest_ttft_error_ms=known.selftest_ttft_error_ms,
        selftest_decode_error=known.selftest_decode_error,
        selftest_cpu_s_per_million=known.selftest_cpu_s_per_million,
        ceiling_chunks_s=known.ceiling_chunks_s,
        chunks_s=chunks_s,
        cpu_share=cpu_share,
        loop_lag_p99_ms=lag_ms,
        client_bound=client_bound(
            chunks_s=chunks_s,
            ceiling=known.ceiling_chunks_s,
            cpu_share=cpu_share,
            lag_ms=lag_ms,
            lag_limit_ms=LAG_LIMIT_KERNEL_MS if offer.stamped_by_kernel else LAG_LIMIT_MS,
        ),
    )
