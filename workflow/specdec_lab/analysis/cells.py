"""One cell as judging sees it: columns instead of records, without arrivals, with its numbers worked out once.

A file that cannot be read is no reason to stop: it becomes a cell with a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import fmean
from statistics import median as middle
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from ..quantities import median, percentile
from ..records.base import Finding
from ..records.cell import SCHEMA_VERSION, Acceptance, CounterWindow, Summary
from ..records.cell import ClientProof as Client
from ..records.reading import first_problem
from ..records.spec import CellSpec, Load, ServerSpec, SessionSpec
from ..records.stack import Stack
from .answers import Text
from .findings import finding
from .possible import MOST, Impossible, require_row, require_summary

_Digests = TypeAdapter(dict[str, str])
_Warmup = TypeAdapter(dict[str, Any])
_Energy = TypeAdapter(Annotated[float, Field(ge=0, le=MOST)] | None)
NO_SERVER = ServerSpec(engine="openai", launcher="attach")
"""Stands for a server that nothing is known of."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request as far as judging needs it."""

    id: str
    ok: bool
    reason: str | None
    tokens: int | None
    prompt_tokens: int | None
    cached_tokens: int | None
    decode_tok_s: float | None
    ttft_s: float | None
    e2e_s: float | None
    sent_s: float | None
    text: Text
    notes: tuple[str, ...] = ()
    """What the client remarked on the row."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Medians of the GPU readings of one cell, over all its devices."""

    sm_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: tuple[str, ...] = ()


@dataclass
class Measured:
    """One cell of one start, read and ready to be judged."""

    mode: str
    replicate: int
    path: Path
    key: str
    cell: CellSpec
    session: SessionSpec
    digests: dict[str, str]
    stack: Stack | None
    schema_version: int | None
    server: str
    order: int
    started_at: str
    summary: Summary
    counters: CounterWindow
    client: Client
    heat: Heat
    warmup: dict[str, Any]
    warnings: list[Finding]
    energy_j: float | None
    requests: list[Request]
    problems: list[Finding] = field(default_factory=list)
    read: bool = True
    """False: it stands for a file that could not be read; all that is known is in `problems`."""

    @cached_property
    def ok(self) -> list[Request]:
        """The requests that succeeded."""
        return [one for one in self.requests if one.ok]

    @cached_property
    def p50_decode(self) -> float | None:
        """M2 from the rows; what only the summary says is no measurement."""
        return median(one.decode_tok_s for one in self.ok if one.decode_tok_s is not None)

    @cached_property
    def decode_n(self) -> int:
        """How many requests have a decode rate."""
        return sum(one.decode_tok_s is not None for one in self.ok)

    @cached_property
    def p50_ttft(self) -> float | None:
        """Median time to the first token, from the rows."""
        return self._ttft(50)

    @cached_property
    def p95_ttft(self) -> float | None:
        """95th percentile of the time to the first token, from the rows."""
        return self._ttft(95)

    def _ttft(self, q: float) -> float | None:
        return percentile((one.ttft_s for one in self.ok if one.ttft_s is not None), q)

    @cached_property
    def rates(self) -> dict[str, float]:
        """Prompt id -> decode rate, for the requests that have one."""
        return {one.id: one.decode_tok_s for one in self.ok if one.decode_tok_s}

    @cached_property
    def tokens(self) -> int | None:
        """Completion tokens of the successful requests; None as soon as one is unknown."""
        counts = [one.tokens for one in self.ok]
        return None if not counts or None in counts else sum(count for count in counts if count is not None)

    @cached_property
    def agg_tok_s(self) -> float | None:
        """M1: tokens / (first request sent -> last token); the summary's when rows do not say when they were sent."""
        timed = [(one.sent_s, one.e2e_s) for one in self.ok if one.sent_s is not None and one.e2e_s is not None]
        sent = [one.sent_s for one in self.requests if one.sent_s is not None]
        if not self.ok:
            return None
        if len(timed) < len(self.ok) or self.tokens is None:
            return self.summary.agg_tok_s
        wall = max(start + end for start, end in timed) - min(sent)
        return self.tokens / wall if wall > 0 else None

    @cached_property
    def full_share(self) -> float | None:
        """Share of the cell's time until its last request was sent: from then on a closed loop runs empty."""
        timed = [(one.sent_s, one.sent_s + one.e2e_s) for one in self.ok if one.sent_s is not None and one.e2e_s]
        if not timed:
            return None
        first, last = min(sent for sent, _ in timed), max(sent for sent, _ in timed)
        wall = max(end for _, end in timed) - first
        return (last - first) / wall if wall > 0 else None

    @cached_property
    def decode_share(self) -> float | None:
        """M35: decode time / request time, summed over the rows."""
        timed = [(one.e2e_s - one.ttft_s, one.e2e_s) for one in self.ok if one.ttft_s is not None and one.e2e_s]
        whole = math.fsum(end for _, end in timed)
        return math.fsum(part for part, _ in timed) / whole if whole > 0 else None

    @cached_property
    def texts(self) -> dict[str, Text]:
        """Prompt id -> what was answered."""
        return {one.id: one.text for one in self.ok}

    @cached_property
    def cache_share(self) -> float | None:
        """Prompt tokens that came from the server's cache, as a share; from the counters, else from the rows."""
        queries, hits = self.counters.prefix_cache_queries, self.counters.prefix_cache_hits
        if queries and hits is not None:
            return hits / queries
        known = [(one.cached_tokens, one.prompt_tokens) for one in self.ok if one.prompt_tokens]
        known = [pair for pair in known if pair[0] is not None]
        whole = sum(total or 0 for _, total in known)
        return sum(part or 0 for part, _ in known) / whole if whole else None


