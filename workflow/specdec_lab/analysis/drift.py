"""D8, M25: does the machine change while we measure? Order, opening and closing baseline, clocks.

A drift is told from noise by time: the closing baseline against the opening one. With interleaved starts a linear drift
cancels out of every gain; without, the part of a gain that the baseline's own trend explains is not a gain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from statistics import fmean

from ..records.base import Finding
from ..records.comparison import CellResult
from .cells import Measured
from .findings import finding
from .statistics import Spread, logs, quantile

OUTGROWN = 2.0
"""A difference this many times as large as the noise or the drift beside it is not made by them."""
REACH = 2.0
"""A trend of the baseline is drawn out over so many times the span of its starts, and no further."""
DRAWN_OUT = 0.995
"""How sure a gain over a trend that is drawn out in time must be (one-sided)."""
SMALL = (
    "It is small beside the difference, so the verdict stands. For an exact ratio let the machine settle, nothing else "
    "running and clocks fixed, and repeat."
)
"""What to do about a drift that changes no verdict."""
CLOCK_SHARE = 0.03
"""Median clocks of a mode and its baseline further apart than this are not the same machine."""


def in_time(cells: Sequence[Measured]) -> list[Measured]:
    """In the order in which they ran (RFC 3339 texts in UTC sort as they are), then by replicate."""
    return sorted(cells, key=lambda cell: (cell.started_at, cell.replicate))


def opening_to_closing(baseline: Sequence[Measured]) -> float | None:
    """Closing P50 decode / opening - 1, relative to their mean; None with fewer than two starts."""
    rates = [rate for cell in in_time(baseline) if (rate := cell.p50_decode)]
    if len(rates) < 2:
        return None
    return (rates[-1] - rates[0]) / ((rates[-1] + rates[0]) / 2)


def machine(baseline: Sequence[Measured], *, limit: float) -> list[Finding]:
    """Drift of the baseline over the run, and heat."""
    found = []
    drift = opening_to_closing(baseline)
    ordered = in_time(baseline)
    if drift is not None and abs(drift) >= limit:
        first, last = ordered[0].p50_decode, ordered[-1].p50_decode
        clocks = [cell.heat.sm_clock_mhz for cell in ordered if cell.heat.sm_clock_mhz]
        heat = (
            f", clocks {clocks[0]:.0f} -> {clocks[-1]:.0f} MHz" if len(clocks) > 1 and clocks[0] != clocks[-1] else ""
        )
        found.append(
            finding(
                "drift",
                f"The baseline drifted from {first:.4g} to {last:.4g} tok/s between its first and last start{heat}.",
            )
        )
    return found


def suspects(cells: Sequence[Measured]) -> str:
    """What may have moved the rates between these starts, by what the cards' readings leave.

    The clock is named when the slower start had the slower clock and that makes up half of the difference or more.
    """
    rated = sorted((rate, cell.heat.sm_clock_mhz or 0.0) for cell in cells if (rate := cell.p50_decode))
    clocks = [clock for _, clock in rated if clock]
    if len(clocks) < max(len(rated), 2) or any(cell.heat.throttle for cell in cells):
        return "other work, throttling, or settling clocks"
    (slow, slow_clock), (fast, fast_clock) = (rated[0][0], clocks[0]), (rated[-1][0], clocks[-1])
    if fast_clock > slow_clock * (1 + CLOCK_SHARE) and math.log(fast_clock / slow_clock) * 2 >= math.log(fast / slow):
        return f"the card's clock was {slow_clock:.0f} MHz in the slowest and {fast_clock:.0f} MHz in the fastest"
    low, high = min(clocks), max(clocks)
    clock = f"{low:.0f} MHz" if low == high else f"{low:.0f} to {high:.0f} MHz"
    return f"not the card's clock ({clock}), so rather other work on the CPUs, or too short a cell"


def throttling(cells: Sequence[Measured]) -> list[Finding]:
    """Reasons for which the driver lowered the clocks."""
    reasons = sorted({reason for cell in cells for reason in cell.heat.throttle})
    return (
        [finding("throttled", f"{cells[0].mode}: the card lowered its clocks ({', '.join(reasons)}).")]
        if reasons
        else []
    )


def explains(
    cells: Sequence[Measured], baseline: Sequence[Measured], *, spread: Spread, margin: float
) -> list[Finding]:
    """Whether the baseline's trend over time, followed to the moments of the mode's starts, accounts for the gain.

    Least squares of y = log P50 decode over the time x in the run, baseline only. A mode that ran between the opening
    and the closing baseline must still clear the margin against the trend. One that ran outside that time must do so
    with certainty, for a trend that is drawn out is a guess: its gain against the trend must exceed
    t * s' * sqrt(1/R_m + 1/R_b + (mean x_m - mean x_b)^2 / sum (x_b - mean x_b)^2). Further away than `REACH` times the
    span of the baseline's starts nothing is known of the machine, and nothing is worked out.
    """
    base = [(at, math.log(rate)) for cell in baseline if (at := _moment(cell)) and (rate := cell.p50_decode)]
    ours = [(at, math.log(rate)) for cell in cells if (at := _moment(cell)) and (rate := cell.p50_decode)]
    moments = [x for x, _ in [*base, *ours]]
    if len(base) < 2 or not ours or len(set(moments)) < len(moments):
        return []
    mean_x, mean_y = fmean([x for x, _ in base]), fmean([y for _, y in base])
    width = math.fsum((x - mean_x) ** 2 for x, _ in base)
    slope = math.fsum((x - mean_x) * (y - mean_y) for x, y in base) / width
    plain = fmean([y for _, y in ours]) - mean_y
    adjusted = fmean([y - (mean_y + slope * (x - mean_x)) for x, y in ours])
    first, last = min(x for x, _ in base), max(x for x, _ in base)
    gap = max(max(x for x, _ in ours) - last, first - min(x for x, _ in ours))
    found = []
    needed = math.log1p(margin)
    if gap > 0:
        text = f"{cells[0].mode} ran outside the time between opening and closing baseline"
        if gap > REACH * (last - first):
            text += f", {_duration(gap)} away from it: too far to tell a gain from a change of the machine."
            return [finding("not_bracketed", text, severity="error")]
        found.append(finding("not_bracketed", f"{text}."))
        away = fmean([x for x, _ in ours]) - mean_x
        error = spread.moderated * math.sqrt(1 / len(ours) + 1 / len(base) + away**2 / width)
        needed = max(needed, quantile(DRAWN_OUT, spread) * error)
    if plain >= math.log1p(margin) and adjusted < needed:
        text = (
            f"{math.exp(plain):.3f}x, but {math.exp(adjusted):.3f}x against the baseline's own trend over the run, "
            f"where {math.exp(needed):.3f}x is needed."
        )
        found.append(finding("drift_explains", text))
    return found


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def outgrown(found: Sequence[Finding], ratio: float | None, drift: float | None) -> list[Finding]:
    """The findings, with a drift only warned of when the mode's gain is `OUTGROWN` times as large.

    The starts are interleaved, so a drift adds to their spread and hardly to their mean.
    """
    if ratio is None or drift is None or max(ratio, 1 / ratio) - 1 < OUTGROWN * abs(drift):
        return list(found)
    return [_small(one) if one.code == "drift" else one for one in found]


def harmless(found: Sequence[Finding], rows: Sequence[CellResult], drift: float | None) -> list[Finding]:
    """What is said of the baseline itself, with its drift only warned of when it cannot change what is deployed here.

    It cannot when the difference of every mode is `OUTGROWN` times as large as the drift; nor when one mode is shown
    to be faster that far beyond it, and each mode whose difference is smaller would stay behind that one even with
    `OUTGROWN` times the drift added to its ratio. Without a mode to tell by, the finding stays what it is.
    """
    known = [(row, row.decode.ratio) for row in rows if row.decode is not None and row.decode.ratio is not None]
    if drift is None or not known:
        return list(found)
    width = OUTGROWN * abs(drift)
    near = [ratio for _, ratio in known if max(ratio, 1 / ratio) - 1 < width]
    best = max((ratio for row, ratio in known if ratio - 1 >= width and _faster(row)), default=0.0)
    if any(ratio + width >= best for ratio in near):
        return list(found)
    return [_small(one) if one.code == "drift" else one for one in found]


def _faster(row: CellResult) -> bool:
    return row.verdict is not None and row.verdict.word == "faster"


def _small(one: Finding) -> Finding:
    return one.model_copy(update={"severity": "warn", "hint": SMALL})


def clocks(cells: Sequence[Measured], baseline: Sequence[Measured]) -> list[Finding]:
    """Whether mode and baseline ran at the same clocks."""
    ours = logs(cell.heat.sm_clock_mhz for cell in cells)
    theirs = logs(cell.heat.sm_clock_mhz for cell in baseline)
    if not ours or not theirs or abs(fmean(ours) - fmean(theirs)) <= CLOCK_SHARE:
        return []
    text = f"{cells[0].mode} ran at {math.exp(fmean(ours)):.0f} MHz, its baseline at {math.exp(fmean(theirs)):.0f} MHz."
    return [finding("clocks_differ", text)]


def _moment(cell: Measured) -> float | None:
    """When the cell began, in seconds; None when the file does not say."""
    try:
        return datetime.fromisoformat(cell.started_at).timestamp()
    except ValueError:
        return None
