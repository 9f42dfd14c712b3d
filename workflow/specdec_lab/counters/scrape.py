"""Reading a server's metrics over HTTP, and waiting until they have settled (cases B5, C8).

Proxies of the environment are never used: the server is on this machine or named by the user.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import httpx

from ..records.base import Finding
from ..records.errors import UserError
from .exposition import Exposition, parse, total
from .names import MetricNames

_ACCEPT = "text/plain;version=0.0.4, */*;q=0.1"
_MAX_INTERVAL_S = 0.25


@dataclass(frozen=True)
class Settled:
    """The scrape that closes a window, and whether the counters had come to rest before it."""

    text: str
    settled: bool
    waited_s: float
    findings: list[Finding] = field(default_factory=list)


def scrape(url: str, *, timeout_s: float = 10.0, client: httpx.Client | None = None) -> str:
    """The metrics text at this URL. Follows redirects; raises UserError (code `metrics_unreachable`) with the fix."""
    if client is None:
        with _client(timeout_s) as own:
            return _get(own, url)
    return _get(client, url)


def settle(
    url: str,
    names: MetricNames,
    *,
    limit_s: float = 30.0,
    timeout_s: float = 10.0,
) -> Settled:
    """Wait until no request is running and the engine's counters have not moved for its publishing lag.

    The lag is the engine's (`names.publish_lag_s`): a server may add the last step's numbers after it has sent the
    last token. After `limit_s` seconds the last scrape is returned with `settled` False and a finding that says what
    still moved. Raises UserError when the metrics cannot be read at all.
    """
    begun = time.monotonic()
    with _client(timeout_s) as client:
        text = _get(client, url)
        state = _state(parse(text), names)
        quiet_since = time.monotonic()
        while True:
            now = time.monotonic()
            if not state.running and now - quiet_since >= names.publish_lag_s:
                return Settled(text, True, now - begun)
            if now - begun >= limit_s:
                return Settled(text, False, now - begun, [_restless(state, limit_s)])
            time.sleep(min(_MAX_INTERVAL_S, max(0.02, names.publish_lag_s / 3), max(0.0, limit_s - (now - begun))))
            text = _get(client, url)
            fresh = _state(parse(text), names)
            if fresh.counters != state.counters or fresh.running:
                quiet_since = time.monotonic()
            state = fresh


@dataclass(frozen=True)
class _State:
    running: float
    counters: tuple[tuple[str, float | None], ...]


def _state(exposition: Exposition, names: MetricNames) -> _State:
    counted = [
        name
        for quantity, aliases in vars(names).items()
        if isinstance(aliases, tuple) and quantity not in ("running", "process_start")
        for name in aliases
    ]
    running = sum(total(exposition.scalars.get(name, {})) or 0.0 for name in names.running)
    return _State(running, tuple((name, total(exposition.counter(name))) for name in counted))


def _restless(state: _State, limit_s: float) -> Finding:
    what = f"{state.running:g} requests were still running" if state.running else "the counters still moved"
    return Finding(
        code="counters_not_settled",
        severity="warn",
        message=f"After {limit_s:g} s {what}, so the window may miss tokens or hold somebody else's.",
        hint="Make sure that nothing else sends requests to this server.",
    )


def _client(timeout_s: float) -> httpx.Client:
    return httpx.Client(trust_env=False, follow_redirects=True, timeout=timeout_s, headers={"Accept": _ACCEPT})


def _get(client: httpx.Client, url: str) -> str:
    try:
        response = client.get(url)
    except httpx.HTTPError as error:
        raise UserError(
            f"The server's metrics cannot be read: {type(error).__name__}: {error}",
            place=url,
            fix="Check that the server still runs and that this address is its metrics endpoint.",
            code="metrics_unreachable",
        ) from error
    if response.status_code != 200:
        raise UserError(
            f"The metrics endpoint answered HTTP {response.status_code}.",
            place=url,
            fix=_fix_for(response.status_code),
            code="metrics_unreachable",
        )
    return response.content.decode("utf-8", errors="replace")


def _fix_for(status: int) -> str:
    if status == 501:
        return "Start llama-server with --metrics."
    if status == 404:
        return "vLLM and llama.cpp serve /metrics, NIM /v1/metrics; SGLang needs --enable-metrics."
    if status in (401, 403):
        return "The metrics endpoint asks for credentials; open it for this machine."
    return "See the server's log."
