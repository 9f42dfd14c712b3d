"""The common base of every record, strict JSON, and the one canonical form used for digests.

Strict means: no NaN or Infinity anywhere (missing is null, never 0), unknown keys are refused, text is UTF-8. A lone
surrogate (half of a cut emoji, as some servers send it) cannot be written as UTF-8, so it is replaced by U+FFFD.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

_SURROGATE = re.compile("[\ud800-\udfff]")


def plain_text(text: str) -> str:
    """The text with lone surrogates replaced by U+FFFD, so that it can be written as UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return plain_text(value) if _SURROGATE.search(value) else value
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(v) for v in value]
    return value


def canonical(value: Any) -> str:
    """One JSON text for one meaning: sorted keys, no spaces, 0.90 and 0.9 alike, NaN refused (ValueError)."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(
        _without_surrogates(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(value: Any) -> str:
    """sha256 (hex) of the canonical form."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def strict_loads(text: str | bytes, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """json.loads that refuses NaN and Infinity (ValueError). `pairs` makes an object of its keys and values."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON: missing values are written as null")

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


def strict_dumps(value: Any, *, indent: int | None = 1) -> str:
    """JSON for a file that people may open: NaN refused (ValueError), lone surrogates replaced, final newline."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(_without_surrogates(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n"


def write_text_atomic(path: Path, text: str) -> None:
    """Write UTF-8 so that a reader sees the old file or the new one, never a torn one, whatever dies in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        Path(name).chmod(0o666 & ~umask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class Record(BaseModel):
    """A record: immutable, no unknown keys, no NaN or Infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read one record from a file; OSError if it is not there, pydantic.ValidationError if it is another thing."""
        return cls.model_validate_json(path.read_bytes())

    def write(self, path: Path) -> None:
        """Write this record atomically as strict JSON."""
        write_text_atomic(path, strict_dumps(self))


Severity = Literal["info", "warn", "error"]


class Finding(Record):
    """One typed remark about a measurement or a set-up: a code from a closed list, a sentence, what to do about it."""

    code: str
    severity: Severity = "warn"
    message: str
    hint: str = ""
