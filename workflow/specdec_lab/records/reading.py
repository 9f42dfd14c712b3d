"""Reading a record that somebody else wrote: what is missing or is another thing is said in plain words."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from .base import Record
from .errors import UserError

T = TypeVar("T", bound=Record)


def first_problem(error: ValidationError) -> str:
    """Where and what, of the first thing that is wrong."""
    one = error.errors()[0]
    where = ".".join(str(part) for part in one["loc"])
    return f"{where}: {one['msg']}" if where else one["msg"]


def must_read(path: Path, record: type[T], *, fix: str) -> T:
    """The record in this file; UserError when it is not there, cannot be read, or is not of this version."""
    try:
        return record.read(path)
    except OSError as error:
        raise UserError(
            f"{path.name} cannot be read: {error.strerror}.", place=str(path), fix=fix, code="unreadable"
        ) from error
    except ValidationError as error:
        raise UserError(
            f"{path.name} is not of this version: {first_problem(error)}.", place=str(path), fix=fix, code="unreadable"
        ) from error
