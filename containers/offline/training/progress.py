"""What a run says while it goes."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """One line, at once: the run may be watched through a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
