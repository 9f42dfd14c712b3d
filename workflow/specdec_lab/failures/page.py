"""docs/failures.md: the failures, their causes and fixes, out of the same table that recognises them."""

from __future__ import annotations

import sys
from pathlib import Path

from ..records.base import write_text_atomic
from .known import FAILURES, KnownFailure

PAGE = Path("docs/failures.md")
TITLES = {
    1: "Gated or missing checkpoint",
    2: "Driver too old, or no GPU in the container",
    3: "Speculative config is broken JSON",
    4: "Unknown or unfit method for this engine version",
    5: "Tokenizer or vocabulary mismatch",
    6: "Out of memory at start",
    7: "Speculation slower than the baseline",
    8: "Outputs differ at temperature 0",
    9: "No speculation counters in the metrics",
    10: "EAGLE3 acceptance near zero",
    11: "Server never healthy",
    12: "GPU memory still used after the stop",
}
_HEAD = """# When something fails

A failed session leaves `failure.json` beside `server.log`, the failing rule says cause, place and fix, and the report
shows the mode as failed; the other modes go on. `specdec doctor --log server.log` explains any server's log, and
`specdec doctor --config FILE` finds most of what is below before a run.

The first error in a log counts; lines like "Engine core initialization failed, see above" never do.

This page is written by `make generated` from `workflow/specdec_lab/failures/known.py`.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for number, title in TITLES.items():
        parts.append(f"## {number}. {title}\n")
        parts += [_entry(one) for one in FAILURES if one.number == number]
    return "\n".join(parts)


def _entry(failure: KnownFailure) -> str:
    cause = failure.cause[0].upper() + failure.cause[1:]
    fix = failure.fix[0].upper() + failure.fix[1:]
    return f"- **`{failure.code}`** {cause}.\n  *Fix:* {fix}.\n"


def main() -> None:
    """Write the page; run from the repository's root."""
    if not PAGE.parent.is_dir():
        sys.exit("Run this from the root of the repository.")
    write_text_atomic(PAGE, page())


if __name__ == "__main__":
    main()
