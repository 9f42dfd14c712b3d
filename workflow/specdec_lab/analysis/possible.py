"""What no measurement can give: a time before its start, a rate below zero, a number that is none, rows that are gone.

A file with such a value was edited or is broken, and nothing else in it can be believed. Everything is looked at while
the rows are read; a cell may have thousands.
"""

from __future__ import annotations

from typing import Any

from ..records.cell import Summary

MOST = 1e12
"""No time, rate or count of a cell comes near it; whatever is larger would only overflow further on."""
LEAST_RATE = 1e-9
"""One token in thirty years."""
_NUMBER = (int, float)
_TIMES = ("ttft_s", "first_answer_s", "e2e_s", "sent_s", "scheduled_s")
_COUNTS = ("completion_tokens", "prompt_tokens", "cached_tokens")
_RATES = ("decode_tok_s", "tpot_s")
_TEXTS = ("reason", "text", "reasoning", "finish_reason", "tool_calls")


class Impossible(ValueError):
    """Where, and what cannot be."""


def require_row(row: dict[str, Any], number: int) -> None:
    """Impossible if this request cannot have been measured; `number` counts from 0, as in the file."""
    wrong = _wrong(row)
    if wrong is not None:
        raise Impossible(f"rows.{number} (id {str(row.get('id'))[:60]!r}): {wrong}")


def _wrong(row: dict[str, Any]) -> str | None:
    get = row.get
    for name in _TIMES:
        value = get(name)
        if value is not None and not (type(value) in _NUMBER and 0 <= value <= MOST):
            return _said(name, value, "no time")
    for name in _COUNTS:
        value = get(name)
        if value is not None and not (type(value) is int and 0 <= value <= MOST):
            return _said(name, value, "no count")
    for name in _RATES:
        value = get(name)
        if value is not None and not (type(value) in _NUMBER and LEAST_RATE <= value <= MOST):
            return _said(name, value, "no rate")
    for name in _TEXTS:
        value = get(name)
        if value is not None and type(value) is not str:
            return _said(name, value, "no text")
    if type(get("id")) is not str:
        return _said("id", get("id"), "no text")
    if get("status") not in ("ok", "failed"):
        return _said("status", get("status"), "neither ok nor failed")
    first, end = get("ttft_s"), get("e2e_s")
    if first is not None and end is not None and end < first:
        return f"it ended (e2e_s {end}) before its first token (ttft_s {first})"
    return _wrong_arrivals(get("arrivals"))


def _wrong_arrivals(arrivals: Any) -> str | None:
    if not arrivals:
        return None
    if type(arrivals) is not list or not set(map(type, arrivals)) <= {int, float}:
        return _said("arrivals", arrivals, "no list of times")
    if arrivals != sorted(arrivals):
        return "arrivals are not in the order of time"
    if not (arrivals[0] >= 0 and arrivals[-1] <= MOST):
        return _said("arrivals", arrivals[0] if arrivals[0] < 0 else arrivals[-1], "no time")
    return None


def _said(name: str, value: object, what: str) -> str:
    return f"{name} is {repr(value)[:60]}, {what} that was measured"


def require_summary(summary: Summary, rows: int) -> None:
    """Impossible if the summary has a number that no rows add up to, or counts requests of which no row is there."""
    for name, value in vars(summary).items():
        if type(value) in _NUMBER and not 0 <= value <= MOST:
            raise Impossible(f"summary: {_said(name, value, 'no number')}")
    if not rows and summary.requests:
        raise Impossible(f"rows: there are none, and the summary counts {summary.requests} requests")
