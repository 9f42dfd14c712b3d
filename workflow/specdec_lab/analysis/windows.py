"""B4: what was remarked on the counters' windows while they were read, as findings of the comparison.

The window says what it saw and judges nothing; here each of its codes gets its weight. None is passed over: a code that
this list does not know is told as it is. An acceptance that rests on a window in doubt is marked (`doubts`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records.base import Finding
from ..records.cell import Acceptance
from .cells import Measured
from .findings import finding

TOLD = frozenset(
    {
        "acceptance_estimated",
        "acceptance_inconsistent",
        "acceptance_selfcheck",
        "aliases_disagree",
        "counter_unreadable",
        "counters_not_settled",
        "duplicate_series",
        "metric_missing",
        "no_engine_metrics",
        "prefix_cache_inconsistent",
        "scrape_empty",
        "speculation_in_baseline",
        "unreadable_line",
    }
)
"""Codes of a window that are codes of the comparison as well."""
SAID_ELSEWHERE = frozenset({"speculation_absent", "speculation_not_exercised", "no_metrics"})
"""What `plausibility` says of the mode as a whole, from the acceptance's status."""
RESTARTED = frozenset({"counter_reset", "server_restarted"})
DOUBTFUL_WINDOW = frozenset({"counters_not_settled"})
"""Remarks on a window that concern all that is counted in it."""
DOUBTFUL_GATES = frozenset({"foreign_traffic", "counters_disagree", "acceptance_inconsistent"})
"""Gates that say that the counters counted something else than this cell's requests."""
HARMLESS = frozenset({"acceptance_estimated", "metric_missing", *SAID_ELSEWHERE})
"""Remarks on an acceptance that take nothing away from its numbers."""


def remarks(cells: Sequence[Measured]) -> list[Finding]:
    """What the windows of a mode's starts say, each remark once, with the starts that it is about."""
    said: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], Finding] = {}
    for cell in cells:
        for one in _of(cell):
            key = (one.code, one.message)
            first.setdefault(key, one)
            starts = said.setdefault(key, [])
            if f"r{cell.replicate}" not in starts:
                starts.append(f"r{cell.replicate}")
    return [
        one.model_copy(update={"message": f"{cells[0].mode} {', '.join(said[key])}: {one.message}"})
        for key, one in first.items()
    ]


def _of(cell: Measured) -> list[Finding]:
    window = cell.counters
    every = [*window.findings, *window.acceptance.findings]
    if window.settled is False and not any(one.code == "counters_not_settled" for one in every):
        every.append(finding("counters_not_settled", "The counters had not come to rest."))
    found = []
    if any(one.code in RESTARTED for one in every):
        why = "; ".join(dict.fromkeys(one.message for one in every if one.code in RESTARTED))
        found.append(finding("counter_reset", why))
    counted = drafted(window.acceptance)
    for one in every:
        moved = one.code == "speculation_in_baseline" and one.severity == "error"
        if one.code not in RESTARTED | SAID_ELSEWHERE and not (moved and counted):
            found.append(_weighed(one))
    if window.acceptance.status == "invalid" and not any(one.severity == "error" for one in found):
        found.append(finding("acceptance_inconsistent", "The counters give no acceptance, and no reason is on file."))
    return found


def drafted(counts: Acceptance) -> int | None:
    """What shows that a server drafted, from whichever counters it has; None or 0 when nothing does."""
    return counts.draft_tokens or counts.accepted_tokens or counts.drafts


def _weighed(one: Finding) -> Finding:
    """A window's remark with the comparison's weight; its own hint knows the engine and so goes first."""
    if one.code == "speculation_in_baseline" and one.severity == "error":
        return finding("baseline_speculates", one.message)
    if one.code not in TOLD:
        return finding("counters_remark", f"{one.message} ({one.code})")
    made = finding(one.code, one.message)
    return made.model_copy(update={"hint": one.hint or made.hint})


def doubts(cells: Sequence[Measured], found: Sequence[Finding]) -> list[str]:
    """Codes that throw doubt on the acceptance of these starts, sorted; empty when it may be read as it stands.

    `found`: what the gates say of the same starts.
    """
    codes = {one.code for one in found if one.code in DOUBTFUL_GATES}
    for cell in cells:
        window = cell.counters
        codes |= {one.code for one in window.findings if one.code in DOUBTFUL_WINDOW}
        codes |= {one.code for one in window.acceptance.findings if one.code not in HARMLESS}
        if window.settled is False:
            codes.add("counters_not_settled")
    return sorted(codes)
