"""Config entries to command-line flags: one rule for every engine (M17, case C9).

Each value becomes exactly one argv element, whatever it contains; objects become JSON (true, false, null; never a
Python repr), so that `json.loads` of the element gives the config's value back.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping

from pydantic import JsonValue


def word(value: JsonValue) -> str:
    """One argv element for one value: text as it is, everything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def without(args: Mapping[str, JsonValue], names: Container[str]) -> dict[str, JsonValue]:
    """The args but for these long names, whether they stand as `x` or as `no-x`."""
    return {name: value for name, value in args.items() if name.removeprefix("no-") not in names}


def flags(args: Mapping[str, JsonValue]) -> list[str]:
    """`{"max-model-len": 8192, "enforce-eager": True, "x": None}` -> `--max-model-len 8192 --enforce-eager`.

    true gives the bare flag, false its `--no-` form, null leaves the flag out, a list gives the flag once followed by
    its words, an object gives one JSON element. Underscores in names are written as dashes.
    """
    argv: list[str] = []
    for name, value in args.items():
        flag = name.replace("_", "-")
        if value is None:
            continue
        if value is True:
            argv.append(f"--{flag}")
        elif value is False:
            argv.append(f"--no-{flag}")
        elif isinstance(value, list):
            argv += [f"--{flag}", *(word(item) for item in value)]
        else:
            argv += [f"--{flag}", word(value)]
    return argv
