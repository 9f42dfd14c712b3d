"""From a server's log and exit to cause, place and fix: the first real error counts, umbrella lines never (case C2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import Field

from ..launchers.base import Exit
from ..records.base import Record
from .known import FAILURES, UMBRELLAS, KnownFailure

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_QUIET_LINE = re.compile(
    # INFO and WARNING lines quote error texts without meaning them.
    # A container's log may put its own date before them.
    r"^(?:\d{4}-\d\d-\d\d[T ]\S+\s+|\[\d{4}-\d\d-\d\d[^\]]*\]\s+)?(?:\([^)]*\)\s*)?(?:INFO|WARN(?:ING)?|DEBUG)\b"
    r"|^\S+ [IWD] (?:srv|cmn|slot|llama)|^[WI]\d{4} "
)
_ERROR_LINE = re.compile(
    r"(?:^|\s)(?P<text>(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Exhausted|Interrupt)(?:: .*)?)$"
    r"|(?:^|[\s:])(?P<said>(?:fatal |docker: )?[Ee]rror(?: response from daemon)?: .+)$"
    r"|^\S+ E (?P<engine>.+)$"
    r"|^(?P<panic>(?:FATAL|panic|Killed|Segmentation fault|terminate called)\b.*)$"
)
_PREFIX = re.compile(r"^\([^)]*pid=\d+\)\s*(?:ERROR [\d-]+ [\d:]+ \[[^\]]*\]\s?)?")
_AROUND = 2


class Diagnosis(Record):
    """What went wrong, where it shows, and how to mend it."""

    code: str
    number: int | None = None
    cause: str
    place: str
    fix: str
    excerpt: list[str] = Field(default=[], description="The lines of the log that tell.")


def _plain(log_text: str) -> str:
    return _COLOUR.sub("", log_text).replace("\r\n", "\n").replace("\r", "\n")


def _loud(text: str) -> str:
    """The log with quiet lines emptied (line numbers stay) and the engines' line prefixes cut off."""
    return "\n".join("" if _QUIET_LINE.search(line) else _PREFIX.sub("", line) for line in text.split("\n"))


def _first_known(loud: str) -> tuple[KnownFailure, re.Match[str]] | None:
    found = [(failure, hit) for failure in FAILURES if (hit := failure.search(loud)) is not None]
    return min(found, key=lambda pair: (pair[0].rank, pair[1].start()), default=None)


def _first_error(loud: str) -> Iterator[tuple[int, str]]:
    """Every line that states an error and is no umbrella, first one first."""
    for number, line in enumerate(loud.split("\n")):
        hit = _ERROR_LINE.search(line)
        if hit is not None and not UMBRELLAS.search(line):
            yield number, next(part for part in hit.groups() if part).strip()


def _how_it_ended(end: Exit | None) -> str:
    if end is None:
        return "it was still running"
    if end.oom_killed:
        return "killed by the kernel for memory"
    if end.detail:
        return end.detail
    return "exit code unknown" if end.code is None else f"exit code {end.code}"


def _excerpt(text: str, line: int, length: int = 1) -> list[str]:
    lines = text.split("\n")
    chosen = lines[max(0, line - _AROUND) : line + length + _AROUND]
    return [part[:400] for part in chosen if part.strip()]


def diagnose(log_text: str, end: Exit | None, engine: str | None = None) -> Diagnosis | None:
    """The log's and the exit's story; None when the server lives and its log states no error.

    A known text of the log wins over an unknown one, a text that names a cause over one that names its family, the
    earliest over later ones. Without any error in the log, an exit is still explained by its code.
    """
    text = _plain(log_text)
    loud = _loud(text)
    ended = _how_it_ended(end)
    server = f"{engine} server" if engine else "server"
    if end is not None and end.oom_killed:
        failure = next(f for f in FAILURES if f.code == "out_of_memory")
        return Diagnosis(
            code=failure.code,
            number=failure.number,
            cause="the kernel killed the server: the container's or the machine's memory was full",
            place=f"the {server}: {ended}",
            fix="give it more memory, or lower what it reserves (--max-model-len; on a CPU VLLM_CPU_KVCACHE_SPACE)",
            excerpt=text.rstrip("\n").split("\n")[-3:],
        )
    found = _first_known(loud)
    if found is not None and (end is not None or found[0].rank == 0):
        failure, hit = found
        line = loud.count("\n", 0, hit.start())
        to_line_end = loud.find("\n", hit.end())
        said = " ".join(loud[hit.start() : to_line_end if to_line_end >= 0 else None].split())
        return Diagnosis(
            code=failure.code,
            number=failure.number,
            cause=f"{failure.cause}: {said[:300]}",
            place=f"line {line + 1} of the {server}'s log; {ended}",
            fix=failure.fix,
            excerpt=_excerpt(text, line, hit[0].count("\n") + 1),
        )
    first = next(_first_error(loud), None)
    if first is not None:
        line, said = first
        return Diagnosis(
            code="unknown",
            cause=f"the {server} failed: {said[:300]}",
            place=f"line {line + 1} of its log; {ended}",
            fix="read the log from that line on; it is the first error, later ones follow from it",
            excerpt=_excerpt(text, line),
        )
    if end is None:
        return None
    return Diagnosis(
        code="ended",
        cause=f"the {server} ended without an error in its log ({ended})",
        place="its exit",
        fix="a kill from outside or a crash: look at the kernel's log (dmesg) and at the end of the server's log",
        excerpt=[part[:400] for part in text.rstrip("\n").split("\n")[-5:] if part.strip()],
    )
