"""The prompts of a run: generated (M13, M15) or the user's own (M14), and others to warm up with (M23).

`generate` gives the 112 prompts from seed 7; `load` reads a JSONL file; `write` and `digest` fix their bytes;
`warmup_for` gives prompts that are like the measured ones and never among them; `workload` and `select` say what a run
and what a cell sends.
"""

from __future__ import annotations

from .chosen import kinds_of, select, workload
from .files import digest, load, write
from .workload import KINDS, generate, kind_name, warmup_for

__all__ = ["KINDS", "digest", "generate", "kind_name", "kinds_of", "load", "select", "warmup_for", "workload", "write"]
