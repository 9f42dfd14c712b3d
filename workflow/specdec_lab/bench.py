"""One cell of an endpoint that somebody else runs: `specdec bench` (M20, M22 to M24).

The same client, counters and record as a session's cells, without a launcher. What only a launcher can know of the
server (flags, checkpoints, image) is left out; what the server says of itself is kept.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import httpx

from . import __version__
from . import prompts as workload
from .client import Client, Endpoint, Measured
from .client import selftest as proving
from .client.refusals import wrong_address
from .counters.scrape import Settled, settle
from .counters.tables import TABLES, guess
from .counters.window import between, unavailable
from .engines import NAMES
from .engines import get as engine_named
from .provenance.host import host
from .records.base import Finding, digest
from .records.cell import Cell, CounterWindow
from .records.errors import UserError
from .records.prompt import Prompt
from .records.spec import CellSpec, Deadlines, Load, Objective, ServerSpec, SessionSpec
from .records.stack import Engine, Stack
from .session.progress import Progress
from .session.watch import live

Say = Callable[[str], None]
SETTLE_S = 20.0
METRICS_PATHS = ("/metrics", "/v1/metrics")


@dataclass(frozen=True)
class Asked:
    """What `specdec bench` was asked for."""

    base_url: str
    prompts: Path
    model: str
    load: Load
    kind: str | None = None
    limit: int | None = None
    warmup: int | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    max_tokens: int | None = None
    ignore_eos: bool = False
    engine: str = "auto"
    objective: Objective = field(default_factory=Objective)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    selftest: bool = True


def measure(asked: Asked, say: Say) -> Cell:
    """Warm up, read the counters, measure, read the counters. UserError before the first request for what is wrong."""
    chosen = choose(workload.load(asked.prompts), kind=asked.kind, limit=asked.limit)
    _refuse_too_few(chosen, asked.load.concurrency)
    kinds = list(dict.fromkeys(prompt.kind for prompt in chosen))
    endpoint = Endpoint(asked.base_url, asked.model, headers=asked.headers)
    root = _root(asked.base_url, endpoint)
    metrics_url, engine = _find_counters(root, asked.engine)
    names = TABLES.get(engine)
    extra = engine_named(engine).body_extra(ServerSpec(engine=engine, launcher="attach"))
    selftest = proving.quick() if asked.selftest else None
    first = asked.load.concurrency or 4
    warm_prompts = _warmup(chosen, kinds, first if asked.warmup is None else asked.warmup)

    with Client(endpoint) as client:

        def send(some: Sequence[Prompt], what: str, stopped: Callable[[], str | None] | None = None) -> Measured:
            made = client.measure(
                some,
                asked.load,
                deadlines=asked.deadlines,
                max_tokens=asked.max_tokens,
                ignore_eos=asked.ignore_eos,
                extra_body=extra,
                objective=asked.objective,
                on_progress=live(Progress("bench", 1), what, say),
                give_up=stopped,
                selftest=selftest,
            )
            if (wrong := wrong_address(made.rows, str(endpoint.url), root)) is not None:
                raise wrong
            say(f"{what}: {len(made.rows)} of {len(some)}")
            return made

        warm = send(warm_prompts, "warm-up") if warm_prompts else None
        before = None if metrics_url is None or names is None else settle(metrics_url, names, limit_s=SETTLE_S)
        with _stoppable() as stopped:
            measured = send(chosen, "measured", stopped)
        counters = unavailable(speculative=False)
        if metrics_url is not None and names is not None and before is not None:
            after = settle(metrics_url, names, limit_s=SETTLE_S)
            counters = _window(before, after, engine)

    return _cell(asked, chosen, kinds, engine, root, measured, warm, counters)


@contextmanager
def _stoppable() -> Iterator[Callable[[], str | None]]:
    """Within this the first Ctrl-C (or TERM) ends the cell, whose rows are kept; a second one ends the program."""
    told: list[int] = []

    def tell(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        for one, handler in before.items():
            signal.signal(one, handler)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, tell)
    try:
        yield lambda: f"interrupted by {signal.Signals(told[0]).name}" if told else None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def choose(rows: Sequence[Prompt], *, kind: str | None, limit: int | None) -> list[Prompt]:
    """The prompts of this cell, each once. UserError when the kind is not there or the limit is more than there are."""
    kinds = sorted({row.kind for row in rows})
    if kind is not None and kind not in kinds:
        raise UserError(f"No prompt is of kind {kind!r}.", place="--kind", fix=f"Kinds here: {', '.join(kinds)}.")
    chosen = [row for row in rows if kind in (None, row.kind)]
    if limit is not None and limit > len(chosen):
        raise UserError(
            f"{limit} requests were asked for, and there are {len(chosen)} prompts.",
            place="--limit",
            fix="Give more prompts or a lower limit; no prompt is sent twice.",
        )
    return chosen[:limit]


def _refuse_too_few(chosen: Sequence[Prompt], concurrency: int | None) -> None:
    """A concurrency that so many prompts can never reach would be measured under a wrong name."""
    if concurrency is not None and concurrency > len(chosen):
        raise UserError(
            f"{len(chosen)} prompts can never be {concurrency} in flight.",
            place="--concurrency",
            fix=f"Give {concurrency} prompts or more (twice as many is better), or lower the concurrency.",
        )


def _root(base_url: str, endpoint: Endpoint) -> str:
    """The server's root, where its counters and its own facts are."""
    path = endpoint.url.path.removesuffix("/v1/chat/completions")
    return str(httpx.URL(base_url).copy_with(raw_path=(path or "/").encode())).rstrip("/")


