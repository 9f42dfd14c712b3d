"""Small questions to a server: past any proxy, with short limits; a server that is away gives None."""

from __future__ import annotations

import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

_DIRECT = build_opener(ProxyHandler({}))
"""Environment proxies are for downloads, not for a server on this machine (case C8)."""


def get_text(url: str, *, timeout_s: float = 5.0) -> str | None:
    """Body of a 200 answer; None for any other answer or none at all."""
    if not url.startswith(("http://", "https://")):
        return None
    try:
        with _DIRECT.open(Request(url), timeout=timeout_s) as reply:
            return reply.read().decode("utf-8", "replace") if reply.status == 200 else None
    except (HTTPError, URLError, OSError, ValueError):
        return None


def get_json(url: str, *, timeout_s: float = 5.0) -> Any:
    """Parsed body of a 200 answer; None if there is none or it is not JSON."""
    text = get_text(url, timeout_s=timeout_s)
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None
