"""What every job of the workflow does around its work: a log of its own, errors as cause, place and fix."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .records.errors import UserError


@contextmanager
def job(log: str) -> Iterator[None]:
    """Log to the file; an error is written there in full, and in short to stderr, and ends the job with exit code 1.

    Snakemake captures nothing of a script's output by itself, so without this its log would stay empty.
    """
    path = Path(log)
    path.parent.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        handlers=[logging.FileHandler(path, encoding="utf-8")],
        force=True,
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        yield
    except UserError as error:
        logging.getLogger("specdec").error("%s", error)
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
    except KeyboardInterrupt:
        logging.getLogger("specdec").error("interrupted")
        sys.exit(130)
    except Exception:
        logging.getLogger("specdec").error("%s", traceback.format_exc())
        raise


def say(text: str) -> None:
    """One line for whoever watches, and for the log."""
    logging.getLogger("specdec").info(text)
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
