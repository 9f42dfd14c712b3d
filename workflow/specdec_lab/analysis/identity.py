"""M5, M33, B2, case D4: is it still the baseline's text, judged against how often the baseline repeats itself.

Even at temperature 0 two runs of one server may part: batching changes the shape of the arithmetic, rounding changes
with it, and where two next tokens are almost equally likely the other one wins. Such flips are rare, come late as often
as early, and happen without speculation too. So equality is counted twice: mode against baseline, and baseline against
its own second start (the control). What counts is the excess.

The number that is shown is that of the mode's worst start against the baseline's first; the excess is taken over all
pairs of starts. Answer, tool calls and reasoning are compared each on its own. A prompt that got no text in either is
left out: two empty answers say nothing of what becomes of a text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..quantities import median
from ..records.base import Finding
from ..records.comparison import Channel, Difference, Identity, IdentityWord
from .answers import Text, Texts, compared, parted, silent, speaks
from .degeneration import fault
from .findings import finding
from .finishing import Endings, qualified
from .statistics import fisher_more

SHOWN = 20
"""At most so many differences are kept, the earliest first."""
EARLY_CHARS = 40
"""A first difference before this character is early..."""
EARLY_SHARE = 0.1
"""...or, in a short text, within this share of it."""
SYSTEMATIC_SHARE = 0.1
"""More texts than this that differ in every start are no chance, however much the baseline varies by itself."""
UNSOUND_SHARE = 0.1
"""A baseline that parts early from its own start, or goes wrong, in more texts than this is no reference."""
SIGNIFICANT = 0.05
"""Fisher p below which a mode differs more often than the control."""


CHANNELS: tuple[Channel, ...] = ("answer", "tool_calls", "reasoning")
"""In this order the first channel that differs is the one that is shown."""


def first_difference(ours: str, theirs: str) -> int | None:
    """Index of the first character that differs, len of the shorter for a strict prefix; None for equal texts."""
    if ours == theirs:
        return None
    low, high = 0, min(len(ours), len(theirs))
    while low < high:
        middle = (low + high + 1) // 2
        if ours[:middle] == theirs[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def early(difference: Difference) -> bool:
    """Whether two texts part so soon that rounding is an unlikely cause."""
    return difference.at_char < min(EARLY_CHARS, EARLY_SHARE * max(difference.baseline_length, 1)) or (
        difference.at_char < 5
    )


def differences(ours: Texts, theirs: Texts) -> list[Difference]:
    """Every prompt in both of which a channel is not the baseline's, with the first such channel, earliest first."""
    found = []
    for prompt in sorted(ours.keys() & theirs.keys()):
        mine, other = ours[prompt], theirs[prompt]
        if parted(mine, other):
            shown = (_difference(prompt, channel, mine, other) for channel in CHANNELS)
            found += [one for one in shown if one is not None][:1]
    return sorted(found, key=lambda one: (one.at_char, one.id))


def _difference(prompt: str, channel: Channel, mine: Text, other: Text) -> Difference | None:
    ours, theirs = getattr(mine, channel) or "", getattr(other, channel) or ""
    place = first_difference(ours, theirs)
    if place is None:
        return None
    wrong = fault(ours) if ours or channel == "answer" or not speaks(mine) else None
    if wrong == "empty" and mine.tool_calls:
        # It called a tool instead of answering: another text, but not none.
        wrong = None
    if wrong is not None and wrong == fault(theirs):
        wrong = None
    cut = place == len(ours)
    return Difference(
        id=prompt,
        channel=channel,
        at_char=place,
        length=len(ours),
        baseline_length=len(theirs),
        finish_reason=mine.finish,
        baseline_finish_reason=other.finish,
        prefix=cut or place == len(theirs),
        degenerate=wrong or ("truncated" if cut and ours else None),
        excerpt=_excerpt(ours, place),
        baseline_excerpt=_excerpt(theirs, place),
    )


