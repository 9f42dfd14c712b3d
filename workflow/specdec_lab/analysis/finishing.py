"""D4: equal texts that end for another reason (`stop` in one, `length` in the other) are not quite the same answer.

The words agree, but one side wanted to go on and the other was done, or a cap was counted otherwise. An application
that acts on the reason sees two different servers. As with the texts themselves, what the baseline does from one start
to the next is no fault of the mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..records.base import Finding
from ..records.comparison import IdentityWord
from .answers import Texts, compared, parted
from .findings import finding
from .statistics import fisher_more

NAMED = 3
"""So many prompts are named in the remark."""
SIGNIFICANT = 0.05
"""Fisher p below which the mode ends otherwise more often than the baseline from itself."""


def otherwise(ours: Texts, theirs: Texts) -> list[str]:
    """Prompts with equal texts whose finish reasons are both known and differ, sorted."""
    return sorted(
        p
        for p in compared(ours, theirs)
        if not parted(ours[p], theirs[p])
        and ours[p].finish is not None
        and theirs[p].finish is not None
        and ours[p].finish != theirs[p].finish
    )


@dataclass(frozen=True)
class Endings:
    """Equal texts with another finish reason: of the mode's start with most of them, and of the baseline's own."""

    prompts: list[str]
    n: int
    kinds: str
    """What became of what: `stop -> length`."""
    own: int | None
    """In the baseline's start with most of them; None without a second start."""
    own_n: int

    @classmethod
    def over(cls, starts: Sequence[Texts], baseline: Sequence[Texts]) -> Endings:
        """Every start of the mode, and every further start of the baseline, against the baseline's first."""
        reference = baseline[0]
        found = [(otherwise(one, reference), one) for one in starts]
        prompts, ours = max(found, key=lambda pair: len(pair[0]))
        changes = Counter(f"{reference[p].finish} -> {ours[p].finish}" for p in prompts)
        own = [(len(otherwise(one, reference)), len(compared(one, reference))) for one in baseline[1:]]
        most, of = max(own, default=(None, 0), key=lambda pair: pair[0] or 0)
        kinds = ", ".join(change for change, _ in changes.most_common())
        return cls(prompts, len(compared(ours, reference)), kinds, most, of)

    @property
    def excused(self) -> bool:
        """Whether the baseline's own starts do likewise, and no more rarely than chance allows."""
        return bool(self.own) and fisher_more(len(self.prompts), self.n, self.own or 0, self.own_n) >= SIGNIFICANT


def qualified(word: IdentityWord, reasons: list[Finding], ends: Endings) -> tuple[IdentityWord, list[Finding]]:
    """The verdict on the texts with what their ends add to it: `same` is said only where the ends agree too."""
    if not ends.prompts:
        return word, reasons
    named = ", ".join(ends.prompts[:NAMED]) + (", ..." if len(ends.prompts) > NAMED else "")
    told = f"{len(ends.prompts)} of {ends.n} texts are equal but end for another reason ({ends.kinds}): {named}."
    if ends.own is not None:
        told += f" Baseline against itself: {ends.own} of {ends.own_n}."
    if ends.excused:
        own: IdentityWord = "within own variation" if word == "same" else word
        return own, [*reasons, finding("finish_own_variation", told)]
    doubted: IdentityWord = "undecided" if word in ("same", "within own variation") else word
    return doubted, [*reasons, finding("finish_differs", told)]
