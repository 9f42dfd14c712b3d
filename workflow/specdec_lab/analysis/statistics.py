"""Gains and their uncertainty, with the server start as the unit (B1, M25, M31; cases D8, D9). Every formula is here.

Why not the requests? Between two starts of the very same server, public studies found from 0.4 % to 11 % difference
(memory layout, clocks, kernel choice, scheduling). Hundreds of requests inside one start share that shift, so an
interval over requests is narrow and wrong. One start gives one number; its spread is seen only by starting again.

Notation: x[m, i] is one quantity (a P50 decode rate, say) of start i of mode m; y = log x.

    gain          g    = mean_i y[m, i] - mean_j y[b, j]               printed as exp(g)
    pooled sd     s^2  = sum over modes and starts of (y - mean of its mode)^2 / nu,   nu = sum over modes of (R - 1)
    moderated sd  s'^2 = (d0 * s0^2 + nu * s^2) / (d0 + nu)            with d0 = 2, s0 = 0.03
    standard error     = s' * sqrt(1 / R_m + 1 / R_b)
    interval           = exp(g -+ t(confidence, d0 + nu) * standard error)
    shown at all  g    > t(1 - level, d0 + nu) * standard error,  and every start of the mode beats every start of the
                         baseline,  and exp(g) - 1 exceeds the noise floor
    noise floor        = exp(root mean square of y[i] - y[j] over all pairs of the baseline's starts) - 1: for two
                         starts their spread, for more what two typically differ by (a placebo's starts count too)
    spread between starts = fastest start / slowest start - 1

Size and certainty are asked of two quantities. The size is that of P50 decode, for that is what one user feels. Whether
there is a difference at all is asked of the per-prompt mean (see `pairing`), which is steadier, if enough prompts pair.

Two starts per mode leave a plain t interval with two degrees of freedom, which is useless. Two things make it honest
and usable: the variance is pooled over all modes of the cell, and it is moderated (as in Smyth 2004, Stat. Appl. Genet.
Mol. Biol. 3:3) by a prior worth `PRIOR_DEGREES` starts at `PRIOR_SD`, the middle of what public studies found. The
prior keeps two starts that happen to agree from claiming certainty. The one-sided level is stricter where there are few
starts or much noise (`level_for`); `make trust` shows what that costs and what it prevents.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ..records.comparison import Gain

PRIOR_SD = 0.03
"""Between-start standard deviation of a log rate that is believed before any start was measured."""
PRIOR_DEGREES = 2.0
"""How many degrees of freedom that belief is worth."""
LEVEL_FEW, LEVEL_MANY, LEVEL_NOISY = 0.0005, 0.002, 0.0001
"""One-sided error level of `shown`: with two or three starts, from four on, and in a noisy cell with three or more."""
NOISY = 0.05
"""A noise floor above this makes a cell noisy."""


@dataclass(frozen=True)
class Spread:
    """How much starts of one mode differ, pooled over the modes of a cell."""

    sd: float | None
    """Pooled standard deviation of log x; None when no mode has two starts."""
    degrees: float
    """nu: its degrees of freedom."""

    @property
    def moderated(self) -> float:
        """s': the pooled standard deviation together with the prior."""
        measured = self.degrees * self.sd**2 if self.sd is not None else 0.0
        return math.sqrt((PRIOR_DEGREES * PRIOR_SD**2 + measured) / (PRIOR_DEGREES + self.degrees))


def logs(values: Iterable[float | None]) -> list[float]:
    """Natural logarithms of the values that exist and are above 0; a rate of 0 is no measurement of a speed."""
    return [math.log(value) for value in values if value is not None and value > 0]


def pooled(groups: Iterable[Sequence[float]]) -> Spread:
    """Pooled between-start spread of several modes, each given as its starts' logs."""
    squares = 0.0
    degrees = 0
    for group in groups:
        if len(group) > 1:
            mean = fmean(group)
            squares += math.fsum((value - mean) ** 2 for value in group)
            degrees += len(group) - 1
    return Spread(sd=math.sqrt(squares / degrees) if degrees else None, degrees=float(degrees))


def geometric_mean(values: Sequence[float | None]) -> float | None:
    """exp(mean of logs); None when no value is above 0."""
    known = logs(values)
    return math.exp(fmean(known)) if known else None


def start_spread(values: Sequence[float | None]) -> float | None:
    """The spread between starts: fastest / slowest - 1, as a share; None with fewer than two values."""
    known = logs(values)
    return math.expm1(max(known) - min(known)) if len(known) > 1 else None


