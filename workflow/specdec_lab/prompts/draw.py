"""Draws that are the same on every machine and in every Python: each number is a piece of a sha256, nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A named stream of numbers. The same seed and name give the same stream for ever."""

    def __init__(self, seed: int, name: str) -> None:
        self._key = f"specdec-lab:{seed}:{name}"
        self._count = 0

    def below(self, limit: int) -> int:
        """The next whole number from 0 to limit - 1; its bias, limit / 2^64, does not matter here."""
        piece = hashlib.sha256(f"{self._key}:{self._count}".encode()).digest()
        self._count += 1
        return int.from_bytes(piece[:8], "big") % limit

    def one(self, things: Sequence[T]) -> T:
        """One of them."""
        return things[self.below(len(things))]

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All of them in a drawn order (Fisher-Yates)."""
        out = list(things)
        for place in range(len(out) - 1, 0, -1):
            other = self.below(place + 1)
            out[place], out[other] = out[other], out[place]
        return out
