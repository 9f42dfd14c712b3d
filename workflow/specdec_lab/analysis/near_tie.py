"""B2, D4: is the first difference of two texts a near-tie? The pure part of the probe.

At the first character that differs, the server is asked for the most likely next tokens after the common beginning. The
two candidates are the tokens that lead into either text; their log probabilities differ by a gap in nats. A gap that
rounding can turn over is a near-tie; a larger one means that the mode took a token that the target did not
want.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

TIE_GAP = 0.2
"""Nats. Logits near 20 are spaced by about 0.016 in fp16 and 0.125 in bf16: one such step, and a little."""


@dataclass(frozen=True)
class Candidate:
    """One of the most likely next tokens, as text, with its log probability."""

    token: str
    logprob: float


def common_beginning(ours: str, theirs: str, at_char: int) -> str:
    """What both texts share before they part."""
    return theirs[: min(at_char, len(ours))]


def gap(candidates: Sequence[Candidate], ours: str, theirs: str, at_char: int) -> float | None:
    """Log probability of the token that leads into the baseline's text minus that of the one into the mode's.

    Negative values (the server itself now prefers the mode's token) count as 0: it is a tie that fell the other way.
    None when either token is not among the candidates: then nothing can be said. A text that ended there has no token,
    unless the server names the end with an empty text.
    """
    mine, base = _leading(candidates, ours[at_char:]), _leading(candidates, theirs[at_char:])
    if mine is None or base is None or mine == base:
        return None
    return max(base.logprob - mine.logprob, 0.0)


def _leading(candidates: Sequence[Candidate], rest: str) -> Candidate | None:
    """The longest candidate that the rest begins with; for an ended text the empty one."""
    fitting = [one for one in candidates if (rest.startswith(one.token) if rest else not one.token)]
    fitting = [one for one in fitting if one.token or not rest]
    return max(fitting, key=lambda one: len(one.token), default=None)
