"""The change of a server's counters between two scrapes (M4, cases B1 to B9).

Delta per series, then the sum over series. A restart in between makes every delta meaningless, so none is given.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, field

from ..records.base import Finding
from ..records.cell import Acceptance, CounterWindow
from .acceptance import Speculation, judge
from .exposition import BadLine, Exposition, Labels, names_of, parse
from .names import MetricNames
from .scrape import Settled

_REPORTED_BAD_LINES = 10
_SPECULATION = ("drafts", "draft_tokens", "accepted_tokens", "verify_calls")
_DRAFTING = (*_SPECULATION, "accepted_per_position")
"""Everything that an acceptance is made of."""
_QUANTITIES = (
    "prompt_tokens",
    "generation_tokens",
    "requests_finished",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "preemptions",
)
_CLOCK_TOLERANCE_S = 0.01
"""Start times are constants of a process; only their printing may round."""


@dataclass
class _Reading:
    """Both ends of the window, and what was remarked while reading them."""

    before: Exposition
    after: Exposition
    findings: list[Finding] = field(default_factory=list)
    restarts: list[str] = field(default_factory=list)
    deltas: dict[str, float] = field(default_factory=dict)

    def remark(self, code: str, message: str, hint: str = "", severity: str = "warn") -> None:
        self.findings.append(Finding(code=code, severity=severity, message=message, hint=hint))

    def by_series(self, name: str) -> dict[Labels, float] | None:
        """Delta of each series of one counter; None when neither scrape has it. Resets are noted, not hidden."""
        before, after = self.before.counter(name), self.after.counter(name)
        if not before and not after:
            return None
        for labels, value in before.items():
            if labels not in after:
                self.restarts.append(f"{_named(name, labels)} is gone from the second scrape")
            elif after[labels] < value:
                self.restarts.append(f"{_named(name, labels)} fell from {value:g} to {after[labels]:g}")
        started = self.before.created(name)
        for labels, since in self.after.created(name).items():
            if labels in started and abs(since - started[labels]) > _CLOCK_TOLERANCE_S:
                self.restarts.append(f"{_named(name, labels)} was created anew within the window")
        return {labels: value - before.get(labels, 0.0) for labels, value in after.items()}

    def delta(self, aliases: tuple[str, ...]) -> float | None:
        """Delta of one quantity, under whichever of its names the server has; aliases are never added up (case B8)."""
        found: dict[str, float] = {}
        for name in aliases:
            series = self.by_series(name)
            if series is not None:
                found[name] = math.fsum(series.values())
        if not found:
            return None
        if len(set(found.values())) > 1:
            listed = ", ".join(f"{name} +{value:g}" for name, value in found.items())
            self.remark(
                "aliases_disagree",
                f"Names of the same counter moved differently: {listed}. The largest is used.",
                "Check which of these names the engine's version still serves.",
            )
        name = max(found, key=lambda n: found[n])
        self.deltas[name] = found[name]
        return found[name]

    def positions(self, aliases: tuple[str, ...]) -> list[float]:
        """Accepted tokens by draft position in numeric order, gaps as 0, summed over engines (cases B3, B9)."""
        best: dict[int, float] = {}
        for name in aliases:
            by_position: dict[int, float] = {}
            for labels, value in (self.by_series(name) or {}).items():
                label = dict(labels).get("position", "")
                if not (label.isascii() and label.isdigit()):
                    self.remark("unreadable_line", f"{_named(name, labels)} has no numeric position; it was left out.")
                    continue
                by_position[int(label)] = by_position.get(int(label), 0.0) + value
            if sum(by_position.values()) >= sum(best.values()) and by_position:
                best = by_position
        return [best.get(place, 0.0) for place in range(max(best, default=-1) + 1)]


def window(before: str, after: str, names: MetricNames, *, speculative: bool) -> CounterWindow:
    """What the counters did between two scrapes of one server.

    `before` is taken after the warm-up, `after` once the counters have settled (case B5). `speculative` says what the
    mode is meant to be; it decides whether missing speculation counters are as expected or an error (case B6). Never
    raises on what a server may send: everything odd becomes a finding, and a quantity that is not there is None.
    """
    reading = _Reading(parse(before), parse(after))
    ours, others = _unreadable(reading, names)
    reading.findings = ours
    spec = {name: reading.delta(getattr(names, name)) for name in _SPECULATION}
    positions = reading.positions(names.accepted_per_position)
    # What was remarked so far throws doubt on the acceptance, and on it alone.
    of_drafts, reading.findings = reading.findings, others
    values = {name: reading.delta(getattr(names, name)) for name in _QUANTITIES}
    for other in names.others:
        reading.delta((other,))
    _check_process(reading, names)
    _report_missing(reading, names, values)
    hits, queries = values["prefix_cache_hits"], values["prefix_cache_queries"]
    if hits is not None and queries is not None and hits > queries and not reading.restarts:
        reading.remark(
            "prefix_cache_inconsistent", f"More prefix cache hits ({hits:g}) than queries ({queries:g}) in the window."
        )
        values["prefix_cache_hits"] = values["prefix_cache_queries"] = None
    acceptance = _acceptance(reading, names, spec, positions, values["generation_tokens"], speculative=speculative)
    kept = not reading.restarts
    return CounterWindow(
        source="metrics",
        acceptance=acceptance.model_copy(update={"findings": [*acceptance.findings, *of_drafts]}),
        **{name: _whole(value) if kept else None for name, value in values.items()},
        deltas=dict(sorted(reading.deltas.items())) if kept else {},
        findings=reading.findings,
    )


def between(before: Settled, after: Settled, names: MetricNames, *, speculative: bool) -> CounterWindow:
    """The window between two waits for rest, with what was remarked at either of its ends."""
    made = window(before.text, after.text, names, speculative=speculative)
    opening = [
        one.model_copy(update={"message": f"At the opening of the window: {one.message}"}) for one in before.findings
    ]
    return made.model_copy(
        update={
            "settled": before.settled and after.settled,
            "findings": [*made.findings, *opening, *after.findings],
        }
    )


def unavailable(*, speculative: bool) -> CounterWindow:
    """The window of an engine that offers no counters: nothing is known of its speculation, which is not 0."""
    if not speculative:
        return CounterWindow(source="none", acceptance=Acceptance(status="not_applicable"))
    finding = Finding(
        code="no_metrics",
        severity="warn",
        message="This endpoint offers no counters, so the acceptance is unknown.",
        hint="Name the engine in the config if it is vLLM, llama.cpp, SGLang or NIM; its counters are then read.",
    )
    return CounterWindow(source="none", acceptance=Acceptance(status="absent", findings=[finding]))


def _acceptance(
    reading: _Reading,
    names: MetricNames,
    spec: dict[str, float | None],
    positions: list[float],
    generated: float | None,
    *,
    speculative: bool,
) -> Acceptance:
    if not speculative:
        return _baseline(reading, names, spec)
    if not reading.before.scalars or not reading.after.scalars:
        end = "first" if not reading.before.scalars else "second"
        return _invalid("scrape_empty", f"The {end} scrape holds no metrics, so there is no window.", names.off_hint)
    if reading.restarts:
        return _invalid(
            "server_restarted",
            f"The server restarted within the window ({reading.restarts[0]}); its counters began again.",
            "Look for a crash in the server log, or for another server behind this address. Measure the cell again.",
        )
    wanted = [name for quantity in _SPECULATION for name in getattr(names, quantity)]
    lost = [line for line in _bad_lines(reading) if any(line.text.startswith(name) for name in wanted)]
    lost = [line for line in lost if not any(line.text.startswith(n) for n in names.accepted_per_position)]
    if lost:
        return _invalid("counter_unreadable", f"A speculation counter cannot be read: {lost[0].text!r}.")
    if all(value is None for value in spec.values()):
        return Acceptance(
            status="absent",
            findings=[
                Finding(
                    code="speculation_absent",
                    severity="error",
                    message=f"Speculation seems not enabled: none of {', '.join(wanted) or 'its counters'} is there."
                    + _near(wanted, reading),
                    hint=names.off_hint
                    if not _any_known(reading, names)
                    else "Check the server's arguments and its log for the speculative configuration.",
                )
            ],
        )
    return judge(Speculation(**spec, positions=positions, generation_tokens=generated))


def _baseline(reading: _Reading, names: MetricNames, spec: dict[str, float | None]) -> Acceptance:
    """M19: a baseline must show no speculation. An engine that always shows the counters must not move them."""
    shown = {name: value for name, value in spec.items() if value is not None}
    moved = any(value for value in shown.values())
    if moved or (shown and not names.always_shown):
        reading.remark(
            "speculation_in_baseline",
            "The baseline server drafted tokens within the window; it is not a baseline."
            if moved
            else "The baseline server shows speculation counters, so it was started with a speculative configuration.",
            "Remove the speculative configuration from the baseline's arguments, or point it at another server.",
            severity="error" if moved else "warn",
        )
    if not moved or reading.restarts:
        return Acceptance(status="not_applicable")
    counts = {name: _whole(spec.get(name)) for name in ("drafts", "draft_tokens", "accepted_tokens")}
    return Acceptance(status="not_applicable", **counts)


def _invalid(code: str, message: str, hint: str = "") -> Acceptance:
    return Acceptance(status="invalid", findings=[Finding(code=code, severity="error", message=message, hint=hint)])


def _check_process(reading: _Reading, names: MetricNames) -> None:
    """B4(b): a process that began within the window, however high its counters have climbed since."""
    for name in names.process_start:
        started, now = reading.before.scalars.get(name, {}), reading.after.scalars.get(name, {})
        for labels, since in now.items():
            if labels in started and abs(since - started[labels]) > _CLOCK_TOLERANCE_S:
                reading.restarts.insert(0, "its process has another start time")
    if reading.restarts:
        reading.remark(
            "server_restarted",
            f"The counters began again within the window: {reading.restarts[0]}. No change is given.",
            "Measure the cell again on a server that lives through it.",
            severity="error",
        )


def _unreadable(reading: _Reading, names: MetricNames) -> tuple[list[Finding], list[Finding]]:
    """Remarks on lines that cannot be read and series that came twice: on the drafts' counters, and on all others."""
    drafting = [name for quantity in _DRAFTING for name in getattr(names, quantity)]
    lines = _bad_lines(reading)
    ours = [line for line in lines if any(line.text.startswith(name) for name in drafting)]
    twice = list(dict.fromkeys(reading.before.conflicts + reading.after.conflicts))
    of_drafts = [name for name in twice if name.removesuffix("_total") in drafting]
    return (
        [*_bad_line_remarks(ours), *map(_came_twice, of_drafts)],
        [
            *_bad_line_remarks([line for line in lines if line not in ours]),
            *(_came_twice(name) for name in twice if name not in of_drafts),
        ],
    )


