#!/usr/bin/env python3
"""`python prompts.py OUT PER_KIND`: the generated workload with so many prompts of each kind, for high concurrency.

One seed gives 36 to 40 of a kind; further seeds add those whose text is new. Where texts run out (code and chat have
48) the first ones come again under another id: with the prefix cache off a repeated prompt costs what a new one costs.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from specdec_lab import prompts
from specdec_lab.prompts.files import write
from specdec_lab.prompts.generated import KINDS, generate
from specdec_lab.records.prompt import Prompt

SEEDS = range(7, 15)


def main(out: Path, per_kind: int) -> None:
    """Write the file."""
    rows: list[Prompt] = []
    for kind in KINDS:
        new: dict[str, Prompt] = {}
        for seed in SEEDS:
            for one in generate(seed, [kind]):
                new.setdefault(one.messages[0].content, one)
        texts = list(new.values())
        for number, one in enumerate(itertools.islice(itertools.cycle(texts), per_kind), start=1):
            rows.append(one.model_copy(update={"id": f"{kind}-{number:03d}"}))
    out.parent.mkdir(parents=True, exist_ok=True)
    write(out, rows)
    sys.stdout.write(f"{len(prompts.load(out))} prompts in {out}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
