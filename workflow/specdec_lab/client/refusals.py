"""What it means when every request of a cell was refused alike: a wrong address, and no slow or full server."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..records.cell import Row
from ..records.errors import UserError
from .stream import BAD_EVENT

_NO_SUCH_PLACE = frozenset({"http_404", "http_405", "http_410", "http_501"})
_SHOWN = 200
_MODEL = re.compile(r"\bmodel\b", re.IGNORECASE)


def wrong_address(rows: Sequence[Row], url: str, root: str) -> UserError | None:
    """The error to end with, or None when one request succeeded or another try may go well.

    `url` is where the requests went, `root` the server that `--base-url` names.
    """
    reasons = {row.reason for row in rows}
    if not rows or any(row.status == "ok" for row in rows) or len(reasons) != 1:
        return None
    (reason,) = reasons
    said = _plain(rows[0].message or "")
    listed = f"curl {root}/v1/models"
    if reason == "http_404" and _MODEL.search(said):
        return _error(url, f"The server does not know the model: {said}", f"`{listed}` lists its names for --model.")
    if reason in _NO_SUCH_PLACE:
        number = str(reason).removeprefix("http_")
        return _error(
            url,
            f"There are no chat completions at this address: HTTP {number}{f', {said}' if said else ''}",
            f"Give --base-url up to the port, or up to /v1; `{listed}` answers where an OpenAI-compatible server is.",
        )
    if reason in ("http_401", "http_403"):
        return _error(
            url,
            f"The server wants a key: {said or reason}",
            "Name the variable that holds it: --api-key-env NAME.",
        )
    if reason == "not_a_stream":
        return _error(
            url,
            f"What answers here streams no chat completions: {said}",
            f"Is it an OpenAI-compatible server? `{listed}` lists the models of one.",
        )
    if reason == "parse_error" and url.startswith("http:") and not said.startswith(BAD_EVENT):
        return _error(
            url, f"What answers here speaks no plain HTTP: {said}", "If it is a server with TLS, write https://."
        )
    return None


def _error(url: str, cause: str, fix: str) -> UserError:
    return UserError(cause, place=url, fix=fix, code="wrong_address")


def _plain(text: str) -> str:
    """The server's words in one line, without the marks of a web page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>?", " ", text)).strip()[:_SHOWN]
