"""The plan that judging reads: rules, modes from simple to demanding, expected cells, claims, sweeps."""

from __future__ import annotations

from ..records.base import canonical
from ..records.decision import Claim, DecisionRules, Plan, PlannedMode, Sweep
from .resolve import Matrix


def plan(matrix: Matrix) -> Plan:
    """What was asked for, in the terms of the analysis."""
    config = matrix.config
    rules = DecisionRules(
        margin=config.decision.margin,
        at=config.decision.concurrency or (min(config.load.concurrency) if config.load.concurrency else None),
        identical_share=config.decision.identical,
        noise_limit=config.decision.noise_limit,
        price_per_gpu_hour=config.cost.per_hour / max(config.engine.gpus, 1) if config.cost else None,
        gpus_priced=1 if config.cost else None,
        currency=config.cost.currency if config.cost else "USD",
    )
    modes = [
        PlannedMode(
            name=name,
            against=spec.against,
            replicates=matrix.replicates(name),
            placebo=spec.placebo,
            lossy=spec.lossy,
            method=spec.server.method,
            k=spec.server.draft_length,
        )
        for name, spec in matrix.sessions.items()
    ]
    claims = [
        Claim(mode=c.mode, text=f"{c.speedup:g}x", speedup=c.speedup, kind=c.kind, source=c.source)
        for c in config.claims
    ]
    return Plan(
        name=config.name, rules=rules, modes=modes, cells=matrix.cells, claims=claims, sweeps=_sweeps(matrix, modes)
    )


def _sweeps(matrix: Matrix, modes: list[PlannedMode]) -> list[Sweep]:
    """Modes that differ in one number only. Two n-gram modes with other match lengths are no curve over K."""
    out: list[Sweep] = []
    alike: dict[tuple[str, str], dict[str, float]] = {}
    for mode in modes:
        if mode.method is not None and mode.k is not None and not mode.placebo:
            rest = canonical(matrix.sessions[mode.name].server.apart_from_draft_length)
            alike.setdefault((mode.method, rest), {})[mode.name] = float(mode.k)
    curves = [(method, points) for (method, _), points in alike.items() if len(set(points.values())) > 1]
    several = {method for method, _ in curves if sum(method == other for other, _ in curves) > 1}
    for method, points in curves:
        label = f"{method} ({', '.join(points)})" if method in several else method
        out.append(Sweep(axis="k", method=label, points=points))
    contexts = {cell.kind: float(cell.kind.split("_ctx")[1]) for cell in matrix.cells if "_ctx" in cell.kind}
    if contexts:
        out.append(Sweep(axis="context", method="context", points=contexts))
    rates = {cell.load.label: cell.load.rate for cell in matrix.cells if cell.load.rate is not None}
    if len(rates) > 1:
        out.append(Sweep(axis="rate", method="rate", points=rates))
    return out