def _bad_line_remarks(lines: list[BadLine]) -> list[Finding]:
    told = [
        f"Line {line.number} of the metrics cannot be read: {line.text!r} ({line.why})."
        for line in lines[:_REPORTED_BAD_LINES]
    ]
    if len(lines) > _REPORTED_BAD_LINES:
        told.append(f"{len(lines) - _REPORTED_BAD_LINES} more lines cannot be read.")
    return [Finding(code="unreadable_line", message=text) for text in told]


def _came_twice(name: str) -> Finding:
    text = f"{name} came twice with the same labels and different values; the larger counts."
    return Finding(code="duplicate_series", message=text)


def _report_missing(reading: _Reading, names: MetricNames, values: dict[str, float | None]) -> None:
    """B8: say which names were looked for and what comes near them; a missing quantity is None, never 0."""
    wanted = {quantity: getattr(names, quantity) for quantity in _QUANTITIES if getattr(names, quantity)}
    if wanted and not _any_known(reading, names):
        looked = [name for aliases in wanted.values() for name in aliases]
        reading.remark(
            "no_engine_metrics",
            f"None of this engine's counters is there; looked for {', '.join(looked)}." + _near(looked, reading),
            names.off_hint,
        )
        return
    for quantity, aliases in wanted.items():
        if values[quantity] is None:
            reading.remark(
                "metric_missing",
                f"No counter for {quantity.replace('_', ' ')}; looked for {', '.join(aliases)}."
                + _near(list(aliases), reading),
                "If the engine has renamed it, add the new name to its table.",
                severity="info",
            )


