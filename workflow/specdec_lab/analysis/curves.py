"""Sweeps as curves: P50 decode and gain against K, context length or request rate (M15, M34)."""

from __future__ import annotations

from collections.abc import Iterable

from ..records.comparison import CellResult, Comparison, Curve, CurvePoint
from ..records.decision import Sweep

NEAR_BEST = 0.01
"""Points within this share of the best, or within the noise floor, are as good; the smallest x of them is named."""


def curves(comparison: Comparison) -> list[Curve]:
    """Every line of every sweep that the plan declares. Points that were not measured are left out, never 0."""
    found: list[Curve] = []
    for sweep in comparison.plan.sweeps:
        if sweep.axis == "k":
            found += _by_k(sweep, comparison.cells)
        elif sweep.axis == "context":
            found += _by_context(sweep, comparison.cells)
        else:
            found += _by_rate(sweep, comparison.cells)
    return [curve for curve in found if curve.points]


def _by_k(sweep: Sweep, rows: list[CellResult]) -> list[Curve]:
    places = dict.fromkeys((row.kind, row.load) for row in rows)
    return [
        _curve(
            sweep,
            kind,
            load,
            [
                (sweep.points[row.mode], row)
                for row in rows
                if (row.kind, row.load) == (kind, load) and row.mode in sweep.points
            ],
        )
        for kind, load in places
    ]


def _by_context(sweep: Sweep, rows: list[CellResult]) -> list[Curve]:
    """Kinds named `kind@tokens` are one workload at several context lengths: one curve per workload, mode and load."""
    lines = dict.fromkeys((row.kind.partition("@")[0], row.mode, row.load) for row in rows if row.kind in sweep.points)
    return [
        _curve(
            sweep.model_copy(update={"method": mode}),
            kind,
            load,
            [
                (sweep.points[row.kind], row)
                for row in rows
                if row.kind in sweep.points and (row.kind.partition("@")[0], row.mode, row.load) == (kind, mode, load)
            ],
        )
        for kind, mode, load in lines
    ]


def _by_rate(sweep: Sweep, rows: list[CellResult]) -> list[Curve]:
    lines = dict.fromkeys((row.kind, row.mode) for row in rows if row.load in sweep.points)
    return [
        _curve(
            sweep.model_copy(update={"method": mode}),
            kind,
            None,
            [
                (sweep.points[row.load], row)
                for row in rows
                if row.load in sweep.points and (row.kind, row.mode) == (kind, mode)
            ],
        )
        for kind, mode in lines
    ]


def _curve(sweep: Sweep, kind: str, load: str | None, points: Iterable[tuple[float, CellResult]]) -> Curve:
    measured = sorted(((x, row) for x, row in points if row.p50_decode_tok_s is not None), key=lambda one: one[0])
    return Curve(
        axis=sweep.axis,
        method=sweep.method,
        kind=kind,
        load=load,
        points=[
            CurvePoint(
                x=x,
                mode=row.mode,
                kind=row.kind,
                load=row.load,
                p50_decode_tok_s=row.p50_decode_tok_s,
                decode_speedup=row.decode.ratio if row.decode else None,
                agg_tok_s=row.agg_tok_s,
                aggregate_gain=row.aggregate.ratio if row.aggregate else None,
                acceptance_length=row.acceptance.acceptance_length if row.acceptance else None,
            )
            for x, row in measured
        ],
        best_x=_best(measured) if sweep.axis == "k" else None,
    )


def _best(measured: list[tuple[float, CellResult]]) -> float | None:
    rated = [(x, row.p50_decode_tok_s, row) for x, row in measured if row.p50_decode_tok_s]
    if not rated:
        return None
    best = max(speed for _, speed, _ in rated)
    floor = max(NEAR_BEST, *((row.decode.floor or 0.0) if row.decode else 0.0 for _, _, row in rated))
    return min(x for x, speed, _ in rated if speed * (1 + floor) >= best)