def _excerpt(text: str, place: int) -> str:
    return text[max(place - 30, 0) : place + 30]


def judge(
    starts: Sequence[Texts],
    baseline: Sequence[Texts],
    *,
    identical_share: float,
    temperature: float,
    lossy: bool,
    batched: bool,
    ties: Mapping[str, float] | None = None,
    tie_gap: float = 0.0,
) -> Identity:
    """The verdict on a mode's texts, per start, against the baseline's starts (the first one is the reference).

    `replicate` of the result is the place of the start that is shown among `starts`.

    `ties` maps a prompt to the gap of log probabilities that a probe found at its first difference; gaps up to
    `tie_gap` are near-ties.
    """
    if not starts or not baseline:
        return Identity(
            word="not judged", n=0, identical=0, reasons=[finding("no_baseline", "There is nothing to compare with.")]
        )
    reference = baseline[0]
    repeats = [differences(one, reference) for one in baseline[1:]]
    per_start = [differences(one, reference) for one in starts]
    worst = max(range(len(starts)), key=lambda i: (len(per_start[i]), -i))
    found = [_probed(_excused(one, repeats), ties, tie_gap) for one in per_start[worst]]
    ours = starts[worst]
    both, mute = compared(ours, reference), silent(ours, reference)
    ends = Endings.over(starts, baseline)
    control = max(repeats, key=len, default=None)
    control_n = min((len(compared(one, reference)) for one in baseline[1:]), default=None)
    with_calls = [p for p in both if ours[p].tool_calls or reference[p].tool_calls]
    with_reasoning = [p for p in both if ours[p].reasoning or reference[p].reasoning]
    places = [one.at_char for one in found]
    result = Identity(
        word="not judged",
        replicate=worst,
        n=len(both),
        identical=len(both) - len(found),
        control_n=control_n,
        control_identical=None if control is None or control_n is None else control_n - len(control),
        reasoning_n=len(with_reasoning) or None,
        reasoning_identical=(
            sum((ours[p].reasoning or "") == (reference[p].reasoning or "") for p in with_reasoning)
            if with_reasoning
            else None
        ),
        tool_calls_n=len(with_calls) or None,
        tool_calls_identical=(
            sum((ours[p].tool_calls or "") == (reference[p].tool_calls or "") for p in with_calls)
            if with_calls
            else None
        ),
        silent=len(mute),
        median_at_char=median(places),
        earliest_at_char=min(places, default=None),
        truncated=sum(one.degenerate == "truncated" for one in found),
        degenerate=sum(one.degenerate in ("loop", "empty") for one in found),
        finish_differs=sum(ours[p].finish != reference[p].finish for p in both),
        finish_only_differs=len(ends.prompts),
        control_finish_only_differs=ends.own,
        differences=found[:SHOWN],
    )
    excess = _Excess.over(starts, baseline)
    result = result.model_copy(update={"differing_share": excess.mode, "control_differing_share": excess.control})
    if lossy:
        return _with(result, "not judged", [finding("lossy", "This verification may change the text by design.")])
    if temperature > 0:
        return _with(result, "not judged", [finding("sampling", f"Measured at temperature {temperature:g}.")])
    if unsound := no_reference(baseline):
        return _with(result, "not judged", [unsound])
    word, reasons = _word(result, found, control, excess, systematic(starts, baseline), identical_share)
    word, reasons = qualified(word, reasons, ends)
    if mute:
        text = f"{len(mute)} of {len(mute) + len(both)} prompts got no text in either mode ({', '.join(mute[:3])})."
        reasons.append(finding("no_text", text))
    if batched and found:
        reasons.append(finding("batched", "More than one request ran at a time."))
    return _with(result, word, reasons)


