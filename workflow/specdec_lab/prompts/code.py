"""Kind `code`: six small edits of six short functions; the answer is nearly a copy of the prompt (M13).

Two further functions are held out for the warm-up (M23).
"""

from __future__ import annotations

from dataclasses import dataclass

from .draw import Draw

CAP = 400
MEASURED_FUNCTIONS = 6


@dataclass(frozen=True)
class Function:
    """One function and what its six edits need to know of it."""

    name: str
    source: str
    rename: tuple[str, str]
    constant: tuple[str, str]
    guard: str


FUNCTIONS = (
    Function(
        "describe_parcel",
        """def describe_parcel(parcel):
    width = parcel["width"]
    height = parcel["height"]
    depth = parcel["depth"]
    volume = width * height * depth
    girth = 2 * (width + height) + depth
    weight = max(parcel["weight"], volume / 5000)
    text = "parcel " + parcel["number"]
    text += ", volume " + str(volume)
    text += ", girth " + str(girth)
    text += ", weight " + str(weight)
    return text
""",
        ("girth", "belt"),
        ("5000", "4000"),
        "raise ValueError at once when parcel has no number",
    ),
    Function(
        "count_books",
        """def count_books(shelves):
    total = 0
    borrowed = 0
    titles = set()
    for shelf in shelves:
        for book in shelf["books"]:
            total += 1
            titles.add(book["title"])
            if book["borrowed"]:
                borrowed += 1
    print("books:", total)
    print("titles:", len(titles))
    print("borrowed:", borrowed)
    return total - borrowed
""",
        ("borrowed", "lent"),
        ("1", "2"),
        "return 0 at once when shelves is empty",
    ),
    Function(
        "rolling_mean",
        """def rolling_mean(readings, window):
    means = []
    running = 0.0
    for index, reading in enumerate(readings):
        running += reading
        if index >= window:
            running -= readings[index - window]
        if index >= window - 1:
            means.append(round(running / window, 3))
    return means
""",
        ("running", "window_sum"),
        ("3", "2"),
        "raise ValueError at once when window is smaller than 1",
    ),
    Function(
        "group_by_initial",
        """def group_by_initial(names):
    groups = {}
    for name in names:
        cleaned = name.strip()
        if not cleaned:
            continue
        initial = cleaned[0].upper()
        if initial not in groups:
            groups[initial] = []
        groups[initial].append(cleaned)
    for initial in groups:
        groups[initial].sort(key=len)
    return groups
""",
        ("groups", "shelves"),
        ("upper", "lower"),
        "return an empty dict at once when names is None",
    ),
    Function(
        "wrap_words",
        """def wrap_words(words, width):
    lines = []
    line = ""
    for word in words:
        candidate = word if not line else line + " " + word
        if len(candidate) <= width:
            line = candidate
        else:
            lines.append(line.ljust(width))
            line = word
    if line:
        lines.append(line.ljust(width))
    return lines
""",
        ("candidate", "longer_line"),
        ("ljust", "rjust"),
        "return an empty list at once when words is empty",
    ),
    Function(
        "save_settings",
        """def save_settings(path, settings):
    lines = []
    lines.append("language=" + settings["language"])
    lines.append("theme=" + settings["theme"])
    lines.append("volume=" + str(settings["volume"]))
    lines.append("brightness=" + str(settings["brightness"]))
    lines.append("timeout=" + str(settings.get("timeout", 30)))
    with open(path, "w") as file:
        for line in lines:
            file.write(line + "\\n")
    return len(lines)
""",
        ("lines", "rows"),
        ("30", "45"),
        "return 0 at once when settings is empty",
    ),
    Function(
        "water_plan",
        """def water_plan(beds, litres_per_bed):
    plan = []
    tank = 200
    for bed, dryness in beds:
        litres = litres_per_bed * dryness
        if litres > tank:
            plan.append((bed, tank))
            tank = 0
            break
        plan.append((bed, litres))
        tank -= litres
    return plan, tank
""",
        ("litres", "amount"),
        ("200", "250"),
        "return [], 0 at once when beds is empty",
    ),
    Function(
        "mix_paint",
        """def mix_paint(first, second, share):
    red = first["red"] * share + second["red"] * (1 - share)
    green = first["green"] * share + second["green"] * (1 - share)
    blue = first["blue"] * share + second["blue"] * (1 - share)
    mixed = {}
    mixed["red"] = min(255, round(red))
    mixed["green"] = min(255, round(green))
    mixed["blue"] = min(255, round(blue))
    mixed["name"] = first["name"] + " and " + second["name"]
    return mixed
""",
        ("mixed", "blend"),
        ("255", "254"),
        "return first at once when share is 1",
    ),
)


EDITS = ("comment", "docstring", "hints", "rename", "constant", "guard")


def _edits(function: Function) -> dict[str, str]:
    old, new = function.rename
    before, after = function.constant
    return {
        "comment": f"Put the comment `# reviewed: {function.name}` on the line above it.",
        "docstring": "Add a one-line docstring below the `def` line.",
        "hints": "Add type hints to the parameters and to the return value.",
        "rename": f"Rename the variable `{old}` to `{new}`.",
        "constant": f"Replace `{before}` by `{after}`.",
        "guard": f"Add a guard as the first statement: {function.guard}.",
    }


def _wording(function: Function, edit: str) -> str:
    return f"Write out the full file again with this one change: {edit}\n\n```python\n{function.source}```"


def _texts(functions: list[Function]) -> list[tuple[str, str]]:
    """In rounds: each round has every function once, each with another edit, so that any first few are mixed."""
    out = []
    for turn in range(len(EDITS)):
        for place, function in enumerate(functions):
            edit = EDITS[(turn + place) % len(EDITS)]
            out.append((f"{function.name}-{edit}", _wording(function, _edits(function)[edit])))
    return out


def _split(seed: int) -> tuple[list[Function], list[Function]]:
    drawn = Draw(seed, "code").shuffled(FUNCTIONS)
    return drawn[:MEASURED_FUNCTIONS], drawn[MEASURED_FUNCTIONS:]


def measured(seed: int) -> list[tuple[str, str]]:
    """(name, text) of the 36 measured prompts."""
    return _texts(_split(seed)[0])


def held_out(seed: int) -> list[tuple[str, str]]:
    """(name, text) of the 12 prompts for the warm-up."""
    return _texts(_split(seed)[1])
