"""A shortcut for the chunk that nearly every event is: the same JSON as the last one but for its answer text.

From one chunk that was parsed in full this takes the bytes before and after the answer's string. Another piece with the
same bytes at both ends and, between them, nothing but the inside of one JSON string is the same JSON text with another
string in that one place, so parsing it could only give the same chunk with that string. Escapes are left to the JSON
parser. Everything else, and everything that fails to be UTF-8, goes the long way. `tests/client` compares the two ways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice

from .chunk import Chunk, parse
from .exchange import Read

_STRING = rb'([^"\\\x00-\x1f]*(?:\\[^\x00-\x1f][^"\\\x00-\x1f]*)*)'
_SPECIAL = re.compile(rb'["\\\x00-\x1f]')


class PlainChunks:
    """The learned frame of the plain chunks of one stream."""

    __slots__ = ("_after", "_before", "_frame", "_least")

    def __init__(self) -> None:
        self._before = b""
        self._after = b""
        self._least = -1
        self._frame: re.Pattern[bytes] | None = None

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

    def match_frames(self, reads: Sequence[Read], start: int) -> list[str]:
        """The answer texts of the reads from `start` on, while each is one HTTP chunk with one plain chunk in it."""
        texts: list[str] = []
        if self._frame is None:
            return texts
        whole, least = self._frame.fullmatch, self._least
        try:
            for read, _, _ in islice(reads, start, None):
                found = whole(read)
                if found is None:
                    break
                size, text = found.groups()
                if int(size, 16) != least + len(text):
                    break
                texts.append(json.loads(b'"' + text + b'"') if b"\\" in text else text.decode())
        except ValueError:
            # Not UTF-8 or not JSON: that read goes the long way, which says what is wrong with it.
            return texts
        return texts

    def learn(self, piece: bytes, chunk: Chunk) -> None:
        """Take the frame from a piece that is one event and was parsed to `chunk`.

        Only if the chunk holds nothing but its answer, and if the answer's bytes stand in the piece as the value of
        `content`; a frame that does not carry another text through a full parse is not kept.
        """
        self._least = -1
        self._frame = None
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
            self._frame = re.compile(
                b"([0-9a-fA-F]{1,8})\r\n" + re.escape(self._before) + _STRING + re.escape(self._after) + b"\r\n"
            )
