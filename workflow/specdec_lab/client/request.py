"""What is asked of the endpoint, and the bytes it is asked with (M22, case D5).

Every body carries temperature, top_p, seed, max_tokens, stream and stream_options explicitly, so that no default of a
model or a server decides; in all modes the bodies are the same but for the prompt. All requests of a cell are made
before its first one is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from pydantic import JsonValue

from ..records.errors import UserError
from ..records.prompt import Prompt
from ..records.spec import RESERVED, Sampling


@dataclass(frozen=True)
class Endpoint:
    """Where requests go. `headers` may hold a key and is never written anywhere."""

    base_url: str
    """`http://127.0.0.1:8000`; a path such as `/v1` at its end is not doubled with that of `path`."""
    model: str
    path: str = "/v1/chat/completions"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> httpx.URL:
        """The full address; UserError when the base URL is none."""
        try:
            base = httpx.URL(self.base_url.rstrip("/"))
        except httpx.InvalidURL as error:
            raise UserError(
                f"{self.base_url!r} is not a URL: {error}.", fix="Give it as http://host:port.", code="bad_url"
            ) from error
        if base.scheme not in ("http", "https") or not base.host:
            raise UserError(
                f"{self.base_url!r} is not an http or https URL.", fix="Give it as http://host:port.", code="bad_url"
            )
        path = base.path.rstrip("/")
        if path and self.path.startswith(path + "/"):
            path = ""
        return base.copy_with(raw_path=(path + self.path).encode())


def body(
    endpoint: Endpoint,
    prompt: Prompt,
    *,
    sampling: Sampling,
    max_tokens: int | None = None,
    ignore_eos: bool = False,
    extra: Mapping[str, JsonValue] | None = None,
) -> dict[str, Any]:
    """The JSON body for one prompt.

    max_tokens = the smaller of the prompt's own and the cap. `extra` (the engine's needs) comes after `sampling.extra`;
    `stream_options` are merged. UserError when an extra names a reserved field.
    """
    extras = {**sampling.extra, **(extra or {})}
    taken = sorted(set(extras) & set(RESERVED))
    if taken:
        raise UserError(
            f"The extra request fields may not set {', '.join(taken)}.",
            place="sampling.extra",
            fix="Leave these fields to the client.",
            code="bad_args",
        )
    options = extras.pop("stream_options", None)
    made: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [message.model_dump() for message in prompt.messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "max_tokens": prompt.max_tokens if max_tokens is None else min(prompt.max_tokens, max_tokens),
        "stream": True,
        "stream_options": {"include_usage": True, **(options if isinstance(options, dict) else {})},
    }
    if ignore_eos:
        made["ignore_eos"] = True
    made.update(extras)
    return made


def cap(asked: Mapping[str, Any]) -> int | None:
    """The most tokens that a request with this body allows; None where its extra fields leave that open."""
    most = asked.get("max_tokens")
    return most if type(most) is int and "max_completion_tokens" not in asked else None


def wire(request: httpx.Request) -> bytes:
    """The bytes of a request on an HTTP/1.1 connection."""
    lines = [request.method.encode(), b" ", request.url.raw_path, b" HTTP/1.1\r\n"]
    for name, value in request.headers.raw:
        lines += [name, b": ", value, b"\r\n"]
    return b"".join([*lines, b"\r\n", request.content])


def wires(endpoint: Endpoint, bodies: Sequence[Mapping[str, Any]]) -> list[bytes]:
    """The bytes of every request of a cell: one head made by httpx, each body with its own length."""
    headers = {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": "specdec-lab",
        **endpoint.headers,
    }
    head = wire(httpx.Request("POST", endpoint.url, headers=headers))
    start, _, rest = head.partition(b"\r\n")
    kept = [line for line in rest.split(b"\r\n") if line and not line.lower().startswith(b"content-length:")]
    stem = b"\r\n".join([start, *kept]) + b"\r\ncontent-length: "
    made = []
    for one in bodies:
        content = json.dumps(one, separators=(",", ":"), allow_nan=False).encode()
        made.append(b"%s%d\r\n\r\n%s" % (stem, len(content), content))
    return made
