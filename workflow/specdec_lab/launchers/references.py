"""Names of images as Docker reads them: registry, repository, tag, digest (M9)."""

from __future__ import annotations

DEFAULT_REGISTRY = "docker.io"
_OTHER_NAMES = frozenset({"index.docker.io", "registry-1.docker.io"})
"""The default registry under names that it also has."""


def repository(reference: str) -> str:
    """The full repository, `docker.io/library/ubuntu` for `ubuntu:22.04`; without tag and digest."""
    name = reference.partition("@")[0]
    if ":" in name.rpartition("/")[2]:
        name = name.rpartition(":")[0]
    first, slash, rest = name.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        first, rest = DEFAULT_REGISTRY, name
    if first in _OTHER_NAMES:
        first = DEFAULT_REGISTRY
    if first == DEFAULT_REGISTRY and "/" not in rest:
        rest = f"library/{rest}"
    return f"{first}/{rest}"


def digest(reference: str) -> str | None:
    """The digest that a reference is pinned to; None for a tag, and for an engine's `<none>@<none>`."""
    given = reference.partition("@")[2]
    return given if ":" in given else None
