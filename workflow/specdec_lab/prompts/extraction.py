"""Kind `json`: pull fields out of one sentence; the answer copies names and numbers from the prompt (M13).

The sentences are drawn; those of the warm-up use people and places of their own (M23).
"""

from __future__ import annotations

from dataclasses import dataclass

from .draw import Draw

CAP = 120
MEASURED_SENTENCES = 36
HELD_OUT_SENTENCES = 12


@dataclass(frozen=True)
class Cast:
    """The names that sentences are filled with."""

    people: tuple[str, ...]
    places: tuple[str, ...]
    things: tuple[str, ...]
    months: tuple[str, ...]


MEASURED_CAST = Cast(
    people=(
        "Ilse Brandt", "Tomas Okoye", "Mireille Faure", "Daniel Achterberg", "Sunniva Lie", "Ravi Menon",
        "Katarzyna Wilk", "Oleg Marchenko", "Beatriz Salgado", "Hamish Orr", "Yuki Tanabe", "Noor Haddad",
    ),
    places=("Basel", "Trondheim", "Lille", "Gdynia", "Coimbra", "Inverness", "Kobe", "Graz", "Utrecht", "Kochi"),
    things=(
        "oak bookcase", "steel kettle", "folding bicycle", "wool blanket", "desk lamp", "garden hose",
        "cast-iron pan", "rain jacket", "chess clock", "tool chest",
    ),
    months=("January", "March", "April", "June", "August", "October"),
)  # fmt: skip

WARMUP_CAST = Cast(
    people=("Petra Lindqvist", "Amadou Keita", "Fiona Brady", "Luis Carranza"),
    places=("Malmo", "Dakar", "Galway", "Quito"),
    things=("picture frame", "sewing machine", "water filter", "hiking pole"),
    months=("February", "May", "July", "November"),
)

TEMPLATES = (
    (
        "{person}, {age} years old, moved to {place} in {month} {year}.",
        ("name", "age", "city", "month", "year"),
    ),
    (
        "On {day} {month} {year}, {person} ordered {count} units of the {thing} for {price} euros to {place}.",
        ("customer", "date", "item", "quantity", "price_eur", "city"),
    ),
    (
        "The {thing} that {person} returned in {place} had been bought {age} days earlier for {price} euros.",
        ("item", "customer", "city", "days", "price_eur"),
    ),
    (
        "{person} leads the {place} office with {count} people and {price} thousand euros since {month} {year}.",
        ("name", "city", "staff", "budget_keur", "since"),
    ),
    (
        "Ticket {ticket}: {person} from {place} reports that the {thing} broke after {age} days, on {day} {month}.",
        ("ticket", "customer", "city", "item", "days", "date"),
    ),
    (
        "Flight {ticket} with {person} on board left {place} {age} minutes late on {day} {month} {year}.",
        ("flight", "passenger", "city", "delay_minutes", "date"),
    ),
)


def _sentences(draw: Draw, cast: Cast, count: int) -> list[tuple[str, str]]:
    out = []
    for number in range(count):
        template, fields = TEMPLATES[number % len(TEMPLATES)]
        sentence = template.format(
            person=draw.one(cast.people),
            place=draw.one(cast.places),
            thing=draw.one(cast.things),
            month=draw.one(cast.months),
            day=1 + draw.below(28),
            year=2015 + draw.below(10),
            age=19 + draw.below(60),
            count=2 + draw.below(40),
            price=15 + draw.below(900),
            ticket=f"{draw.one('KLMRST')}{draw.one('ABDEF')}-{1000 + draw.below(9000)}",
        )
        blank = ", ".join(f'"{field}": ""' for field in fields)
        text = (
            f"Fill in the fields of this JSON object from the sentence. Answer with the object on one line.\n\n"
            f"Sentence: {sentence}\n\nObject: {{{blank}}}"
        )
        out.append((f"{number:02d}", text))
    return out


def measured(seed: int) -> list[tuple[str, str]]:
    """(name, text) of the 36 measured prompts."""
    return _sentences(Draw(seed, "json"), MEASURED_CAST, MEASURED_SENTENCES)


def held_out(seed: int) -> list[tuple[str, str]]:
    """(name, text) of the 12 prompts for the warm-up."""
    return _sentences(Draw(seed, "json-warmup"), WARMUP_CAST, HELD_OUT_SENTENCES)
