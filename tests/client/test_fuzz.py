"""A small fuzz run; `python tests/client/fuzz.py 200000` is the large one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("stream_fuzz", Path(__file__).with_name("fuzz.py"))
assert spec is not None
assert spec.loader is not None
fuzz = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fuzz)


def test_mutated_streams_end_in_success_or_in_a_named_failure() -> None:
    found = fuzz.run(3000, seed=7)
    assert sum(found.values()) == 3000
    assert {"ok", "server_error", "parse_error", "truncated"} <= set(found)
