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
_DONE_LINE = b"data: [DONE]\n"
LAST_CHUNK = b"0\r\n\r\n"
"""How a chunked body ends when it has no trailer."""

SMALL_READ = 64
"""Reads below this are looked at at once: the end of an answer may be cut in pieces that tell nothing alone."""

_TAIL_PIECES = 16
_LAST_BYTES = 2000


class Exchange:
    """One request and its recorded answer. Times are of `time.perf_counter`."""

    __slots__ = (
        "body",
        "done_at",
        "end",
        "ended_at",
        "fetched",
        "framing",
        "kernel",
        "looked",
        "number",
        "offset",
        "on_end",
        "problem",
        "scheduled_at",
        "sent_at",
        "sizes",
        "watchful",
    )

    def __init__(self, number: int, on_end: Callable[[Exchange], None]) -> None:
        self.number = number
        """Which prompt of the cell this is."""
        self.on_end = on_end
        self.scheduled_at: float | None = None
        self.sent_at = 0.0
        self.offset = 0.0
        """Monotonic minus wall clock when it was sent."""
        self.body = bytearray()
        """Every byte of the response. One buffer, not one object a read: what is read together later lies together."""
        self.sizes: list[int] = []
        """How many of them each read brought."""
        self.kernel = bytearray()
        """The kernel's receive time of each read, as it gave it: seconds and nanoseconds, two native 64-bit integers.
        Shorter if it gave none for some of them."""
        self.fetched: list[float] = []
        """When each read was fetched."""
        self.framing = Framing()
        """The response as far as it was looked at: `framing.fed` of the reads."""
        self.looked = 0
        """The bytes of these reads."""
        self.watchful = True
        """Whether every read must be looked at: until the headers are known, and for all but a plain event stream."""
        self.end: End | None = None
        self.ended_at = 0.0
        self.done_at: float | None = None
        """When `[DONE]` was seen while the response was still open."""
        self.problem: str | None = None
        """The words of the error that ended it, if there was one."""

    def record(self, data: bytes, now: float) -> None:
        """Note a read that the kernel did not time."""
        self.body += data
        self.sizes.append(len(data))
        self.fetched.append(now)

    def over(self, read: bytes) -> bool:
        """Whether the answer is over with this read, which may be its last.

        A plain stream whose last read holds the line `data: [DONE]` and the last chunk of the body is over without a
        look at the reads before it; a line feed cannot stand in the JSON of a text, so that line is no part of one.
        """
        if not self.watchful and read.endswith(LAST_CHUNK) and _DONE_LINE in read:
            return True
        return self.look()

    def look(self) -> bool:
        """Parse the reads that were only stored so far; True when the answer is over."""
        framing = self.framing
        seen = len(framing.pieces)
        for size in self.sizes[framing.fed :]:
            framing.feed(self.body[self.looked : self.looked + size])
            self.looked += size
        if framing.complete or framing.broken is not None:
            return True
        if framing.headers_done:
            self.watchful = framing.status != 200 or framing.header(b"content-length") is not None
        if self.done_at is None and len(framing.pieces) > seen and self._says_done(seen):
            self.done_at = self.fetched[-1]
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
        something, and nothing near its end looks like an error object. The row has the last word."""
        return (
            self.end in ("complete", "done")
            and self.framing.status == 200
            and self.framing.broken is None
            and self.body_began()
            and b'"error":{' not in (last := self.body[-_LAST_BYTES:])
            and b'"error": {' not in last
        )

    @property
    def unread(self) -> bool:
        """Whether reads are stored that nothing has looked at yet."""
        return self.framing.fed < len(self.sizes)

    def let_go(self) -> None:
        """Forget the bytes: they have been read."""
        self.body = bytearray()
        self.sizes = []
        self.kernel = bytearray()
        self.fetched = []
        self.framing.pieces.clear()

    def finish(self, end: End, at: float) -> None:
        """The exchange is over; tells its owner, once."""
        if self.end is None:
            self.end = end
            self.ended_at = at
            self.on_end(self)
