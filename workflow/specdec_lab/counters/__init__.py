"""The server's own counters: scrape, change over a window, acceptance (M4).

Take the first scrape after the warm-up and the last from `settle`; hand both to `window`. Finding codes:
`unreadable_line`, `counter_unreadable`, `duplicate_series`, `aliases_disagree`, `metric_missing`, `no_engine_metrics`,
`no_metrics`, `scrape_empty`, `server_restarted`, `prefix_cache_inconsistent`, `speculation_absent`,
`speculation_not_exercised`, `speculation_in_baseline`, `acceptance_inconsistent`, `acceptance_selfcheck`,
`acceptance_estimated`, `counters_not_settled`.
"""

from __future__ import annotations

from .names import MetricNames
from .scrape import Settled, scrape, settle
from .tables import TABLES
from .window import unavailable, window

__all__ = ["TABLES", "MetricNames", "Settled", "scrape", "settle", "unavailable", "window"]
