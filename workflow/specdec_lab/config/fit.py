"""Whether the workload's requests fit into the context that the servers are given, as far as that is known (M18)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .. import engines
from ..engines import context
from ..prompts.need import Need
from ..records.base import Finding
from ..records.spec import ServerSpec
from .problems import Problem
from .resolve import Matrix, args_path

_ROUND = 256


def problems(matrix: Matrix, needs: Mapping[str, Need]) -> Iterator[Problem]:
    """Requests that surely do not fit: the engine would refuse them, or cut every answer short; and too few of them."""
    yield from _too_few(matrix, needs)
    for mode, server, kind, room in _longest(matrix, needs):
        need = needs[kind]
        if need.least > room:
            place = args_path(matrix, mode, engines.get(server.engine).context_flag)
            yield Problem(place, _told(kind, need, room), _fix(server, _capped(matrix, kind), need), (mode,))


def _too_few(matrix: Matrix, needs: Mapping[str, Need]) -> Iterator[Problem]:
    """A concurrency that a kind's own prompts can never reach would be measured under a wrong name."""
    asked = matrix.config.workload.requests
    for index, concurrency in enumerate(matrix.config.load.concurrency):
        if asked is not None and concurrency > asked:
            continue  # said already, of the requests
        for kind, need in needs.items():
            if concurrency > need.requests:
                yield Problem(
                    ("load", "concurrency", index),
                    f"the prompts of kind `{kind}` are {need.requests} and can never be {concurrency} in flight",
                    f"Give that kind {concurrency} prompts or more (twice as many is better), leave it out of "
                    "workload.kinds, or lower the concurrency.",
                )
                break


def warnings(matrix: Matrix, needs: Mapping[str, Need]) -> Iterator[Finding]:
    """Requests that may not fit, once for all modes that are asked for the same."""
    found = {
        _told(kind, needs[kind], room): _fix(server, _capped(matrix, kind), needs[kind])
        for _, server, kind, room in _longest(matrix, needs)
        if needs[kind].least <= room < needs[kind].likely
    }
    for told, fix in found.items():
        yield Finding(code="context_tight", message=f"It may not fit: {told}.", hint=fix)


def _longest(matrix: Matrix, needs: Mapping[str, Need]) -> Iterator[tuple[str, ServerSpec, str, int]]:
    """Each mode whose context is known, with the kind that takes most of it: what does for that kind does for all."""
    kinds = [kind for kind in dict.fromkeys(cell.kind for cell in matrix.cells) if kind in needs]
    for mode, session in matrix.sessions.items():
        room = context.asked(engines.get(session.server.engine), session.server)
        if room is not None and kinds:
            yield mode, session.server, max(kinds, key=lambda kind: needs[kind].likely), room


def _told(kind: str, need: Need, room: int) -> str:
    return (
        f"a request of kind `{kind}` takes about {need.likely} tokens (about {need.prompt} of prompt, up to "
        f"{need.answer} of answer), and {room} are asked for"
    )


def _capped(matrix: Matrix, kind: str) -> str:
    """The kind whose cap holds for this one."""
    return kind if kind in matrix.config.workload.max_tokens else kind.split("_ctx")[0]


def _fix(server: ServerSpec, kind: str, need: Need) -> str:
    flag = engines.get(server.engine).context_flag
    slots = engines.get(server.engine).context_shares(server)
    enough = -(-need.likely * 5 // (4 * _ROUND)) * _ROUND * slots
    among = f" (it is shared among {slots} slots)" if slots > 1 else ""
    return f"Set `{flag}` to {enough} or more{among}, or lower workload.max_tokens for `{kind}`."
