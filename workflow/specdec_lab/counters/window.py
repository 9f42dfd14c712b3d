"""The change of a server's counters between two scrapes (M4, cases B1 to B9).

Delta per series, then the sum over series. A restart in between makes every delta meaningless, so none is given.
"""

from __future__ import annotations

import difflib

from ..records.base import Finding
from ..records.cell import Acceptance, CounterWindow
from .acceptance import Speculation, judge
from .exposition import BadLine, Exposition, names_of, parse
from .names import MetricNames
from .reading import CLOCK_TOLERANCE_S, Reading
from .scrape import Settled

_REPORTED_BAD_LINES = 10
_SPECULATION = ("drafts", "draft_tokens", "accepted_tokens", "verify_calls")
_DRAFTING = (*_SPECULATION, "accepted_per_position")
"""Everything that an acceptance is made of."""
_RATED = {
    "drafts": "acceptance length",
    "draft_tokens": "acceptance rate",
    "accepted_tokens": "acceptance rate or length",
}
"""The counters that an acceptance is divided from, and what cannot be had without each."""
_QUANTITIES = (
    "prompt_tokens",
    "generation_tokens",
    "requests_finished",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "preemptions",
)
_BESIDE = {
    "drafts": ("draft_tokens", "accepted_tokens"),
    "draft_tokens": ("drafts", "accepted_tokens"),
    "accepted_tokens": ("drafts", "draft_tokens"),
    "accepted_per_position": ("drafts", "draft_tokens", "accepted_tokens"),
    "prompt_tokens": ("generation_tokens", "requests_finished", "drafts", "draft_tokens", "verify_calls"),
    "generation_tokens": ("prompt_tokens", "requests_finished", "drafts", "draft_tokens", "verify_calls"),
    "requests_finished": ("prompt_tokens", "generation_tokens"),
    "prefix_cache_queries": ("prefix_cache_hits",),
    "prefix_cache_hits": ("prefix_cache_queries",),
}
"""What a server that shows these above 0 must show as well. Other counters may come with their first event only."""


def window(before: str, after: str, names: MetricNames, *, speculative: bool) -> CounterWindow:
    """What the counters did between two scrapes of one server.

    `before` is taken after the warm-up, `after` once the counters have settled (case B5). `speculative` says what the
    mode is meant to be; it decides whether missing speculation counters are as expected or an error (case B6). Never
    raises on what a server may send: everything odd becomes a finding, and a quantity that is not there is None.
    """
    reading = Reading(parse(before), parse(after))
    ours, others = _unreadable(reading, names)
    reading.findings = ours
    spec = {name: reading.delta(getattr(names, name), _beside(names, name)) for name in _SPECULATION}
    positions = reading.positions(names.accepted_per_position, _beside(names, "accepted_per_position"))
    # What was remarked so far throws doubt on the acceptance, and on it alone.
    of_drafts, reading.findings = reading.findings, others
    values = {name: reading.delta(getattr(names, name), _beside(names, name)) for name in _QUANTITIES}
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
    reading: Reading,
    names: MetricNames,
    spec: dict[str, float | None],
    positions: dict[int, float],
    generated: float | None,
    *,
    speculative: bool,
) -> Acceptance:
    if not speculative:
        return _baseline(reading, names, spec)
    if not reading.before.scalars or not reading.after.scalars:
        end, scrape = ("first", reading.before) if not reading.before.scalars else ("second", reading.after)
        text = f"The {end} scrape holds no metrics, so there is no window.{_written_as(scrape)}"
        return _invalid("scrape_empty", text, names.off_hint)
    if reading.restarts:
        return _invalid(
            "server_restarted",
            f"The server restarted within the window ({reading.restarts[0]}); its counters began again.",
            "Look for a crash in the server log, or for another server behind this address. Measure the cell again.",
        )
    wanted = [name for quantity in _SPECULATION for name in getattr(names, quantity)]
    lost = [line for line in reading.bad_lines() if any(line.about(name) for name in wanted)]
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
    places = range(max(positions, default=-1) + 1)
    made = judge(
        Speculation(
            **spec,
            positions=[positions.get(place, 0.0) for place in places],
            gaps=frozenset(places) - positions.keys(),
            generation_tokens=generated,
        )
    )
    return made.model_copy(update={"findings": [*made.findings, *_untold(reading, names, spec)]})


