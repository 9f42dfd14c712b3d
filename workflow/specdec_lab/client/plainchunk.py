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

from .chunk import Chunk, parse

_SPECIAL = re.compile(rb'["\\\x00-\x1f]')
_SIZE_DIGITS = 10


def _decoded(inside: bytes) -> str:
    """The text of a JSON string without its quotes; ValueError if it is none."""
    if _SPECIAL.search(inside) is None:
        return inside.decode()
    return str(json.loads(b'"' + inside + b'"'))


class PlainChunks:
    """The learned frame of the plain chunks of one stream."""

    __slots__ = ("_after", "_before", "_framed_after", "_known", "_least", "_sizes")

    def __init__(self, known: dict[bytes, str] | None = None) -> None:
        self._before = b""
        self._after = b""
        self._least = -1
        self._framed_after = b""
        self._known: dict[bytes, str] = {} if known is None else known
        """What the insides of strings mean that were decoded before; tokens come again and again, in all streams."""
        self._sizes: dict[bytes, int] = {}

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

    def match_frames(self, data: bytes, ends: Sequence[int], start: int) -> tuple[list[str], list[int], int]:
        """The answer texts of the reads from `start` on, while each holds whole HTTP chunks with one plain chunk each.

        `data` holds the reads, each ending where `ends` says. Returns beside the texts for each the number of its read,
        and the number of the first read that was not taken.
        """
        texts: list[str] = []
        places: list[int] = []
        number, least = start, self._least
        if least < 0:
            return texts, places, number
        before, after, known, sizes = self._before, self._framed_after, self._known, self._sizes
        head, tail = len(before), len(self._after)
        at = ends[start - 1] if start else 0
        try:
            for number in range(start, len(ends)):
                limit = ends[number]
                while at < limit:
                    begin = data.find(b"\r\n", at, at + _SIZE_DIGITS) + 2
                    size = sizes.get(data[at:begin])
                    if size is None:
                        size = sizes[data[at:begin]] = int(data[at:begin], 16)
                    end = begin + size - tail
                    if size < least or not (data.startswith(before, begin) and data.startswith(after, end)):
                        break
                    at = end + tail + 2
                    if at > limit:
                        break
                    inside = data[begin + head : end]
                    text = known.get(inside)
                    if text is None:
                        text = known[inside] = _decoded(inside)
                    texts.append(text)
                    places.append(number)
                if at != limit:
                    break
            else:
                return texts, places, len(ends)
        except ValueError:
            # Not UTF-8, not JSON or not a size: that read goes the long way, which says what is wrong with it.
            pass
        while places and places[-1] == number:
            places.pop()
            texts.pop()
        return texts, places, number

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
            self._framed_after = self._after + b"\r\n"