def no_reference(baseline: Sequence[Texts]) -> Finding | None:
    """Whether the baseline differs so much from its own start that nothing can be held against it.

    Late flips at near-ties are its own variation, however many: long answers of large batches mostly have one. More
    than a few texts that part almost at once, or are cut short, empty or loop in one start alone, are a fault of the
    server, of which a mode may have its share.
    """
    for other in baseline[1:]:
        n = len(compared(other, baseline[0]))
        # In either direction: it may be the first start that went wrong.
        ours, theirs = differences(other, baseline[0]), differences(baseline[0], other)
        soon = sum(early(one) for one in ours)
        spoilt = max(sum(one.degenerate is not None for one in found) for found in (ours, theirs))
        if max(soon, spoilt) > max(1.0, UNSOUND_SHARE * n):
            told = f"The baseline differs from its own start in {len(ours)} of {n} texts"
            more = [f"{soon} almost at once"] * bool(soon) + [f"{spoilt} cut short, empty or looping"] * bool(spoilt)
            return finding("no_reference", ", ".join([told, *more]) + ": it is no reference for a text.")
    return None


def _with(result: Identity, word: IdentityWord, reasons: list[Finding]) -> Identity:
    return result.model_copy(update={"word": word, "reasons": reasons})


def _excused(one: Difference, repeats: Sequence[Sequence[Difference]]) -> Difference:
    """What went wrong in the same way on the same prompt in another start of the baseline is no fault of the mode."""
    if any((one.id, one.degenerate) == (own.id, own.degenerate) for found in repeats for own in found):
        return one.model_copy(update={"degenerate": None})
    return one


def _probed(one: Difference, ties: Mapping[str, float] | None, tie_gap: float) -> Difference:
    if not ties or one.id not in ties:
        return one
    return one.model_copy(update={"gap": ties[one.id], "near_tie": ties[one.id] <= tie_gap})


@dataclass(frozen=True)
class _Excess:
    """Rates of differing prompts, averaged over all pairs of starts, and how sure their difference is."""

    mode: float
    control: float | None
    error: float

    @classmethod
    def over(cls, starts: Sequence[Texts], baseline: Sequence[Texts]) -> _Excess:
        """Mode against every baseline start, and every baseline start against every other."""
        mode = _rate([(one, other) for one in starts for other in baseline])
        pairs = [(baseline[j], baseline[i]) for i in range(len(baseline)) for j in range(i + 1, len(baseline))]
        prompts = max(len(starts[0]), 1)
        if not pairs:
            return cls(mode, None, 0.0)
        control = _rate(pairs)
        chance = (mode + control) / 2
        return cls(mode, control, math.sqrt(chance * (1 - chance) * (1 / len(starts) + 1 / len(pairs)) / prompts))


def _rate(pairs: Sequence[tuple[Texts, Texts]]) -> float:
    prompts = differing = 0
    for one, other in pairs:
        both = compared(one, other)
        prompts += len(both)
        differing += sum(one[p] != other[p] and parted(one[p], other[p]) for p in both)
    return differing / prompts if prompts else 0.0


def systematic(starts: Sequence[Texts], baseline: Sequence[Texts]) -> int | None:
    """Prompts on which all starts of the baseline agree and every start of the mode differs from them.

    Chance flips hardly ever do that; a fault does, and so does rounding that speculation changes in the same way each
    time. None with fewer than two starts on either side.
    """
    if len(starts) < 2 or len(baseline) < 2:
        return None
    shared = set.intersection(*(set(one) for one in [*starts, *baseline]))
    first = baseline[0]
    agreed = [p for p in shared if not any(parted(one[p], first[p]) for one in baseline[1:])]
    return sum(all(parted(one[p], first[p]) for one in starts) for p in agreed)


