"""Kind `chat`: open questions on everyday subjects; little of the answer stands in the prompt (M13).

Four further topics are held out for the warm-up (M23).
"""

from __future__ import annotations

from .draw import Draw

CAP = 300
MEASURED_TOPICS = 20

TOPICS = (
    "how tides come about",
    "choosing a first bicycle",
    "why bread rises",
    "keeping a small balcony garden through a dry summer",
    "how a lighthouse was run before electricity",
    "learning to read sheet music as an adult",
    "what makes a good apology",
    "how bees find their way home",
    "planning a week of cheap lunches",
    "why some bridges hum in the wind",
    "getting used to a new city",
    "how paper was made by hand",
    "looking after an old wooden table",
    "what a night train journey is like",
    "how a thermostat decides when to heat",
    "teaching a child to swim",
    "why leaves change their colour",
    "preparing for a long walk in the hills",
    "how languages borrow words from each other",
    "repairing a dripping tap",
    "what happens to a letter after it is posted",
    "how glaciers shape a valley",
    "starting a neighbourhood choir",
    "why cats purr",
)

TEMPLATES = {
    "opinion": "Give me your opinion on {topic}, with one example from daily life.",
    "surprise": "Tell me something surprising about {topic}, in one paragraph.",
}


def _texts(topics: list[str]) -> list[tuple[str, str]]:
    """In rounds: each round has every topic once, templates in turn, so that any first few are mixed."""
    out = []
    names = list(TEMPLATES)
    for turn in range(len(names)):
        for place, topic in enumerate(topics):
            name = names[(turn + place) % len(names)]
            out.append((f"{TOPICS.index(topic):02d}-{name}", TEMPLATES[name].format(topic=topic)))
    return out


def _split(seed: int) -> tuple[list[str], list[str]]:
    drawn = Draw(seed, "chat").shuffled(TOPICS)
    return drawn[:MEASURED_TOPICS], drawn[MEASURED_TOPICS:]


def measured(seed: int) -> list[tuple[str, str]]:
    """(name, text) of the 40 measured prompts."""
    return _texts(_split(seed)[0])


def held_out(seed: int) -> list[tuple[str, str]]:
    """(name, text) of the 8 prompts for the warm-up."""
    return _texts(_split(seed)[1])