def _untold(reading: Reading, names: MetricNames, spec: dict[str, float | None]) -> list[Finding]:
    """Which of the drafts' counters are missing or unknown, and what is not given for it."""
    found = []
    if any(spec[quantity] is not None for quantity in _RATED):
        for quantity, given in _RATED.items():
            aliases = getattr(names, quantity)
            if aliases and spec[quantity] is None:
                found.append(_without(reading, quantity, aliases, f" No {given} is given."))
    if any(name in reading.unknown for name in names.accepted_per_position):
        text = " No acceptance per position is given."
        found.append(_without(reading, "accepted_per_position", names.accepted_per_position, text))
    return [one.model_copy(update={"severity": "warn"}) for one in found]


def _baseline(reading: Reading, names: MetricNames, spec: dict[str, float | None]) -> Acceptance:
    """M19: a baseline must show no speculation. An engine that always shows the counters must not move them."""
    shown = {name: value for name, value in spec.items() if value is not None}
    moved = any(value for value in shown.values())
    there = shown or any(name in reading.unknown for quantity in spec for name in getattr(names, quantity))
    if moved or (there and not names.always_shown):
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


def _check_process(reading: Reading, names: MetricNames) -> None:
    """B4(b): a process that began within the window, however high its counters have climbed since."""
    for name in names.process_start:
        started, now = reading.before.scalars.get(name, {}), reading.after.scalars.get(name, {})
        for labels, since in now.items():
            if labels in started and abs(since - started[labels]) > CLOCK_TOLERANCE_S:
                reading.restarts.insert(0, "its process has another start time")
    if reading.restarts:
        reading.remark(
            "server_restarted",
            f"The counters began again within the window: {reading.restarts[0]}. No change is given.",
            "Measure the cell again on a server that lives through it.",
            severity="error",
        )


def _unreadable(reading: Reading, names: MetricNames) -> tuple[list[Finding], list[Finding]]:
    """Remarks on lines that cannot be read and series that came twice: on the drafts' counters, and on all others."""
    drafting = [name for quantity in _DRAFTING for name in getattr(names, quantity)]
    lines = reading.bad_lines()
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


def _report_missing(reading: Reading, names: MetricNames, values: dict[str, float | None]) -> None:
    """B8: say which names were looked for and what comes near them; a missing quantity is None, never 0."""
    wanted = {quantity: getattr(names, quantity) for quantity in _QUANTITIES if getattr(names, quantity)}
    if wanted and not _any_known(reading, names):
        looked = [name for aliases in wanted.values() for name in aliases]
        reading.remark(
            "no_engine_metrics",
            f"None of this engine's counters is there; looked for {', '.join(looked)}."
            + (_written_as(reading.after) or _near(looked, reading)),
            names.off_hint,
        )
        return
    for quantity, aliases in wanted.items():
        if values[quantity] is None:
            reading.findings.append(_without(reading, quantity, aliases))


def _without(reading: Reading, quantity: str, aliases: tuple[str, ...], end: str = "") -> Finding:
    """The remark on a quantity that is not known: not there under any of its names, or there and of no use."""
    what = quantity.replace("_", " ")
    why = next((f"{name}: {reading.unknown[name]}" for name in aliases if name in reading.unknown), None)
    if why is not None:
        return Finding(
            code="metric_missing",
            severity="info",
            message=f"The change of {what} is unknown: {why}.{end}",
            hint="Scrape the server again, and look whether the scrape was cut or a proxy stands before it.",
        )
    return Finding(
        code="metric_missing",
        severity="info",
        message=f"No counter for {what}; looked for {', '.join(aliases)}.{_near(list(aliases), reading)}{end}",
        hint="If the engine has renamed it, add the new name to its table.",
    )


def _written_as(scrape: Exposition) -> str:
    """What the scrape is instead of metrics text, as a sentence; empty when that cannot be told."""
    return f" It is {scrape.written_as}, not plain text: unpack or convert it first." if scrape.written_as else ""


def _beside(names: MetricNames, quantity: str) -> tuple[str, ...]:
    return tuple(name for other in _BESIDE.get(quantity, ()) for name in getattr(names, other))


def _any_known(reading: Reading, names: MetricNames) -> bool:
    every = [n for quantity in _QUANTITIES + _SPECULATION for n in getattr(names, quantity)]
    return any(reading.after.counter(name) or reading.before.counter(name) for name in every)


def _near(wanted: list[str], reading: Reading) -> str:
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


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
