"""One word per row of the table, from a closed list, with its reasons (M7, M25).

The questions are asked in this order, and the first answer stands: may it be compared at all; did it speculate; is the
text still the baseline's; is the measurement to be trusted; is there a difference, and is it shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records.base import Finding
from ..records.comparison import Gain, Identity
from ..records.decision import DecisionRules
from ..records.verdict import Verdict, Word
from .comparable import BLOCKING
from .drift import OUTGROWN
from .findings import errors, finding

Noise = tuple[float | None, float | None]
"""How far two starts typically differ, as a share: of the baseline (its noise floor) and of the mode."""
UNUSED = frozenset({"not_exercised", "speculation_absent"})


def verdict(
    *,
    decode: Gain | None,
    per_prompt: Gain | None,
    is_shown: bool,
    judged: Gain | None,
    starts_needed: int | None,
    identity: Identity | None,
    findings: Sequence[Finding],
    noise: Noise,
    rules: DecisionRules,
) -> Verdict:
    """The verdict on P50 decode of one mode in one cell.

    `judged`: the gain that `is_shown` was asked of. `noise`: of the baseline and of the mode.
    """
    blocked = [one for one in findings if one.code in BLOCKING and one.severity == "error"]
    if blocked:
        return Verdict(word="not comparable", reasons=blocked)
    unused = [one for one in findings if one.code in UNUSED]
    if unused:
        return Verdict(word="not exercised", reasons=unused)
    if identity is not None and identity.word == "differs":
        return Verdict(word="text differs", reasons=[one for one in identity.reasons if one.severity != "info"])
    if decode is None or decode.ratio is None:
        return Verdict(
            word="not comparable", reasons=[finding("no_baseline", "There is no decode rate on both sides.")]
        )
    grave = errors(list(findings))
    if grave:
        return Verdict(word="unreliable", reasons=grave)
    word, reasons = _difference(decode, per_prompt, is_shown, judged, starts_needed, noise, rules)
    return Verdict(word=word, reasons=[*reasons, *(one for one in findings if one.severity == "warn")])


def _difference(
    gain: Gain,
    per_prompt: Gain | None,
    is_shown: bool,
    judged: Gain | None,
    starts_needed: int | None,
    noise: Noise,
    rules: DecisionRules,
) -> tuple[Word, list[Finding]]:
    ratio = gain.ratio or 1.0
    told = f"{ratio:.2f}x P50 decode"
    if per_prompt is not None and per_prompt.ratio is not None and abs(per_prompt.ratio - ratio) > 0.02 * ratio:
        told += f", {per_prompt.ratio:.2f}x per prompt"
    if gain.baseline_starts < 2:
        return "undecided", [finding("no_floor", f"{told}, but the baseline ran once: there is no noise floor.")]
    size = max(ratio, 1 / ratio) - 1
    floor = gain.floor or 0.0
    if size <= floor:
        text = f"{told} lies inside the noise floor of {floor:.1%}."
        return "no difference shown", [finding("inside_floor", text)]
    for who, known in zip(("the baseline", "this mode"), noise, strict=True):
        typical = known or 0.0
        if typical >= rules.noise_limit and size < OUTGROWN * typical:
            text = f"Two starts of {who} typically differ by {typical:.1%} ({told})."
            return "unreliable", [finding("noise_high", text)]
    if gain.starts < 2:
        return "undecided", [finding("one_start", f"{told} from a single start.")]
    if is_shown:
        return "faster", [finding("clear_gain", f"{told} ({_range(gain)}), noise floor {floor:.1%}.")]
    if gain.low is None or gain.high is None:
        return "undecided", [finding("one_start", f"{told}; {gain.refused}.")]
    if gain.high < 1:
        return "slower", [finding("clear_loss", f"{told} ({_range(gain)}), noise floor {floor:.1%}.")]
    have = min(gain.starts, gain.baseline_starts)
    more = f" About {max(starts_needed, have + 1)} starts of each would show it." if starts_needed else ""
    if gain.low > 1 or ratio >= 1 + rules.margin:
        text = f"{told} ({_range(gain)}) is not sure enough with {have} starts{_least(judged)}.{more}"
        return "undecided", [finding("not_sure_enough", text)]
    return "no difference shown", [finding("interval_spans_one", f"{told} ({_range(gain)}).")]


def _least(judged: Gain | None) -> str:
    """What could have been shown, where that is what the gain falls short of."""
    if judged is None or judged.ratio is None or judged.smallest_adoptable is None:
        return ""
    if judged.ratio >= judged.smallest_adoptable:
        return ""
    return f": they lie so far apart that {judged.smallest_adoptable:.2f}x or more was needed"


def _range(gain: Gain) -> str:
    if gain.low is None or gain.high is None:
        return "no interval"
    return f"{gain.confidence or 0:.0%} interval {gain.low:.2f} to {gain.high:.2f}"