def noise_floor(values: Sequence[float | None]) -> float | None:
    """How far two starts of one mode typically differ: exp(root mean square of log differences over all pairs) - 1.

    With two values it is their spread. The spread of many starts would grow with their number, and so would punish
    whoever measures more. None with fewer than two values.
    """
    spread = pooled([logs(values)])
    return None if spread.sd is None else math.expm1(math.sqrt(2) * spread.sd)


def level_for(starts: int, spread: Spread) -> float:
    """One-sided error level at which a difference counts as shown.

    The moderated sd is too small where the machine is noisier than the prior and a few starts agree by luck; the
    stricter level in a noisy cell makes up for that. With two starts `LEVEL_FEW` does.
    """
    if starts >= 3 and spread.sd is not None and math.sqrt(2) * spread.sd > NOISY:
        return LEVEL_NOISY
    return LEVEL_FEW if starts <= 3 else LEVEL_MANY


def gain(
    mode: Sequence[float | None],
    baseline: Sequence[float | None],
    *,
    spread: Spread,
    floor: float | None,
    margin: float,
    confidence: float,
) -> Gain:
    """The gain of a mode from one number per start, with its interval and the floor that it must beat.

    The interval is refused when either side has a single start. Swapping the two sides gives exactly the reciprocal.
    """
    ours, theirs = logs(mode), logs(baseline)
    if not ours or not theirs:
        return Gain(starts=len(ours), baseline_starts=len(theirs), floor=floor, refused="nothing was measured")
    base = fmean(theirs)
    estimate = fmean(ours) - base
    per_start = [math.exp(value - base) for value in ours]
    known = Gain(
        ratio=math.exp(estimate),
        floor=floor,
        starts=len(ours),
        baseline_starts=len(theirs),
        between_start_sd=spread.sd,
        degrees=spread.degrees,
        per_start=per_start,
    )
    fewest = min(len(ours), len(theirs))
    if fewest < 2:
        side = "the mode" if len(ours) < 2 else "the baseline"
        return known.model_copy(update={"refused": f"{side} has one start, which cannot show its own spread"})
    error = standard_error(len(ours), len(theirs), spread)
    half = quantile(1 - (1 - confidence) / 2, spread) * error
    needed = max(math.exp(quantile(1 - level_for(fewest, spread), spread) * error), 1 + margin, 1 + (floor or 0.0))
    return known.model_copy(
        update={
            "low": math.exp(estimate - half),
            "high": math.exp(estimate + half),
            "confidence": confidence,
            "smallest_adoptable": needed,
        }
    )


def standard_error(starts: int, baseline_starts: int, spread: Spread) -> float:
    """Of a difference of two means of logs: s' * sqrt(1 / R_m + 1 / R_b)."""
    return spread.moderated * math.sqrt(1 / starts + 1 / baseline_starts)


def shown(measured: Gain, mode: Sequence[float | None], baseline: Sequence[float | None], spread: Spread) -> bool:
    """Whether a gain above 1 is shown: at the strict level, beyond the floor, each start above each baseline start."""
    ours, theirs = logs(mode), logs(baseline)
    fewest = min(len(ours), len(theirs))
    if measured.ratio is None or fewest < 2:
        return False
    needed = quantile(1 - level_for(fewest, spread), spread) * standard_error(len(ours), len(theirs), spread)
    beyond_floor = measured.floor is None or measured.ratio - 1 > measured.floor
    return math.log(measured.ratio) > needed and beyond_floor and min(ours) > max(theirs)


def starts_needed(ratio: float, spread: Spread, modes: int) -> int | None:
    """Starts per mode with which a gain of this size would be shown at the spread seen; None if 12 are not enough.

    `modes` counts the modes whose starts are pooled. Half a standard error is added: likely, not a toss-up.
    """
    if ratio <= 1:
        return None
    for starts in range(2, 13):
        later = Spread(sd=spread.sd, degrees=float(max(modes, 2) * (starts - 1)))
        error = standard_error(starts, starts, later)
        if math.log(ratio) > (quantile(1 - level_for(starts, later), later) + 0.5) * error:
            return starts
    return None


def quantile(probability: float, spread: Spread) -> float:
    """Quantile of Student's t with d0 + nu degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(PRIOR_DEGREES + spread.degrees, probability))


def fisher_more(ours: int, of_ours: int, theirs: int, of_theirs: int) -> float:
    """One-sided Fisher exact p: how likely so many or more of ours are, if both have the same chance."""
    total, hits = of_ours + of_theirs, ours + theirs
    if of_ours == 0 or of_theirs == 0 or hits == 0:
        return 1.0
    ways = math.comb(total, hits)
    top = min(hits, of_ours)
    return sum(math.comb(of_ours, k) * math.comb(of_theirs, hits - k) for k in range(ours, top + 1)) / ways
