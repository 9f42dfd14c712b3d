"""A session that cannot be measured leaves `failure.json` beside its log: cause, place and fix (M19, cases C1, C2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .. import failures
from ..asked import FAILURE
from ..launchers.base import Exit
from ..provenance.redact import redact
from ..records.errors import UserError
from ..records.session import Failure
from .guard import Interrupted
from .lifetime import Job, now
from .ready import ServerDied, read_log

INTERRUPTED = "interrupted"
"""The failure's code when a signal ended the session: nothing is to be mended."""


@contextmanager
def recorded(job: Job) -> Iterator[None]:
    """Turn whatever ends a session into a record and a UserError that says what, where and how to mend it."""
    try:
        yield
    except Interrupted as error:
        _write(job, Failure(**_base(job), code=INTERRUPTED, cause=str(error), place=_place(job), fix=_AGAIN, log=None))
        raise UserError(f"{error}; the server was stopped.", place=_place(job), fix=_AGAIN, code=INTERRUPTED) from None
    except ServerDied as error:
        raise _explained(job, str(error), "", "", "server_died", error.exit) from None
    except UserError as error:
        raise _explained(job, error.cause, error.place, error.fix, error.code, None) from None
    except Exception as error:
        # A fault of ours: its traceback goes into the job's log, and the run's summary names it as well.
        cause = redact(f"{type(error).__name__}: {error}")
        _write(job, Failure(**_base(job), code="crashed", cause=cause, place=_place(job), fix=_REPORT, log=None))
        raise


_REPORT = "See the job's log for where it happened; this is a fault of the lab."
_AGAIN = "Run the same command again: cells that were complete are kept."


def _explained(job: Job, cause: str, place: str, fix: str, code: str, end: Exit | None) -> UserError:
    """The cause as we saw it, and what the server's own log says of it, which knows better."""
    log = redact("\n".join(read_log(job.log)))
    known = failures.diagnose(log, end, job.spec.server.engine)
    if known is not None:
        cause, fix, code = f"{known.cause} ({cause})", known.fix, known.code
        place = known.place or place
    failure = Failure(
        **_base(job),
        code=code,
        cause=redact(cause),
        place=place or _place(job),
        fix=fix or "Look at the server's log.",
        log=str(job.log) if job.log.exists() else None,
        exit_code=end.code if end else None,
        excerpt=known.excerpt if known else [line for line in log.split("\n") if line.strip()][-5:],
    )
    _write(job, failure)
    where = f"{failure.place}; log: {failure.log}" if failure.log else failure.place
    return UserError(
        f"Mode {job.mode}, replicate {job.replicate}: {failure.cause}", place=where, fix=failure.fix, code=code
    )


def _base(job: Job) -> dict[str, object]:
    done = [name for name in (path.stem for path in sorted(job.folder.glob("*_*.json"))) if name != "session"]
    return {"mode": job.mode, "replicate": job.replicate, "spec": job.spec, "at": now(), "cells_done": done}


def _place(job: Job) -> str:
    return f"mode {job.mode}, replicate {job.replicate}"


def _write(job: Job, failure: Failure) -> None:
    failure.write(job.folder / FAILURE)
