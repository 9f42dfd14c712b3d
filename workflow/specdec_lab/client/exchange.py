"""One request on one connection: what was sent when, and every read that came back with its time, untouched.

Nothing is parsed while tokens arrive: the read callback stamps and stores, so a stamp does not depend on how much work
the text of other streams makes. Only reads that may hold the end of the answer are looked at at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from .framing import Framing
from .sse import Decoder

End = Literal[
    "complete",
    "done",
    "closed",
    "reset",
    "deadline_total",
    "deadline_first_byte",
    "deadline_idle",
    "connect_error",
    "aborted",
]
"""How an exchange ended: the response was complete; `[DONE]` came and the server held the connection; the server closed
or reset it; a deadline passed; no connection could be made; the cell was aborted."""

_DONE = b"[DONE]"
_LAST_CHUNK = b"0\r\n\r\n"
_SMALL_READ = 64
_TAIL_PIECES = 16


class Exchange:
    """One request and its recorded answer. Times are of `time.perf_counter`."""

    __slots__ = (
        "_fed",
        "_watchful",
        "done_at",
        "end",
        "ended_at",
        "framing",
        "kernel",
        "number",
        "on_end",
        "problem",
        "reads",
        "scheduled_at",
        "sent_at",
        "stamps",
    )

    def __init__(self, number: int, on_end: Callable[[Exchange], None]) -> None:
        self.number = number
        """Which prompt of the cell this is."""
        self.on_end = on_end
        self.scheduled_at: float | None = None
        self.sent_at = 0.0
        self.reads: list[bytes] = []
        self.stamps: list[float] = []
        """When each read was fetched."""
        self.kernel: list[bytes] = []
        """The kernel's own receive time of each read, as it gave it."""
        self.framing = Framing()
        self.end: End | None = None
        self.ended_at = 0.0
        self.done_at: float | None = None
        """When `[DONE]` was seen while the response was still open."""
        self.problem: str | None = None
        """The words of the error that ended it, if there was one."""
        self._fed = 0
        self._watchful = True

    def may_end(self, read: bytes) -> bool:
        """Whether this read could be the last one. Cheap; a wrong yes costs a look, a wrong no is mended by the sweep.

        Until the headers are known, for every answer but a plain event stream, and for small reads it is always yes.
        """
        return self._watchful or len(read) < _SMALL_READ or _DONE in read or read.endswith(_LAST_CHUNK)

    def look(self) -> bool:
        """Parse the reads that were only stored so far; True when the answer is over."""
        framing = self.framing
        reads = self.reads
        seen = len(framing.pieces)
        while self._fed < len(reads):
            framing.feed(reads[self._fed])
            self._fed += 1
        if framing.complete or framing.broken is not None:
            return True
        if framing.headers_done:
            self._watchful = framing.status != 200 or framing.header(b"content-length") is not None
        if self.done_at is None and len(framing.pieces) > seen and self._says_done(seen):
            self.done_at = self.stamps[-1]
        return False

    def _says_done(self, seen: int) -> bool:
        """Whether an event of the body is exactly `[DONE]`; the text of an answer may hold that word as well."""
        pieces = self.framing.pieces
        if _DONE not in b"".join(pieces[max(seen - _TAIL_PIECES, 0) :]):
            return False
        decoder = Decoder()
        return any(event.data.strip() == _DONE for piece in pieces for event in decoder.feed(piece))

    def body_began(self) -> bool:
        """Whether a byte of the body has come; the headers alone may come long before it."""
        if not self.framing.pieces and self.unread:
            self.look()
        return bool(self.framing.pieces)

    def looks_good(self) -> bool:
        """A quick verdict for the run of failures, without parsing the text: answered with 200, ended by itself, said
        something, and nothing in it looks like an error object. The row has the last word."""
        return (
            self.end in ("complete", "done")
            and self.framing.status == 200
            and self.framing.broken is None
            and bool(self.framing.pieces)
            and not any(b'"error":{' in read or b'"error": {' in read for read in self.reads)
        )

    @property
    def unread(self) -> bool:
        """Whether reads are stored that nothing has looked at yet."""
        return self._fed < len(self.reads)

    def finish(self, end: End, at: float) -> None:
        """The exchange is over; tells its owner, once."""
        if self.end is None:
            self.end = end
            self.ended_at = at
            self.on_end(self)