def _word(
    result: Identity,
    found: Sequence[Difference],
    control: Sequence[Difference] | None,
    excess: _Excess,
    systematic: int | None,
    identical_share: float,
) -> tuple[IdentityWord, list[Finding]]:
    """Case D4, in the order in which the questions are asked."""
    n, differing = result.n, len(found)
    if n == 0 and result.silent:
        return "not judged", []
    if n == 0:
        return "not judged", [finding("no_baseline", "No prompt was answered in both modes.")]
    reasons: list[Finding] = []
    if control is None:
        reasons.append(finding("no_control", "The baseline ran once, so its own variation is unknown."))
    if differing == 0:
        return "same", [*reasons, finding("same_text", f"{n}/{n} texts are the baseline's.")]
    told = f"{differing}/{n} differ{'s' if differing == 1 else ''}, first at character {result.earliest_at_char}"
    if result.reasoning_n and all(one.channel == "reasoning" for one in found):
        reasons.append(finding("reasoning_differs", f"{differing} of {n} differ in their reasoning only."))
    if result.tool_calls_n and all(one.channel == "tool_calls" for one in found):
        reasons.append(finding("tool_calls_differ", f"{differing} of {n} differ in their tool calls only."))
    allowed = (1 - identical_share) * n
    probed = [one for one in found if one.near_tie is not None]
    real = sum(one.near_tie is False for one in probed)
    if real > max(allowed, 1.0):
        return "differs", [*reasons, finding("real_difference", f"{told}; {real} of {len(probed)} probed are real.")]
    if result.truncated:
        text = f"{result.truncated} of {n} texts break off where every start of the baseline goes on."
        reasons.append(finding("truncation", text))
    if result.degenerate:
        text = f"{result.degenerate} of {n} texts loop or are empty, in no start of the baseline."
        reasons.append(finding("degenerate", text))
    own = len(control) if control is not None else 0
    own_n = result.control_n or n
    spoilt = result.truncated + result.degenerate
    own_spoilt = sum(one.degenerate is not None for one in control or [])
    if spoilt > max(allowed, 1) and spoilt > own_spoilt:
        return "differs", [*reasons, finding("text_differs", f"{told}; {spoilt} are cut short, loop or are empty.")]
    if len(probed) == min(differing, SHOWN) and not spoilt:
        text = f"{told}; {len(probed) - real} of {len(probed)} probed are near-ties."
        return "within own variation", [*reasons, finding("near_ties", text)]
    soon = sum(early(one) for one in found)
    more = fisher_more(differing, n, own, own_n) < SIGNIFICANT
    if n == differing == soon == systematic and control is not None and not own:
        text = f"{told}; all part almost at once, in every start. {_beside(result)}"
        return "differs", [*reasons, finding("text_differs", text)]
    if more and differing > allowed and soon * 2 >= differing and (soon * 5 >= n or control is not None):
        return "differs", [*reasons, finding("text_differs", f"{told}; {soon} part almost at once. {_beside(result)}")]
    if more and control is not None and differing * 2 >= n:
        return "differs", [*reasons, finding("text_differs", f"{told}: most of them. {_beside(result)}")]
    if control is None:
        return "undecided", [*reasons, finding("text_undecided", f"{told}.")]
    soon_control = sum(early(one) for one in control)
    allowed = max(allowed, 1.0)
    as_rare = excess.control is not None and excess.mode - excess.control <= (1 - identical_share) + excess.error
    random = systematic is None or systematic <= max(allowed, min(own, SYSTEMATIC_SHARE * n))
    if own and not more and as_rare and random and soon <= soon_control + allowed and not spoilt:
        text = f"{told}; not distinguishable from the baseline's own variation. {_beside(result)}"
        return "within own variation", [*reasons, finding("own_variation", text)]
    late = "" if soon else ", late"
    always = f" {systematic} in every start of the mode." if systematic else ""
    return "undecided", [*reasons, finding("text_undecided", f"{told}{late}: undecided.{always} {_beside(result)}")]


def _beside(result: Identity) -> str:
    if result.control_n is None or result.control_identical is None:
        return ""
    return f"Baseline against itself: {result.control_n - result.control_identical}/{result.control_n} differ."
