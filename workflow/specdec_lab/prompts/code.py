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
        "merge_opening_hours",
        """def merge_opening_hours(spans):
    merged = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1] + 15:
            previous_start, previous_end = merged[-1]
            merged[-1] = (previous_start, max(previous_end, end))
        else:
            merged.append((start, end))
    total_minutes = 0
    for start, end in merged:
        total_minutes += end - start
    return merged, total_minutes
""",
        ("merged", "joined"),
        ("15", "30"),
        "return [], 0 at once when spans is empty",
    ),
    Function(
        "parse_duration",
        """def parse_duration(text):
    seconds_per_unit = {"h": 3600, "m": 60, "s": 1}
    total = 0
    digits = ""
    for letter in text.strip().lower():
        if letter.isdigit():
            digits += letter
        elif letter in seconds_per_unit and digits:
            total += int(digits) * seconds_per_unit[letter]
            digits = ""
        elif letter != " ":
            raise ValueError("cannot read duration: " + text)
    return total
""",
        ("total", "whole_time"),
        ("3600", "3601"),
        "return 0 at once when text is empty",
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
        "settle_balances",
        """def settle_balances(payments):
    balances = {}
    for payer, receiver, amount in payments:
        balances[payer] = balances.get(payer, 0) - amount
        balances[receiver] = balances.get(receiver, 0) + amount
    open_accounts = []
    for account, balance in sorted(balances.items()):
        if abs(balance) > 0.01:
            open_accounts.append((account, round(balance, 2)))
    return open_accounts
""",
        ("balances", "totals"),
        ("0.01", "0.05"),
        "return an empty list at once when payments is empty",
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
        "count_steps",
        """def count_steps(samples, threshold):
    steps = 0
    above = False
    last_step = -10
    for index, sample in enumerate(samples):
        if sample > threshold and not above:
            above = True
            if index - last_step >= 10:
                steps += 1
                last_step = index
        elif sample < threshold:
            above = False
    return steps
""",
        ("above", "is_above"),
        ("10", "12"),
        "return 0 at once when samples is empty",
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
    return (
        f"Rewrite this Python function with one small change. {edit} "
        f"Return the whole function and nothing else.\n\n{function.source}"
    )


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
