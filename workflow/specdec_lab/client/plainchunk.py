"""A shortcut for the chunk that nearly every event is: the same JSON as the last one but for its answer text.

From one chunk that was parsed in full this takes the bytes before and after the answer's string. Another piece with the
same bytes at both ends and, between them, nothing but the inside of one JSON string is the same JSON text with another
string in that one place, so parsing it could only give the same chunk with that string. Escapes are left to the JSON
parser. Everything else, and everything that fails to be UTF-8, goes the long way. `tests/client` compares the two ways.

Whole runs of such chunks are taken apart and compared together, a handful of calls for many chunks: steps of the
interpreter for each chunk would cost more than everything else that is done with it after the cell.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from .chunk import Chunk, parse

_SPECIAL = re.compile(rb'["\\\x00-\x1f]')
_SIZE = re.compile(rb"\n[0-9A-Fa-f]{1,8}")
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_FIRST_LOOK = 64
"""Reads looked at by the first attempt; four times as many by each next one, while all of them are taken. So a stream
that keeps changing its frame costs no more than its length."""
_LINE_END = 3
"""Bytes of a framed event after the end of its data line: the blank line and the end of the HTTP chunk."""


class KnownTexts(dict[bytes, str]):
    """What the insides of JSON strings mean. Tokens come again and again, in all streams; each is decoded once.

    ValueError for bytes that are not the inside of a JSON string in UTF-8.
    """

    def __missing__(self, inside: bytes) -> str:
        """Decode and keep."""
        if _SPECIAL.search(inside) is None:
            text = inside.decode()
        else:
            text = str(json.loads(b'"' + inside + b'"'))
        self[inside] = text
        return text


class _Lengths(dict[bytes, int]):
    """How long an event is with the line feed before it, by its HTTP chunk's size with the line feed before that.

    0, which no event is, for what is not a plain size.
    """

    def __missing__(self, size: bytes) -> int:
        """Convert and keep."""
        self[size] = length = int(size, 16) + 1 if _SIZE.fullmatch(size) else 0
        return length


class Reads(NamedTuple):
    """The reads of one answer: their bytes as one, how long each is, where each ends in them, and when each arrived."""

    data: bytes
    sizes: Sequence[int]
    ends: Sequence[int]
    stamps: Sequence[float]


class PlainChunks:
    """The learned frame of the plain chunks of one stream."""

    __slots__ = ("_after", "_before", "_known", "_least", "_lengths")

    def __init__(self, known: KnownTexts | None = None) -> None:
        self._before = b""
        self._after = b""
        self._least = -1
        self._known = KnownTexts() if known is None else known
        self._lengths = _Lengths()

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

    def match_frames(self, reads: Reads, start: int) -> tuple[list[str], list[float], int]:
        """The answer texts of the reads from `start` on, while these hold whole HTTP chunks with one plain chunk each.

        Returns beside the texts when each one's data line was complete, and the number of the first read not taken.
        """
        texts: list[str] = []
        at: list[float] = []
        look = _FIRST_LOOK
        while self._least >= 0 and 0 < start < len(reads.ends):
            stop = min(start + look, len(reads.ends))
            more, times, untaken = self._run(reads, start, stop)
            texts += more
            at += times
            if untaken < stop:
                return texts, at, untaken
            start, look = stop, 4 * look
        return texts, at, start

    def _run(self, reads: Reads, start: int, stop: int) -> tuple[list[str], list[float], int]:
        """As `match_frames`, for the reads from `start` until `stop`."""
        # A chunk is its size, a line end, the event and a line end; neither holds a carriage return. The line feed
        # before the size is the end of the chunk before.
        origin = reads.ends[start - 1]
        parts = reads.data[origin - 1 : reads.ends[stop - 1]].split(b"\r")
        whole = (len(parts) - 1) // 2
        sizes, events = parts[: 2 * whole : 2], parts[1 : 2 * whole : 2]
        texts = self._taken_apart(sizes, events)
        if texts and not parts[2 * len(texts)].startswith(b"\n"):
            # The line end of the last of them is not there yet, or is none.
            texts.pop()
        count = len(texts)
        # Two line ends belong to a chunk; the line feeds before its size and its event are in both lengths.
        frames = [len(size) + len(event) + 2 for size, event in zip(sizes[:count], events[:count], strict=True)]
        # One chunk a read; the last read may hold more, the end of the stream say.
        for single in (count, count - 1):
            if single > 0 and frames[:single] == reads.sizes[start : start + single]:
                return texts[:single], list(reads.stamps[start : start + single]), start + single
        # Some reads hold several chunks, or parts of one.
        closed = list(accumulate(frames, initial=origin))
        edges = set(reads.ends[start - 1 : stop])
        while closed[-1] not in edges:
            closed.pop()
        ends, stamps = reads.ends, reads.stamps
        times = [stamps[bisect_left(ends, end - _LINE_END, start)] for end in closed[1:]]
        return texts[: len(times)], times, bisect_left(ends, closed[-1], start) + 1 if times else start

    def _taken_apart(self, sizes: list[bytes], events: list[bytes]) -> list[str]:
        """The texts of these chunks' events, up to the first that is no plain one. A line feed stands before each."""
        before, after = b"\n" + self._before, self._after
        first, last = len(before), -len(after)
        # What closes a stream (finish reason, usage, end) is no plain chunk, and the whole run would go the slow way.
        while events and not (events[-1].startswith(before) and events[-1].endswith(after)):
            del events[-1], sizes[-1]
        insides = [event[first:last] for event in events]
        # All at once: put together again, the texts must give the events, each as long as its size says.
        if before + (after + before).join(insides) + after == b"".join(events) and list(
            map(self._lengths.__getitem__, sizes)
        ) == list(map(len, events)):
            try:
                return list(map(self._known.__getitem__, insides))
            except ValueError:
                pass
        texts: list[str] = []
        for size, event, inside in zip(sizes, events, insides, strict=True):
            if before + inside + after != event or self._lengths[size] != len(event):
                break
            try:
                texts.append(self._known[inside])
            except ValueError:
                # Not UTF-8 or not JSON: that chunk goes the long way, which says what is wrong with it.
                break
        return texts

    def learn(self, piece: bytes, chunk: Chunk) -> None:
        """Take the frame from a piece that is one event and was parsed to `chunk`.

        Only if the chunk holds nothing but its answer, and if the answer's bytes stand in the piece as the value of
        `content`; a frame that does not carry another text through a full parse is not kept.
        """
        self._least = -1
        if chunk != Chunk(answer=chunk.answer, generated=True, choices=True):
            return
        text = _quoted(chunk.answer)[1:-1].encode("utf-8", "surrogatepass")
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
