"""The prompts of a run: generated (M13, M15) or the user's own (M14), and others to warm up with (M23).

`workload` gives every prompt of a run, `select` those of one cell, `warmup_for` others that are like them and never
measured; `generate` gives the 112 prompts from seed 7; `load`, `write` and `digest` are about the file.
"""

from __future__ import annotations

from .chosen import kinds_of, select, workload
from .files import digest, load, write
from .generated import KINDS, generate
from .longer import kind_name, longer
from .warmup import warmup_for

__all__ = [
    "KINDS",
    "digest",
    "generate",
    "kind_name",
    "kinds_of",
    "load",
    "longer",
    "select",
    "warmup_for",
    "workload",
    "write",
]
