"""Server-sent events: bytes in, events out, the same for every way the bytes may be cut into reads (cases A4, A5).

Follows the HTML standard's event stream rules: lines end in CR, LF or CRLF and in nothing else (U+2028 is text), one
space after the colon is dropped, several `data` lines of one event are joined by a line feed, a byte order mark may
come first, lines that begin with a colon are comments. Works on bytes: half a character is never decoded.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its type (`message` unless it has a name), its data, and when its last data line was complete."""

    name: str
    data: bytes
    at: float


class Decoder:
    """Feeds on reads in order. `at` is the time of the read, on the caller's clock."""

    def __init__(self) -> None:
        self._partial: list[bytes] = []
        self._after_cr = False
        self._first_line = True
        self._name = ""
        self._data: list[bytes] = []
        self._at = 0.0

    @property
    def between_events(self) -> bool:
        """Whether nothing is pending: no half line, no event under way, no line feed that may belong to a CR."""
        return not (self._partial or self._data or self._name or self._after_cr or self._first_line)

    def feed(self, read: bytes, at: float = 0.0) -> list[Event]:
        """The events that this read completes."""
        if self._after_cr and read:
            self._after_cr = False
            if read[:1] == b"\n":
                read = read[1:]
        if not read:
            return []
        if b"\r" in read:
            self._after_cr = read[-1:] == b"\r"
            read = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = read.split(b"\n")
        rest = lines.pop()
        events: list[Event] = []
        for line in lines:
            if self._partial:
                self._partial.append(line)
                line = b"".join(self._partial)
                self._partial.clear()
            event = self._line(line, at)
            if event is not None:
                events.append(event)
        if rest:
            self._partial.append(rest)
        return events

    def finish(self, at: float = 0.0) -> Event | None:
        """The event that the end of the stream left without its blank line, if it has data.

        The standard drops it; the caller decides whether it is whole, for some servers end on `data: [DONE]`.
        """
        line = b"".join(self._partial)
        self._partial.clear()
        event = self._line(line, at) if line else None
        return event if event is not None else self._line(b"", at)

    def _line(self, line: bytes, at: float) -> Event | None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            event = Event(self._name or "message", b"\n".join(self._data), self._at) if self._data else None
            self._name = ""
            self._data = []
            return event
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
            self._at = at
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        return None
