"""Prompts whose answer is mostly a copy: code edits, and records to be given as JSON."""

from __future__ import annotations

import random

NOUNS = (
    "order", "invoice", "tree", "score", "student", "room", "ticket", "signal", "page", "token", "route", "engine",
    "sample", "planet", "recipe", "account", "vector", "matrix", "event", "user", "city", "price", "count", "level",
)  # fmt: skip
VERBS = ("check", "build", "sum", "load", "merge", "sort", "clean", "print", "find", "update", "parse", "convert")
STATEMENTS = (
    '{a} = {given}["{b}"]', "{a} = {b} * {n} + {m}", "{a} = len({given}) - {n}", '{a} = str({b}) + "{c}"',
    "{a} += {n}", "{a} = max({a}, {n})", 'print("{a}:", {a})', "if {a} > {n}:\n        {a} = {m}",
    "for {c} in {given}:\n        {a} += {c}", "{a} = [{c} for {c} in {given} if {c} != {n}]",
    "if not {a}:\n        return None", "while {a} < {n}:\n        {a} += {m}", '{a}["{c}"] = {b}', "{a}.append({b})",
)  # fmt: skip
EDITS = (
    "`{a}` is called `{d}`", "the number {n} becomes {m}", "it begins with a docstring",
    "it prints `{a}` before it returns", "every line has a comment", "the function is called `{d}_{c}`",
    "it has type hints", "it returns `{d}` as well",
)  # fmt: skip
ASKING = (
    "Change this code so that {edit}:\n\n```python\n{code}```",
    "```python\n{code}```\n\nGive me this function again, but {edit}.",
    "Edit the code below. What I want: {edit}.\n\n{code}",
)
PEOPLE = ("Anna Kern", "Jorge Silva", "Mei Chen", "Paul Dubois", "Sara Lund", "Ivan Petrov", "Leila Amin", "Tom Baker")
PLACES = ("Madrid", "Oslo", "Vienna", "Boston", "Nairobi", "Lima", "Seoul", "Prague", "Dublin", "Athens")
THINGS = ("laptop", "sofa", "camera", "tent", "guitar", "printer", "watch", "ladder", "heater", "drone")
RECORDS = (
    ("{who} lives in {place} and bought a {thing} for {n} dollars.", "name, city, product, price"),
    ("Invoice {n}: {m} x {thing}, sent to {who}, {place}.", "invoice, count, article, client, city"),
    ("{who} ({n}) works in {place} as number {m} of the team.", "person, age, location, number"),
    ("The {thing} of {who} was repaired in {place} after {m} days, cost {n}.", "object, owner, workshop, days, cost"),
    ("name: {who}; town: {place}; item: {thing}; amount: {n}; code: {m}", "name, town, item, amount, code"),
)
FORMS = (
    "Give the JSON of this record with the keys {keys}.\n\n{record}",
    "{record}\n\nTurn this into a JSON object ({keys}).",
    "Extract {keys} from the text as JSON.\nText: {record}",
)


def template_prompt(drawn: random.Random) -> str:
    """A prompt whose answer is mostly a copy: a code edit or a record to be given as JSON."""
    numbers = {"n": drawn.randint(2, 999), "m": drawn.randint(1, 50)}
    if drawn.random() < 0.5:
        record, keys = drawn.choice(RECORDS)
        named = {"who": drawn.choice(PEOPLE), "place": drawn.choice(PLACES), "thing": drawn.choice(THINGS)}
        return drawn.choice(FORMS).format(keys=keys, record=record.format(**named, **numbers))
    a, b, c, d, given = drawn.sample(NOUNS, 5)
    lines = [f"def {drawn.choice(VERBS)}_{given}({given}):", f"    {a} = 0", f"    {b} = {numbers['n']}"]
    for _ in range(drawn.randint(2, 8)):
        x, y = drawn.sample([a, b], 2)
        number = drawn.choice([numbers["n"], drawn.randint(1, 100)])
        lines.append("    " + drawn.choice(STATEMENTS).format(a=x, b=y, c=c, given=given, n=number, m=numbers["m"]))
    code = "\n".join([*lines, f"    return {a}\n"])
    return drawn.choice(ASKING).format(edit=drawn.choice(EDITS).format(a=a, c=c, d=d, **numbers), code=code)
