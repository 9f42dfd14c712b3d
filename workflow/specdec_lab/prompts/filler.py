"""Own filler text: notes of a weather station that never was. Used to lengthen prompts (M15) and to warm up (M23).

Its length is given in tokens by estimate: a server counts exactly, this only has to be close (within some 15 % for the
tokenizers of the Llama and Qwen families on English). Deterministic in bytes.
"""

from __future__ import annotations

from .draw import Draw

CHARS_PER_TOKEN = 3.9
"""Of this filler: 3.8 with SmolLM2's tokenizer, which splits every digit; a little more where digits stay together."""
_PROSE_CHARS_PER_TOKEN = 4.2
_WIDE_CHARS_PER_TOKEN = 1.5

_SUBJECTS = (
    "the keeper", "a passing fisherman", "the eldest observer", "our second assistant", "the ferry pilot",
    "a visitor from the valley", "the instrument maker", "the harbour clerk", "a school class", "the night watch",
)  # fmt: skip
_VERBS = (
    "noted", "wrote down", "reported", "doubted", "checked twice", "read aloud", "confirmed", "measured", "described",
    "compared",
)  # fmt: skip
_OBJECTS = (
    "a slow fall of the barometer",
    "fresh wind from the south-west", "fog along the lower path", "hail on the slate roof",
    "a halo around the moon", "frost in the rain gauge", "swell without wind", "three swallows on the mast",
    "thunder behind the ridge", "a warm night for the season", "salt on the window panes", "low cloud over the islands",
)  # fmt: skip
_ENDS = (
    "shortly before dawn", "at noon by the old clock", "while the lamp was being cleaned", "for the third day in a row",
    "and told nobody until supper", "as the mail boat left", "during the evening reading",
    "although the glass stood high",
    "with a pencil that was nearly used up", "when the kettle had just boiled",
)  # fmt: skip


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has; for choosing lengths only, never for a result (M6)."""
    wide = sum(1 for letter in text if ord(letter) > 0x2E7F)
    return max(1, round((len(text) - wide) / _PROSE_CHARS_PER_TOKEN + wide / _WIDE_CHARS_PER_TOKEN))


def filler(seed: int, name: str, tokens: int) -> str:
    """About this many tokens of notes; each name gives other notes from the first line on, so no prefix is shared."""
    draw = Draw(seed, f"filler:{name}")
    wanted = max(1, round(tokens * CHARS_PER_TOKEN))
    lines: list[str] = []
    length = 0
    while length < wanted:
        line = (
            f"Note {1000 + draw.below(9000)}: {draw.one(_SUBJECTS)} {draw.one(_VERBS)} {draw.one(_OBJECTS)} "
            f"{draw.one(_ENDS)}."
        )
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)[:wanted].rstrip()