def read_cell(path: Path, mode: str, start: int) -> Measured:
    """One cell's file as columns. What is missing or wrong becomes a problem of the cell, never a guess."""
    if not path.is_file():
        return _unreadable(path, mode, start, _no_file(path))
    try:
        content: Any = from_json(path.read_bytes(), allow_inf_nan=False, cache_strings="keys")
    except OSError as error:
        return _unreadable(path, mode, start, f"cannot be read: {error.strerror}")
    except ValueError as error:
        return _unreadable(path, mode, start, f"not strict JSON: {error}")
    if not isinstance(content, dict):
        return _unreadable(path, mode, start, "not a cell")
    return parse_cell(content, path, mode, start)


def _no_file(path: Path) -> str:
    """Why this is not opened: reading a pipe or a device may never end."""
    if path.is_dir():
        return "a folder, not a file"
    return "neither a file nor a link to one" if path.exists() else "a link that leads nowhere"


def parse_cell(content: dict[str, Any], path: Path, mode: str, start: int) -> Measured:
    """The columns of a cell that was read as JSON."""
    problems: list[Finding] = []
    version = content.get("schema_version")
    if version is not None and type(version) is not int:
        return _unreadable(path, mode, start, f"schema_version is {version!r}, no whole number")
    try:
        requests = [_request(row, number) for number, row in enumerate(content.get("rows") or [])]
        measured = Measured(
            mode=mode,
            replicate=start,
            path=path,
            key=str(content.get("key", "")),
            cell=CellSpec.model_validate(content["cell"]),
            session=SessionSpec.model_validate(content["session"]),
            digests=_Digests.validate_python(content.get("digests") or {}),
            stack=None,
            schema_version=version,
            server=str(content.get("server", "")),
            order=int(content.get("order", 0)),
            started_at=str(content.get("started_at", "")),
            summary=Summary.model_validate(content["summary"]),
            counters=CounterWindow.model_validate(content["counters"]),
            client=Client.model_validate(content.get("client") or {}),
            heat=_heat(content.get("gpu") or []),
            warmup=_Warmup.validate_python(content.get("warmup") or {}),
            warnings=[Finding.model_validate(one) for one in content.get("warnings") or []],
            energy_j=_Energy.validate_python(content.get("energy_j")),
            requests=requests,
            problems=problems,
        )
        require_summary(measured.summary, len(requests))
    except Impossible as error:
        return _unreadable(path, mode, start, f"impossible: {error}")
    except ValidationError as error:
        return _unreadable(path, mode, start, first_problem(error))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        return _unreadable(path, mode, start, f"not a cell: {type(error).__name__} {error}")
    if measured.schema_version != SCHEMA_VERSION:
        problems.append(
            finding("schema_differs", f"{path.name} of {mode} r{start} has schema {measured.schema_version}.")
        )
    try:
        measured.stack = Stack.model_validate(content["stack"])
    except (ValidationError, KeyError):
        problems.append(finding("no_stack", f"{mode} r{start} does not say on what stack it was measured."))
    if (content.get("mode"), content.get("replicate")) != (mode, start):
        problems.append(finding("unreadable", f"{path} says it is {content.get('mode')} r{content.get('replicate')}."))
    problems.extend(_checked(measured))
    return measured


