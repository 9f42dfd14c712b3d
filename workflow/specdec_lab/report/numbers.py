"""How numbers are written for people. A missing one is `n/a`; a point is a point in every locale (case E8)."""

from __future__ import annotations

MISSING = "n/a"


def ratio(value: float | None) -> str:
    """A ratio to the baseline: 1.25×."""
    return MISSING if value is None else f"{value:.2f}×"


def interval(low: float | None, high: float | None) -> str:
    """An interval of a ratio: 1.10 to 1.41."""
    return MISSING if low is None or high is None else f"{low:.2f} to {high:.2f}"


def share(value: float | None, *, digits: int = 0) -> str:
    """A share as percent: 0.042 is 4 % (its space never breaks a line)."""
    return MISSING if value is None else f"{100 * value:.{digits}f}\u00a0%"


def rate(value: float | None) -> str:
    """Tokens per second."""
    if value is None:
        return MISSING
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}".replace(",", "\u202f")


def milliseconds(value: float | None) -> str:
    """Seconds as milliseconds."""
    if value is None:
        return MISSING
    return f"{1000 * value:.0f}\u00a0ms" if value >= 0.01 else f"{1000 * value:.1f}\u00a0ms"


def plain(value: float | None, digits: int = 2) -> str:
    """Any other number."""
    return MISSING if value is None else f"{value:.{digits}f}"


def count(part: int | None, whole: int | None) -> str:
    """n of N."""
    return MISSING if part is None or whole is None else f"{part}/{whole}"


def gibibytes(value: int | None) -> str:
    """Bytes as GiB."""
    return MISSING if value is None else f"{value / 2**30:.1f} GiB"
