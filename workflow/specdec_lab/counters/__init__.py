"""The server's own counters: scrape, change over a window, acceptance (M4).

Take both ends from `settle`, the first after the warm-up, and hand them to `between` (two texts: to `window`). Finding
codes, those of the acceptance being about the drafts' counters alone:
`unreadable_line`, `counter_unreadable`, `duplicate_series`, `aliases_disagree`, `metric_missing`, `no_engine_metrics`,
`no_metrics`, `scrape_empty`, `server_restarted`, `prefix_cache_inconsistent`, `speculation_absent`,
`speculation_not_exercised`, `speculation_in_baseline`, `acceptance_inconsistent`, `acceptance_selfcheck`,
`acceptance_estimated`, `counters_not_settled`.
"""

from __future__ import annotations

from .names import MetricNames
from .scrape import Settled, scrape, settle
from .tables import TABLES
from .window import between, unavailable, window

__all__ = ["TABLES", "MetricNames", "Settled", "between", "scrape", "settle", "unavailable", "window"]
