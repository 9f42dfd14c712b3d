"""`manifest.json`: what a bundle holds, byte for byte, what was left out of it, and which code judged."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from ..records.base import Finding, Record, strict_dumps

SHORT = 12
"""Hex digits of the digest in a bundle's name."""


class Packed(Record):
    """One file of a bundle."""

    path: str = Field(description="Relative to the bundle's folder, with forward slashes.")
    sha256: str
    size: int = Field(description="Bytes.")


class Manifest(Record):
    """Everything in a bundle but the manifest itself and MANIFEST.sha256."""

    schema_version: Literal[1] = 1
    name: str = Field(description="The matrix's name: its results lie in results/<name>/.")
    lab: str = Field(description="Version of specdec-lab that packed it.")
    code: dict[str, str] = Field(description="Stage -> digest of its code, to tell other code from other numbers.")
    measured_from: str | None = Field(default=None, description="Start of the first server, RFC 3339.")
    measured_to: str | None = Field(default=None, description="End of the last server, RFC 3339.")
    files: list[Packed] = Field(description="Sorted by path.")
    left_out: list[Finding] = Field(default=[], description="What was not packed, and why.")
    redacted: list[str] = Field(default=[], description="Files out of which a secret was taken.")

    @property
    def digest(self) -> str:
        """Content address of the bundle, independent of how the archive is compressed: sha256 of the manifest."""
        return hashlib.sha256(strict_dumps(self).encode()).hexdigest()[:SHORT]

    @property
    def folder(self) -> str:
        """The folder that the archive unpacks to."""
        return f"{self.name}-{self.digest}"


def manifest_path(name: str) -> str:
    """Where the manifest lies: among the results, so that an unpacked bundle looks packed to the workflow too."""
    return f"results/{name}/bundle/manifest.json"