def _any_known(reading: _Reading, names: MetricNames) -> bool:
    every = [n for quantity in _QUANTITIES + _SPECULATION for n in getattr(names, quantity)]
    return any(reading.after.counter(name) or reading.before.counter(name) for name in every)


def _near(wanted: list[str], reading: _Reading) -> str:
    """Names in the scrape that come near the wanted ones, as the end of a sentence."""
    present = {
        n.removesuffix("_total") for n in names_of([reading.before, reading.after]) if not n.endswith("_created")
    }
    near: dict[str, None] = {}
    for name in wanted:
        tail = name.rsplit(":", 1)[-1]
        for other in difflib.get_close_matches(name, sorted(present), n=3, cutoff=0.75):
            near[other] = None
        for other in sorted(present):
            if tail in other or difflib.SequenceMatcher(None, tail, other.rsplit(":", 1)[-1]).ratio() > 0.8:
                near[other] = None
    return f" Near matches: {', '.join(list(near)[:5])}." if near else " Nothing comes near."


def _bad_lines(reading: _Reading) -> list[BadLine]:
    """Unreadable lines of both scrapes; one that is the same in both is told once."""
    return list({line.text: line for line in reading.before.bad_lines + reading.after.bad_lines}.values())


def _named(name: str, labels: Labels) -> str:
    inner = ",".join(f'{key}="{value}"' for key, value in sorted(labels))
    return f"{name}{{{inner}}}" if inner else name


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
