"""M10, E5: whether two cells may be compared at all, and what else differs between their servers (B3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .. import engines
from ..engines import context
from ..engines.ledger import ledger
from ..records.base import Finding
from ..records.comparison import Confounder
from ..records.session import Session
from ..records.stack import Stack
from .cells import Measured
from .findings import finding

BLOCKING = frozenset(
    {
        "no_stack",
        "schema_differs",
        "hardware_differs",
        "checkpoint_differs",
        "prompts_differ",
        "image_differs",
        "work_differs",
        "unreadable",
        "no_baseline",
        "baseline_speculates",
    }
)
"""Codes that make a row `not comparable`."""


def obstacles(mine: Measured, base: Measured) -> list[Finding]:
    """Why a mode's cell must not be compared with this baseline cell; empty when it may."""
    found = [*mine.problems, *base.problems]
    if not (mine.read and base.read):
        return _once(found)  # nothing is known of the other things
    who = f"{mine.mode} r{mine.replicate} and {base.mode} r{base.replicate}"

    def differ(code: str, what: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            found.append(finding(code, f"{who} differ in {what}: {ours} against {theirs}."))

    differ("schema_differs", "schema", mine.schema_version, base.schema_version)
    for code, key, what in (
        ("prompts_differ", "prompts", "prompt set"),
        ("hardware_differs", "hardware", "hardware"),
        ("image_differs", "image", "engine image"),
        ("image_differs", "engine", "engine program"),
        ("checkpoint_differs", "checkpoint.target", "target checkpoint"),
    ):
        differ(code, what, _short(mine.digests.get(key)), _short(base.digests.get(key)))
    if mine.stack is not None and base.stack is not None:
        differ("hardware_differs", "machine", _machine(mine.stack), _machine(base.stack))
        if _cards(mine.stack) != _cards(base.stack):
            found.append(finding("other_card", "Mode and baseline ran on different cards of the same kind."))
        differ("image_differs", "image", _short(mine.stack.engine.image_digest), _short(base.stack.engine.image_digest))
        differ("image_differs", "engine", _engine(mine.stack), _engine(base.stack))
        ours, theirs = mine.stack.checkpoints.get("target"), base.stack.checkpoints.get("target")
        differ("checkpoint_differs", "target checkpoint", _short(ours), _short(theirs))
    differ("work_differs", "what was asked", _asked(mine), _asked(base))
    differ("work_differs", "sampling", mine.session.sampling.model_dump(), base.session.sampling.model_dump())
    if mine.digests.get("code") != base.digests.get("code"):
        found.append(finding("client_differs", "Mode and baseline were measured by different versions of the client."))
    return _once(found)


def confounders(sessions: Iterable[Session], against: Mapping[str, str | None]) -> list[Confounder]:
    """B3: what differs between a mode's server and its baseline's beyond the speculation that was asked for."""
    facts = {session.mode: session.lifetimes[-1].facts for session in sessions if session.lifetimes}
    return [
        Confounder(
            mode=mode,
            fact=entry.what,
            baseline=_word(entry.baseline),
            value=_word(entry.mode),
            declared=entry.origin == "argument",
            meaning=entry.meaning,
        )
        for mode, base in against.items()
        if base is not None and mode in facts and base in facts
        for entry in ledger(facts[base], facts[mode])
    ]


def other_contexts(sessions: Iterable[Session]) -> list[Finding]:
    """B3: servers that ran with another context per request than the config asks for, each change with its modes."""
    modes: dict[str, dict[str, None]] = {}
    for session in sessions:
        server = session.spec.server
        facts = session.lifetimes[-1].facts if session.lifetimes else {}
        told = context.changed(engines.get(server.engine), server, facts)
        if told is not None:
            modes.setdefault(told, {})[session.mode] = None
    return [finding("context_changed", f"{told} Modes: {', '.join(names)}.") for told, names in modes.items()]


def _word(value: object) -> str:
    return "not said" if value is None else str(value)


def _short(value: str | None) -> str | None:
    return value if value is None or len(value) < 24 else value[:19] + "…"


def _machine(stack: Stack) -> tuple[object, ...]:
    return (stack.host.cpu, stack.driver, tuple(sorted(gpu.name for gpu in stack.gpus)))


def _cards(stack: Stack) -> set[str]:
    return {gpu.uuid for gpu in stack.gpus if gpu.uuid is not None}


def _engine(stack: Stack) -> tuple[str, str | None]:
    return stack.engine.software, stack.engine.version


def _asked(cell: Measured) -> dict[str, object]:
    return cell.cell.model_dump(include={"kind", "load", "requests", "max_tokens", "ignore_eos"})


def _once(found: list[Finding]) -> list[Finding]:
    """Each remark once, in order."""
    return list({(one.code, one.message): one for one in found}.values())
