"""Which metric means what, per engine: a table that engines fill in and the window reads."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class MetricNames:
    """Names of counters without `_total`; several names for one quantity are aliases of different versions (case B8).

    All are counters unless said otherwise; a histogram of the same name is never read as a counter (case B1).
    """

    drafts: tuple[str, ...] = ()
    draft_tokens: tuple[str, ...] = ()
    accepted_tokens: tuple[str, ...] = ()
    accepted_per_position: tuple[str, ...] = ()
    """With a label `position`."""
    prompt_tokens: tuple[str, ...] = ()
    generation_tokens: tuple[str, ...] = ()
    requests_finished: tuple[str, ...] = ()
    prefix_cache_queries: tuple[str, ...] = ()
    prefix_cache_hits: tuple[str, ...] = ()
    preemptions: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    """Gauge: requests in progress; the window is closed when it is 0."""
    verify_calls: tuple[str, ...] = ()
    """SGLang: verification passes; generation tokens / verify calls is its acceptance length over a window."""
    process_start: tuple[str, ...] = ("process_start_time_seconds",)
    others: tuple[str, ...] = field(default=())
    """Further counters whose deltas are kept for the reader."""
    always_shown: bool = False
    """The engine shows its speculation counters, at 0, without speculation too; so their presence proves nothing."""
    publish_lag_s: float = 1.5
    """How long after the last token a counter may still move; two scrapes must agree over at least this time (B5)."""
    off_hint: str = ""
    """What to do when a server of this engine shows no metrics at all."""