def _get(url: str, headers: Mapping[str, str]) -> httpx.Response | None:
    try:
        return httpx.get(url, headers=headers, timeout=10.0, trust_env=False)
    except httpx.HTTPError:
        return None


def _find_counters(root: str, engine: str) -> tuple[str | None, str]:
    """Where the counters are, and whose they are; (None, engine) for an endpoint that has none."""
    named = engine.replace("-", "_").replace(".", "_")
    if named != "auto" and named not in NAMES:
        raise UserError(f"No engine is called {engine!r}.", place="--engine", fix=f"One of: auto, {', '.join(NAMES)}.")
    for path in METRICS_PATHS:
        response = _get(f"{root}{path}", {})
        if response is None or response.status_code != 200:
            continue
        text = response.text
        if named != "auto":
            return f"{root}{path}", named
        if any(f"{prefix}:" in text for prefix in ("vllm", "llamacpp", "sglang")):
            return f"{root}{path}", guess(text)
    return None, "openai" if named == "auto" else named


def _warmup(chosen: Sequence[Prompt], kinds: Sequence[str], n: int) -> list[Prompt]:
    """n prompts that are not measured, shared evenly among the kinds."""
    shares = [n // len(kinds) + (i < n % len(kinds)) for i in range(len(kinds))]
    return [p for kind, share in zip(kinds, shares, strict=True) for p in workload.warmup_for(kind, share, chosen)]


def _window(before: Settled, after: Settled, engine: str) -> CounterWindow:
    """The counters' change. Whether the server speculates is not known here, so its counters say it."""
    names = TABLES[engine]
    made = between(before, after, names, speculative=True)
    status = made.acceptance.status
    if status == "absent" or (status == "not_exercised" and names.always_shown):
        made = between(before, after, names, speculative=False)
    return made


def _cell(
    asked: Asked,
    chosen: Sequence[Prompt],
    kinds: Sequence[str],
    engine: str,
    root: str,
    measured: Measured,
    warm: Measured | None,
    counters: CounterWindow,
) -> Cell:
    session = SessionSpec(
        server=ServerSpec(
            engine=engine,
            launcher="attach",
            base_url=root,
            served_model=asked.model,
            gpus=0,
        ),
        checkpoints={},
        against=None,
        deadlines=asked.deadlines,
        objective=asked.objective,
    )
    spec = CellSpec(
        kind=kinds[0] if len(kinds) == 1 else "all",
        load=asked.load,
        requests=asked.limit,
        warmup=len(warm.rows) if warm is not None else 0,
        max_tokens=asked.max_tokens,
        ignore_eos=asked.ignore_eos,
    )
    version = engine_named(engine).version(root)
    sent = workload.digest(chosen)
    return Cell(
        key=digest([session.model_dump(mode="json"), spec.model_dump(mode="json"), sent, version]),
        mode="endpoint",
        replicate=1,
        cell=spec,
        session=session,
        digests={"prompts": sent},
        stack=Stack(host=host(), engine=Engine(software=engine, version=version), lab=__version__),
        server="attached",
        order=0,
        started_at=measured.started_at,
        warnings=_warnings(measured),
        summary=measured.summary,
        counters=counters,
        client=measured.client,
        warmup={} if warm is None else {"requests": len(warm.rows), "failed": warm.summary.failed},
        rows=measured.rows,
    )


def _warnings(measured: Measured) -> list[Finding]:
    found = []
    if measured.aborted is not None:
        found.append(Finding(code="aborted", severity="error", message=f"The cell was aborted: {measured.aborted}."))
    if measured.client.client_bound:
        found.append(
            Finding(
                code="client_bound",
                message="The client was near its own limit, so these numbers may be its own.",
                hint="Run it where nothing else uses the processor, or at a lower load.",
            )
        )
    return found
