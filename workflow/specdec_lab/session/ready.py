"""From a started server to one that may be measured: health, ours, one real completion, the version asked for (M19)."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import httpx
from pydantic import JsonValue

from ..counters.scrape import scrape
from ..engines.base import Engine
from ..launchers.base import Exit, Running
from ..records.errors import UserError
from ..records.spec import ServerSpec

POLL_S = 0.2


class ServerDied(Exception):
    """The server ended by itself; `exit` says how."""

    def __init__(self, end: Exit) -> None:
        super().__init__(f"the server ended by itself ({_how(end)})")
        self.exit = end


def _how(end: Exit) -> str:
    """`exit code 1`; for a signal also its name, as a shell and Docker count it: 128 + its number."""
    told, code = f"exit code {end.code}", end.code or 0
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        told += f", by {signal.Signals(number).name}"
    return f"{told}, out of memory" if end.oom_killed else told


def wait_until_healthy(running: Running, engine: Engine, timeout_s: float, say: Callable[[str], None]) -> float:
    """Poll until the ready path answers 200; seconds it took. ServerDied within one poll of its death; UserError at the
    limit. Answers of other codes (503 while loading) count as not yet."""
    start = time.monotonic()
    said = start
    last = "nothing answered"
    with httpx.Client(trust_env=False, timeout=5.0, follow_redirects=True) as client:
        while True:
            end = running.exited()
            if end is not None:
                raise ServerDied(end)
            try:
                answer = client.get(running.base_url + engine.ready_path)
                if answer.status_code == 200:
                    return time.monotonic() - start
                last = f"the last answer was HTTP {answer.status_code}"
            except httpx.TransportError as error:
                last = f"the last try failed: {error}"
            now = time.monotonic()
            if now - start > timeout_s:
                raise UserError(
                    f"The server was not ready within {timeout_s:g} s; {last}.",
                    fix="Look at the end of its log. If it was still loading, raise engine.ready_timeout_s.",
                    code="never_healthy",
                )
            if now - said > 15:
                said = now
                say(f"waiting for the server, {now - start:.0f} s")
            time.sleep(POLL_S)


def prove_ours(running: Running) -> None:
    """UserError if another program answers on the port."""
    if running.owns_port() is False:
        raise UserError(
            "Another program answers on the server's port.",
            place=running.base_url,
            fix="End that program; the lab takes a free port by itself at the next start.",
            code="foreign_server",
        )


def first_completion(base_url: str, model: str, extra: Mapping[str, JsonValue], timeout_s: float) -> None:
    """One real completion, not recorded. UserError with the server's own words if it is refused."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Say hello."}],
        "max_tokens": 8,
        "temperature": 0,
        **extra,
    }
    try:
        with httpx.Client(trust_env=False, timeout=timeout_s) as client:
            answer = client.post(f"{base_url}/v1/chat/completions", json=body)
    except httpx.HTTPError as error:
        raise UserError(
            f"The server is healthy but its first completion failed: {error}", place=base_url, code="first_completion"
        ) from None
    if answer.status_code != 200:
        raise UserError(
            f"The server is healthy but refused its first completion: HTTP {answer.status_code}, {answer.text[:500]}",
            place=f"{base_url}/v1/chat/completions",
            fix="Check the model's name (engine.served_model) and that the model has a chat template.",
            code="first_completion",
        )
    try:
        answer.json()["choices"][0]["message"]
    except (ValueError, LookupError, TypeError):
        raise UserError(
            f"The server's first completion has no message: {answer.text[:300]}",
            place=f"{base_url}/v1/chat/completions",
            fix="Is this an OpenAI-compatible endpoint?",
            code="first_completion",
        ) from None


def check_version(engine: Engine, spec: ServerSpec, base_url: str, facts: Mapping[str, JsonValue]) -> str | None:
    """The version the server reports; UserError if the config asks for another one. A suffix (+cpu) is allowed."""
    version = engine.version(base_url) or _text(facts.get("version"))
    if spec.version is not None and version is not None and version.split("+")[0] != spec.version.split("+")[0]:
        raise UserError(
            f"The server reports version {version}, the config asks for {spec.version}.",
            place="engine.version",
            fix="Install that version, or write the version that you mean.",
            code="wrong_version",
        )
    return version


def check_speculation(metrics_url: str, engine: Engine, spec: ServerSpec, facts: Mapping[str, JsonValue]) -> None:
    """UserError if a speculative server shows no speculation counters or says that it lost its speculation (failure 9).

    Done before anything is measured: an engine may go on without speculation and only mention it in its log.
    """
    if spec.speculative is None:
        return
    lost = facts.get("speculation_lost")
    if lost:
        raise UserError(
            f"The server runs, but without speculation: {lost}",
            place="the mode's `speculative` block",
            fix="Check method, draft checkpoint and vocabulary.",
            code="not_speculating",
        )
    names = [name for name in engine.metric_names.drafts + engine.metric_names.verify_calls if name]
    if not names:
        return
    text = scrape(metrics_url)
    if not any(name in text for name in names):
        raise UserError(
            f"The server shows no speculation counters ({', '.join(names)}): speculation seems not to be enabled.",
            place=metrics_url,
            fix="Check the mode's `speculative` block and that metrics are not switched off (disable-log-stats).",
            code="no_speculation_counters",
        )


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def read_log(path: Path) -> list[str]:
    """The server's log so far, by lines; empty when there is none. Bytes that are not UTF-8 are kept as U+FFFD."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").split("\n")
    except FileNotFoundError:
        return []
