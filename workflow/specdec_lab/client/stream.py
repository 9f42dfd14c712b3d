"""One recorded answer becomes one row (M3, M6, M22; cases A1 to A8). Runs after the cell, not while tokens arrive."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from .. import quantities
from ..records.base import plain_text
from ..records.cell import Row
from ..records.notes import COUNTS
from ..records.prompt import Prompt
from . import counts
from .chunk import BadChunk, Chunk, error_text, parse
from .exchange import Exchange
from .plainchunk import KnownTexts, PlainChunks, Reads
from .sse import Decoder, Event
from .toolcalls import ToolCalls

REASONS: dict[str, str] = {
    "connect_error": "no connection could be made",
    "http_<status>": "the server refused with that status",
    "server_error": "an error object came inside the stream",
    "parse_error": "an event was not a JSON object, or the response was not HTTP",
    "not_a_stream": "the answer was no event stream",
    "truncated": "the stream ended without a finish reason and without [DONE]",
    "reset": "the connection was lost in mid-answer",
    "deadline_total": "the whole request took longer than its limit",
    "deadline_first_byte": "the body did not begin within its limit",
    "deadline_idle": "nothing came for longer than the limit",
    "aborted": "the cell was aborted while this request was under way",
}
"""The closed list of why a request failed."""

BAD_EVENT = "an event of the stream is no JSON object"
"""How the message of a row begins whose stream was one, but not of chunks."""
NOTES: dict[str, str] = {
    "no_done": "finish reason, but no [DONE]",
    "held_open": "[DONE] came, the end of the response did not",
    "no_finish_reason": "[DONE], but no finish reason",
    "no_usage": "the server counted no tokens",
    **COUNTS,
    "buffered": "the tokens arrived all at once: no decode rate",
    "short": "ended before max_tokens although the end token was to be ignored",
    "surrogates": "the text held half a character, which cannot be written; it became U+FFFD",
}
"""The closed list of remarks on a request that still counts."""

_WHOLE_EVENT = b"data: "
_HEARTBEATS = frozenset({"ping", "heartbeat", "keepalive", "keep-alive"})
"""Types of events that only keep a connection open; what they hold may be anything."""


@dataclass(slots=True)
class Transcript:
    """What the events of one stream say, with the time each came (of the caller's clock)."""

    answer: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: ToolCalls = field(default_factory=ToolCalls)
    arrivals: list[float] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    """How many token ids came with the arrivals that brought some."""
    running: list[int] = field(default_factory=list)
    """The count of usage so far on the arrivals that brought one."""
    first_answer: float | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    """The last count that came."""
    most_tokens: int = 0
    """The highest count that came."""
    total_tokens: int | None = None
    """What the usage with the last count says of prompt and answer together."""
    reasoning_tokens: int | None = None
    """The same, of the thoughts."""
    done: bool = False
    error: str | None = None
    bad: str | None = None
    events: int = 0
    _decoder: Decoder = field(default_factory=Decoder)
    _plain: PlainChunks = field(default_factory=PlainChunks)
    _last: float = 0.0

    def read(self, pieces: Iterable[bytes], at: Iterable[float], *, ended: bool = True) -> Transcript:
        """Take in the pieces of a body; stops at `[DONE]`, at an error, or at data that is no chunk.

        `ended`: the body is known to be whole, so that an event without its closing blank line counts if it is one.
        """
        for piece, when in zip(pieces, at, strict=True):
            if self.over:
                break
            self.take(piece, when)
        if ended:
            self.finish()
        return self

    def take(self, piece: bytes, at: float) -> None:
        """One piece of the body."""
        self._last = at
        if self._decoder.between_events:
            text = self._plain.match(piece)
            if text is not None:
                self._answered(text, at)
                return
            if _one_event(piece):
                chunk = self._event(Event("message", piece[len(_WHOLE_EVENT) : -2], at))
                if chunk is not None and chunk.answer:
                    self._plain.learn(piece, chunk)
                return
        for event in self._decoder.feed(piece, at):
            self._event(event)
            if self.over:
                return

    def take_frames(self, reads: Reads, start: int) -> int:
        """Take the reads from `start` on that hold nothing but whole HTTP chunks with one plain event each.

        Returns the number of the first read that was not taken.
        """
        if not self._decoder.between_events or self.over:
            return start
        texts, at, untaken = self._plain.match_frames(reads, start)
        if not all(texts):
            for text, when in zip(texts, at, strict=True):
                self._answered(text, when)
        elif texts:
            self.events += len(texts)
            self.answer += texts
            self.arrivals += at
            if self.first_answer is None:
                self.first_answer = at[0]
        return untaken

    def finish(self) -> None:
        """The body is over: an event that lacks its closing blank line counts."""
        rest = None if self.over else self._decoder.finish(self._last)
        if rest is not None:
            self._event(rest)

    @property
    def over(self) -> bool:
        """Whether nothing that follows counts."""
        return self.done or self.error is not None or self.bad is not None

    def _answered(self, text: str, at: float) -> None:
        self.events += 1
        if not text:
            return
        self.arrivals.append(at)
        self.answer.append(text)
        if self.first_answer is None:
            self.first_answer = at

    def _event(self, event: Event) -> Chunk | None:
        data = event.data.strip()
        if not data or event.name in _HEARTBEATS:
            return None
        self.events += 1
        if data == b"[DONE]":
            self.done = True
            return None
        try:
            chunk = parse(data, error_event=event.name == "error")
        except BadChunk as problem:
            self.bad = f"{BAD_EVENT}: {problem} in {data[:200].decode('utf-8', 'replace')!r}"
            return None
        if chunk.error is not None:
            self.error = chunk.error
            return chunk
        if chunk.prompt_tokens is not None:
            self.prompt_tokens = chunk.prompt_tokens
        if chunk.cached_tokens is not None:
            self.cached_tokens = chunk.cached_tokens
        if chunk.completion_tokens is not None:
            self.completion_tokens = chunk.completion_tokens
            self.most_tokens = max(self.most_tokens, chunk.completion_tokens)
            self.total_tokens, self.reasoning_tokens = chunk.total_tokens, chunk.reasoning_tokens
        if chunk.finish_reason is not None:
            self.finish_reason = chunk.finish_reason
        if chunk.generated:
            self.arrivals.append(event.at)
            if chunk.token_ids is not None:
                self.token_ids.append(chunk.token_ids)
            if chunk.completion_tokens is not None:
                self.running.append(chunk.completion_tokens)
            if chunk.answer:
                self.answer.append(chunk.answer)
                if self.first_answer is None:
                    self.first_answer = event.at
            if chunk.reasoning:
                self.reasoning.append(chunk.reasoning)
            for piece in chunk.calls:
                self.calls.take(piece)
        return chunk

    def counted(self) -> int | None:
        """The server's count of the answer's tokens (M6); None when it gives none, or one that cannot be.

        A total that is below what was counted before it, or 0 where a text came, is no count: taken as one it would
        stand in a sum of tokens as a missing answer.
        """
        last = self.completion_tokens
        return None if last is None or last < self.most_tokens or (last == 0 and self.arrivals) else last


def _one_event(piece: bytes) -> bool:
    """Whether the piece is one whole event of a single data line, as nearly all are."""
    return (
        piece.startswith(_WHOLE_EVENT)
        and piece.find(b"\n") == len(piece) - 2
        and piece.endswith(b"\n")
        and b"\r" not in piece
    )


def joined(parts: Sequence[str]) -> str:
    """The text of the parts; the two halves of a character that came in two chunks become that character again."""
    text = "".join(parts)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def transcript(exchange: Exchange, stamps: Sequence[float], known: KnownTexts | None = None) -> Transcript:
    """What an exchange's stream says. Takes the HTTP framing off what was only stored so far.

    `known`: texts of tokens decoded before, shared by the streams of a cell.
    """
    framing = exchange.framing
    said = Transcript(_plain=PlainChunks(known))
    if framing.status not in (None, 200):
        exchange.look()
        return said
    done, reads = 0, Reads(bytes(exchange.body), exchange.sizes, list(accumulate(exchange.sizes)), stamps)
    while True:
        for index in range(done, len(framing.pieces)):
            if not said.over:
                said.take(framing.pieces[index], stamps[framing.piece_reads[index]])
        done = len(framing.pieces)
        if framing.between_chunks and framing.broken is None:
            framing.skip_to(said.take_frames(reads, framing.fed))
        if framing.fed >= len(reads.ends):
            break
        framing.feed(reads.data[reads.ends[framing.fed - 1] if framing.fed else 0 : reads.ends[framing.fed]])
    if framing.complete:
        said.finish()
    return said


def row(
    exchange: Exchange,
    stamps: Sequence[float],
    prompt: Prompt,
    *,
    started_at: float,
    max_tokens: int | None,
    cap: int | None = None,
    known: KnownTexts | None = None,
) -> Row:
    """The row of one exchange. `stamps`: when each read arrived; `started_at`: the cell's start on the same clock.

    `max_tokens`: the length that an answer must have when the end token is ignored; None when it may stop by itself.
    `cap`: the most tokens that the request allowed; None when that is not known.
    """
    read = transcript(exchange, stamps, known)
    reason, message = _failure(exchange, read)
    sent = exchange.sent_at
    arrivals = [at - sent for at in read.arrivals]
    counted = counts.judged(read, cap)
    decode = quantities.decode_tok_s(counted.tokens, arrivals, counted.chunk_tokens) if counted.timeable else None
    answer, reasoning, called = joined(read.answer), joined(read.reasoning), joined(read.calls.parts())
    notes = _notes(exchange, read, arrivals, counted, max_tokens)
    if "\ufffd" in answer and not any("\ufffd" in part for part in read.answer):
        notes.append("surrogates")
    return Row(
        id=prompt.id,
        kind=prompt.kind,
        status="ok" if reason is None else "failed",
        reason=reason,
        message=plain_text(message) if message is not None else None,
        notes=notes,
        sent_s=sent - started_at if sent else None,
        scheduled_s=exchange.scheduled_at - started_at if exchange.scheduled_at is not None else None,
        prompt_tokens=read.prompt_tokens,
        cached_tokens=read.cached_tokens,
        completion_tokens=counted.tokens,
        finish_reason=None if read.finish_reason is None else plain_text(read.finish_reason),
        ttft_s=arrivals[0] if arrivals else None,
        first_answer_s=read.first_answer - sent if read.first_answer is not None else None,
        e2e_s=arrivals[-1] if arrivals else None,
        decode_tok_s=decode,
        decode_exact=None if decode is None else counted.exact,
        tpot_s=quantities.tpot_s(decode),
        text=answer,
        reasoning=reasoning or None,
        tool_calls=called or None,
        arrivals=arrivals,
        chunk_tokens=counted.chunk_tokens,
    )


def _failure(exchange: Exchange, read: Transcript) -> tuple[str | None, str | None]:
    framing = exchange.framing
    if exchange.end in ("connect_error", "aborted"):
        return exchange.end, exchange.problem
    if framing.status is not None and framing.status != 200:
        return f"http_{framing.status}", _refusal(exchange)
    if framing.broken is not None:
        return "parse_error", framing.broken
    packed = (framing.header(b"content-encoding") or b"identity").strip().lower()
    if packed != b"identity":
        return "parse_error", f"the server sent {packed.decode('latin-1')}, though only plain text was asked for"
    if read.error is not None:
        return "server_error", read.error
    if read.bad is not None:
        return _unreadable(exchange, read.bad)
    if read.finish_reason in ("abort", "error"):
        return "server_error", f"the server finished with {read.finish_reason!r}"
    if read.done and read.finish_reason is None and not read.arrivals and not read.completion_tokens:
        return _unreadable(exchange, "the stream held nothing but its end", "truncated")
    if read.done or read.finish_reason is not None:
        return None, None
    if exchange.end == "complete":
        return _unreadable(exchange, "the stream ended without a finish reason and without [DONE]", "truncated")
    if exchange.end in ("closed", "reset"):
        return "truncated" if exchange.end == "closed" and framing.pieces else "reset", exchange.problem or (
            "the server closed the connection in mid-answer"
        )
    return exchange.end, f"{len(read.arrivals)} chunks had come after {exchange.ended_at - exchange.sent_at:.3f} s"


def _unreadable(exchange: Exchange, message: str, otherwise: str = "parse_error") -> tuple[str, str]:
    kind = (exchange.framing.header(b"content-type") or b"").split(b";")[0].strip().lower()
    if kind and kind != b"text/event-stream":
        start = b"".join(exchange.framing.pieces)[:200].decode("utf-8", "replace")
        return "not_a_stream", f"the server answered with {kind.decode('latin-1')}: {start}"
    return otherwise, message


def _refusal(exchange: Exchange) -> str:
    """The server's own words; with the wait it asks for, if it asks for one."""
    text = b"".join(exchange.framing.pieces)[:20000].decode("utf-8", "replace").strip()
    try:
        made = json.loads(text)
        text = error_text(made.get("error") or made.get("detail") or made) if isinstance(made, dict) else text
    except (ValueError, RecursionError):
        text = text[:2000]
    wait = exchange.framing.header(b"retry-after")
    if wait is not None:
        text = f"{text} (Retry-After: {wait.decode('latin-1')})"
    return text[:2000]


def _notes(
    exchange: Exchange, read: Transcript, arrivals: list[float], counted: counts.Counts, max_tokens: int | None
) -> list[str]:
    notes = []
    if read.finish_reason is not None and not read.done:
        notes.append("no_done")
    if read.done and not exchange.framing.complete:
        notes.append("held_open")
    if read.done and read.finish_reason is None:
        notes.append("no_finish_reason")
    if read.arrivals and read.completion_tokens is None:
        notes.append("no_usage")
    notes += counted.notes
    if quantities.buffered(arrivals):
        notes.append("buffered")
    if max_tokens is not None and counted.tokens is not None and counted.tokens < max_tokens:
        notes.append("short")
    return notes
