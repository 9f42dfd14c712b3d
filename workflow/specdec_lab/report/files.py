"""Files that every report writes, whatever the results hold; light, because the workflow reads it to declare them."""

from __future__ import annotations

CHARTS = {
    "decode_speedup": "Decode speedup against concurrency",
    "aggregate_gain": "Throughput gain against concurrency",
    "throughput_per_user": "Throughput against per-user speed",
    "first_token": "Time to first token",
    "acceptance": "Acceptance by draft position",
}
"""Name -> title of the charts that are always there; without data such a chart says so."""

NUMBERS = "specdec.prom"
"""The results for a textfile collector (M38)."""