def _checked(measured: Measured) -> list[Finding]:
    """The summary against the rows: a file whose two halves disagree was edited or cut."""
    summary = measured.summary
    told = [
        ("requests", summary.requests, len(measured.requests)),
        ("failed", summary.failed, len(measured.requests) - len(measured.ok)),
        ("P50 decode tok/s", summary.p50_decode_tok_s, measured.p50_decode),
        ("P50 TTFT in seconds", summary.p50_ttft_s, measured.p50_ttft),
        ("completion tokens", summary.completion_tokens, measured.tokens),
    ]
    return [
        finding(
            "summary_disagrees",
            f"{measured.mode} r{measured.replicate}: {name} {says} in the summary, "
            f"{'nothing' if rows is None else rows} by its rows.",
        )
        for name, says, rows in told
        if says is not None and (rows is None or abs(says - rows) > 0.005 * max(abs(says), abs(rows)))
    ]


def _request(row: dict[str, Any], number: int) -> Request:
    require_row(row, number)
    return Request(
        id=row["id"],
        ok=row["status"] == "ok",
        reason=row.get("reason"),
        tokens=row.get("completion_tokens"),
        prompt_tokens=row.get("prompt_tokens"),
        cached_tokens=row.get("cached_tokens"),
        decode_tok_s=row.get("decode_tok_s"),
        ttft_s=row.get("ttft_s"),
        e2e_s=row.get("e2e_s"),
        sent_s=row.get("sent_s"),
        text=Text(row.get("text"), row.get("reasoning"), row.get("finish_reason"), row.get("tool_calls")),
        notes=tuple(row.get("notes") or ()),
    )


def _heat(samples: list[dict[str, Any]]) -> Heat:
    def of(name: str) -> list[float]:
        return [float(one[name]) for one in samples if one.get(name) is not None]

    clocks, temperatures, powers = of("sm_clock_mhz"), of("temperature_c"), of("power_w")
    return Heat(
        sm_clock_mhz=middle(clocks) if clocks else None,
        temperature_c=middle(temperatures) if temperatures else None,
        power_w=fmean(powers) if powers else None,
        throttle=tuple(sorted({reason for one in samples for reason in one.get("throttle") or []})),
    )


def _unreadable(path: Path, mode: str, start: int, why: str) -> Measured:
    """A stand-in for a file that is no cell; its name says which one it should be."""
    kind, _, label = path.stem.rpartition("_")
    number = label[1:]
    load = (
        Load(rate=float(number))
        if label[:1] == "r" and number.replace(".", "").isdigit()
        else Load(concurrency=int(number) if number.isdigit() else None)
    )
    return Measured(
        mode=mode,
        replicate=start,
        path=path,
        key="",
        cell=CellSpec(kind=kind or path.stem, load=load, warmup=0),
        session=SessionSpec(server=NO_SERVER, checkpoints={}, against=None),
        digests={},
        stack=None,
        schema_version=None,
        server="",
        order=0,
        started_at="",
        summary=Summary(requests=0, failed=0, completed=False),
        counters=CounterWindow(source="none", acceptance=Acceptance(status="absent")),
        client=Client(),
        heat=Heat(),
        warmup={},
        warnings=[],
        energy_j=None,
        requests=[],
        problems=[finding("unreadable", f"{mode} r{start} {path.name}: {why}")],
        read=False,
    )
