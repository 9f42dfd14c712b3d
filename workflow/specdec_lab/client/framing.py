"""HTTP/1.1 responses out of recorded reads: status, headers, body pieces, and where the response ends.

Parsing is done by httptools (llhttp in C). It is fed when it suits the caller, not when the bytes arrive: each body
piece keeps the number of the read it came in, so the caller can put the recorded time of that read beside it.
"""

from __future__ import annotations

from typing import Any

import httptools


class Framing:
    """One response. Feed it reads in order; it stops at the end of the response (`complete`) or at bad bytes."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.headers_done = False
        self.pieces: list[bytes] = []
        self.piece_reads: list[int] = []
        """For each piece the number of the read that it came in, from 0."""
        self.complete = False
        self.keep_alive = False
        """Whether the connection takes another request after this response."""
        self.between_chunks = False
        """Whether the last byte fed ended a chunk of a chunked body."""
        self.broken: str | None = None
        self.fed = 0
        """Reads fed so far."""
        self._unasked = False
        self._parser: Any = httptools.HttpResponseParser(self)

    def header(self, name: bytes) -> bytes | None:
        """The first value of a header, or None. `name` in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)

    def feed(self, read: bytes | bytearray) -> None:
        """One read. Bytes after the end of the response make the connection unfit for another request."""
        index = self.fed
        self.fed += 1
        if self.broken is not None:
            return
        if self.complete:
            self.keep_alive = False
            return
        before = len(self.pieces)
        try:
            self._parser.feed_data(read)
        except httptools.HttpParserUpgrade:
            self.broken = "the server switched protocols"
        except httptools.HttpParserError as error:
            self.keep_alive = False
            if not self.complete:
                self.broken = str(error) or type(error).__name__
        new = len(self.pieces) - before
        if new == 1:
            self.piece_reads.append(index)
        elif new:
            self.piece_reads.extend([index] * new)

    def skip_to(self, read: int) -> None:
        """Count the reads before this one as fed: whole chunks of the body, which the caller took apart himself."""
        self.fed = read

    def end_of_stream(self) -> None:
        """The server closed: that ends a body that has no length of its own, and cuts every other one short."""
        if self.headers_done and not self.complete and self.broken is None and not self._sized():
            self.complete = True
            self.keep_alive = False

    def _sized(self) -> bool:
        encoding = self.header(b"transfer-encoding")
        return self.header(b"content-length") is not None or (encoding is not None and b"chunked" in encoding.lower())

    # Callbacks of the parser; their names are fixed by httptools.

    def on_message_begin(self) -> None:
        """A response begins; one that nobody asked for spoils the connection and is not read."""
        self._unasked = self.complete
        if self._unasked:
            self.keep_alive = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header line, or a trailer after the body."""
        if not self.headers_done:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The status line and all headers are there."""
        if self._unasked:
            return
        self.status = self._parser.get_status_code()
        self.headers_done = True
        self.keep_alive = self._sized() and bool(self._parser.should_keep_alive())

    def on_chunk_header(self) -> None:
        """A chunk of the body begins."""
        self.between_chunks = False

    def on_chunk_complete(self) -> None:
        """A chunk of the body is whole."""
        self.between_chunks = True

    def on_body(self, body: bytes) -> None:
        """A piece of the body, chunk framing taken off."""
        if not self._unasked:
            self.pieces.append(body)

    def on_message_complete(self) -> None:
        """The end of the response; an interim one (1xx) only announces the real one."""
        if self._unasked:
            return
        if self.status is not None and 100 <= self.status < 200:
            self.status = None
            self.headers = []
            self.headers_done = False
            return
        self.complete = True
        self.keep_alive = bool(self._parser.should_keep_alive())
