"""What two bundles stand on, fact by fact, so that a difference in speed is never read without it (M10, M37)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping

from ..records.base import canonical
from ..records.comparison import Comparison
from ..records.spec import SessionSpec
from ..records.stack import Stack
from .difference import StackChange

Facts = dict[tuple[str, str], str | None]
"""(where, fact) -> value, as text."""


def changes(a: Facts, b: Facts) -> list[StackChange]:
    """Every fact that is not the same in both, in the order of its kind."""
    order = {where: place for place, where in enumerate(dict.fromkeys(where for where, _ in [*a, *b]))}
    return [
        StackChange(where=where, fact=fact, a=a.get((where, fact)), b=b.get((where, fact)))
        for where, fact in sorted(set(a) | set(b), key=lambda key: (order[key[0]], key[1]))
        if a.get((where, fact)) != b.get((where, fact))
    ]


def facts(comparison: Comparison, digests: Mapping[str, str], modes: Container[str]) -> Facts:
    """The facts of one bundle. `digests` are those of its cells' envelopes that all cells share (code, hardware).

    `modes`: those whose flags count. A mode that only one bundle has is no difference between its flags and none.
    """
    found: Facts = {}
    if comparison.stack is not None:
        found |= dict(_stack(comparison.stack))
    for name, spec in comparison.specs.items():
        if name in modes:
            found |= dict(_flags(name, spec))
    for cell in comparison.plan.cells:
        found["workload", cell.name] = canonical(cell)
    for name, value in digests.items():
        if name in ("code", "hardware"):
            found["code" if name == "code" else "gpu", "measuring code" if name == "code" else "hardware"] = value
    return found


def _stack(stack: Stack) -> Iterator[tuple[tuple[str, str], str | None]]:
    engine = stack.engine
    yield ("engine", "software"), engine.software
    yield ("engine", "version"), engine.version
    yield ("engine", "build"), engine.build
    yield ("engine", "image"), engine.image
    yield ("engine", "image digest"), engine.image_digest
    yield ("gpu", "GPUs"), ", ".join(gpu.name for gpu in stack.gpus) or None
    yield ("gpu", "driver"), stack.driver
    yield ("gpu", "CUDA"), stack.cuda
    for gpu in stack.gpus:
        yield (
            ("gpu", f"power limit of GPU {gpu.index}"),
            None if gpu.power_limit_w is None else f"{gpu.power_limit_w:g} W",
        )
    host = stack.host
    yield ("host", "CPU"), host.cpu
    yield ("host", "cores"), str(host.cores)
    yield ("host", "memory"), f"{host.memory_bytes / 2**30:.1f} GiB"
    yield ("host", "system"), host.system
    yield ("host", "governor"), host.governor
    yield ("host", "Python"), host.python
    for role, digest in stack.checkpoints.items():
        yield ("checkpoint", role), digest
    yield ("code", "specdec-lab"), stack.lab
    for name, version in engine.packages.items():
        yield ("package", name), version


def _flags(mode: str, spec: SessionSpec) -> Iterator[tuple[tuple[str, str], str | None]]:
    server = spec.server
    for name, value in server.args.items():
        yield ("flags", f"{mode}: {name}"), canonical(value)
    for name, text in server.env.items():
        yield ("flags", f"{mode}: {name}"), text
    yield ("flags", f"{mode}: speculation"), canonical(server.speculative)
    yield ("flags", f"{mode}: sampling"), canonical(spec.sampling)
    yield ("flags", f"{mode}: GPUs"), str(server.gpus)
