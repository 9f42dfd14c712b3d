"""A shortcut for the chunk that nearly every event is: the same JSON as the last one but for its answer text.

From one chunk that was parsed in full this takes the bytes before and after the answer's string. Another piece with the
same bytes at both ends and, between them, no quote, no backslash and no control character is the same JSON text with
another string in that one place, so parsing it could only give the same chunk with that string. Everything else, and
everything that fails to be UTF-8, goes the long way. `tests/client` compares the two ways on generated streams.
"""

from __future__ import annotations

import json
import re

from .chunk import Chunk, parse

_SPECIAL = re.compile(rb'["\\\x00-\x1f]')


class PlainChunks:
    """The learned frame of the plain chunks of one stream."""

    __slots__ = ("_after", "_before", "_least")

    def __init__(self) -> None:
        self._before = b""
        self._after = b""
        self._least = -1

    def match(self, piece: bytes) -> str | None:
        """The answer text of a piece that is a plain chunk; None when it has to be parsed."""
        least = self._least
        if least < 0 or len(piece) < least or not piece.startswith(self._before) or not piece.endswith(self._after):
            return None
        text = piece[len(self._before) : len(piece) - len(self._after)]
        if _SPECIAL.search(text) is not None:
            return None
        try:
            return text.decode()
        except UnicodeDecodeError:
            return None

    def learn(self, piece: bytes, chunk: Chunk) -> None:
        """Take the frame from a piece that is one event and was parsed to `chunk`.

        Only if the chunk holds nothing but its answer, and if the answer's bytes stand in the piece as the value of
        `content`; a frame that does not carry another text through a full parse is not kept.
        """
        self._least = -1
        if chunk != Chunk(answer=chunk.answer, generated=True, choices=True):
            return
        text = json.dumps(chunk.answer, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
        before, found, after = piece.partition(b'"content":"' + text + b'"')
        if not found:
            before, found, after = piece.partition(b'"content": "' + text + b'"')
        if not found:
            return
        start = found[: len(found) - len(text) - 1]
        self._before = before + start
        self._after = b'"' + after
        probe = (self._before + b"probe" + self._after)[len(b"data: ") : -2]
        if parse(probe) == Chunk(answer="probe", generated=True, choices=True):
            self._least = len(self._before) + len(self._after)
