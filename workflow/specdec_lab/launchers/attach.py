"""Launcher for a server that runs already: nothing is started, nothing is ever stopped."""

from __future__ import annotations

from urllib.parse import urlsplit

from ..records.errors import UserError
from .base import Exit, LaunchPlan


class Attached:
    """A running server of someone else's."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url

    def exited(self) -> Exit | None:
        """Never known: whether it answers is all that can be asked."""
        return None

    def facts(self) -> dict[str, str]:
        """The address."""
        return {"base_url": self.base_url}

    def fault(self) -> str | None:
        """Nothing can be seen from here."""
        return None

    def packages(self) -> dict[str, str]:
        """Not to be seen from here."""
        return {}

    def owns_port(self) -> bool | None:
        """Not ours to prove."""
        return None

    def stop(self, timeout_s: float) -> None:
        """Leaves the server as it is."""


class AttachLauncher:
    """Takes the server's address from the plan's only argument."""

    name = "attach"

    def sweep(self) -> list[str]:
        """Nothing was started, so nothing can be left."""
        return []

    def start(self, plan: LaunchPlan) -> Attached:
        """The server at `plan.argv[0]` (its base URL); UserError if that is no http(s) address."""
        url = plan.argv[0].rstrip("/") if plan.argv else ""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UserError(
                f"{url!r} is no address of a server", place="base_url", fix="write http://HOST:PORT", code="bad_url"
            )
        plan.log.parent.mkdir(parents=True, exist_ok=True)
        plan.log.write_text(f"attached to {url}: its log stays with whoever started it\n", encoding="utf-8")
        return Attached(url.removesuffix("/v1"))


LAUNCHER = AttachLauncher()
