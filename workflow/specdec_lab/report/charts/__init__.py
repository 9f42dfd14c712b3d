"""The charts of the report: one spec each for the interactive page and for the files beside it."""

from __future__ import annotations

from ..source import Results
from .acceptance import by_position
from .figure import Figure
from .gains import aggregate_gain, decode_speedup
from .identity import first_differences
from .latency import decode_share, first_token
from .style import ModeScale
from .sweeps import sweeps
from .timeline import timeline
from .tradeoff import tradeoff


def figures(results: Results) -> list[Figure]:
    """Every figure that these results have data for, in the order in which a reader asks."""
    scale = ModeScale(results.modes, results.baselines)
    found = [
        decode_speedup(results, scale),
        aggregate_gain(results, scale),
        tradeoff(results, scale),
        first_token(results, scale),
        decode_share(results, scale),
        by_position(results, scale),
        *sweeps(results),
        first_differences(results, scale),
        timeline(results, scale),
    ]
    return [figure for figure in found if figure is not None]
