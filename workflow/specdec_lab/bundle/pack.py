"""`specdec pack` and the rule `bundle`: one byte-reproducible archive with everything behind a results folder (M36).

Serves M10 (a number without its stack is refused) and case E9 (secrets, links, unreadable files, read-only folders).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import __version__
from ..asked import resolved_plan, session_folders
from ..provenance.code import digest as code_digest
from ..provenance.redact import redact, redact_values, secret_values
from ..records.base import Finding, strict_dumps, strict_loads, write_text_atomic
from ..records.comparison import Comparison
from ..records.errors import UserError
from ..records.reading import must_read
from . import archive
from .config import CONFIG, config_text, traffic
from .contents import METADATA, Contents, collect, has_stack
from .crate import CRATE, metadata
from .manifest import Manifest, Packed, manifest_path

CHECKSUMS = "MANIFEST.sha256"
README = "README.md"
_STAGES = ("measure", "compare", "decide", "report")
_TOLD_BY_OTHERS = frozenset({".log", ".prom"})
"""What servers and programs print: here a value beside a secret's name is taken for a secret."""
_RECORDS_OF_ERRORS = frozenset({"failure.json", "session.json"})


@dataclass
class _Ready:
    """Texts of the bundle as they will be packed, by path; files not yet read stay where they are."""

    contents: Contents
    made: dict[str, bytes] = field(default_factory=dict)
    packed: dict[str, Packed] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    cleaned: dict[str, bytes] = field(default_factory=dict)
    """Texts that were searched for secrets, which takes its time; read once for the checksum, once for the archive."""
    secrets: list[str] = field(default_factory=list)

    def read(self, path: str) -> bytes | None:
        """The bytes to pack; None when the file cannot be read (noted)."""
        if path in self.made or path in self.cleaned:
            return self.made.get(path) or self.cleaned[path]
        try:
            content = self.contents.files[path].read_bytes()
        except OSError as error:
            self.contents.leave("unreadable", path, error.strerror or "cannot be read")
            return None
        return self._clean(path, content)

    def _clean(self, path: str, content: bytes) -> bytes:
        try:
            text = content.decode()
        except UnicodeDecodeError:
            return content
        name = Path(path).name
        if Path(path).suffix in _TOLD_BY_OTHERS or name in _RECORDS_OF_ERRORS:
            clean = redact(text, self.secrets)
            self.cleaned[path] = clean.encode()
        else:
            clean = redact_values(text, self.secrets)
        if clean == text:
            return content
        self.redacted.add(path)
        return clean.encode()


def pack(
    results: Path,
    *,
    out: Path | None = None,
    project: Path | None = None,
    store: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Write `<out>/<name>-<digest>.tar.gz` and give its path; the manifest lies beside the results too.

    `out` is results/<name>/bundle by default, `project` the folder that holds `results/`, `store` the cell store
    (SPECDEC_STORE, else `cells` in the project). UserError when the results are not complete enough to be a result:
    no table yet, a cell without its stack, or nowhere to write.
    """
    results = results.resolve()
    if not results.is_dir():
        raise UserError(
            "There is no results folder here.",
            place=str(results),
            fix="Give the folder to pack: specdec pack results/demo",
            code="no_results",
        )
    project = (project or results.parent.parent).resolve()
    store = store or project / environment.get("SPECDEC_STORE", "cells")
    target = out or results / "bundle"
    archive.require_writable(target)
    comparison = _comparison(results)
    resolved = _resolved(results)
    _require_stacks(results)
    contents = collect(results, project, store, traffic(resolved) if resolved else None)
    ready = _Ready(contents, secrets=secret_values(environment))
    started, ended = _times(results)
    if resolved is not None:
        ready.made[CONFIG] = config_text(resolved).encode()
    ready.made[README] = _readme(results.name).encode()
    paths = {*contents.files, *ready.made}
    ready.made[CRATE] = metadata(
        results.name, paths, lab=__version__, started=started, ended=ended, stack=comparison.stack
    ).encode()
    for path in sorted({*contents.files, *ready.made}):
        _describe(path, ready)
    manifest = Manifest(
        name=results.name,
        lab=__version__,
        code={stage: code_digest(stage) for stage in _STAGES},
        measured_from=started,
        measured_to=ended,
        files=list(ready.packed.values()),
        left_out=sorted(contents.left_out, key=lambda one: (one.code, one.message)),
        redacted=sorted(ready.redacted),
    )
    return _write(manifest, ready, target, results)


def _write(manifest: Manifest, ready: _Ready, target: Path, results: Path) -> Path:
    text = strict_dumps(manifest)
    own = manifest_path(manifest.name)
    sums = {own: hashlib.sha256(text.encode()).hexdigest(), **{one.path: one.sha256 for one in manifest.files}}
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums))
    ready.made |= {own: text.encode(), CHECKSUMS: lines.encode()}
    path = target / f"{manifest.folder}.tar.gz"
    archive.write(path, manifest.folder, ((name, _again(name, ready)) for name in sorted({*sums, CHECKSUMS})))
    write_text_atomic(results / "bundle" / "manifest.json", text)
    return path


def _again(path: str, ready: _Ready) -> bytes:
    """The same bytes as were described; UserError if a file changed meanwhile."""
    content = ready.read(path)
    told = ready.packed.get(path)
    if content is None or (told is not None and hashlib.sha256(content).hexdigest() != told.sha256):
        raise UserError(
            f"{path} changed while it was packed.",
            place=path,
            fix="Wait until the run is over, then pack again.",
            code="changed",
        )
    return content


def _describe(path: str, ready: _Ready) -> None:
    content = ready.read(path)
    if content is None:
        return
    ready.packed[path] = Packed(path=path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    if path in ready.redacted and path.startswith(METADATA):
        ready.contents.leave("redacted", path, "a secret was among the params: that job would run again elsewhere")


def _comparison(results: Path) -> Comparison:
    path = results / "comparison.json"
    if not path.is_file():
        raise UserError(
            "There is no table yet, so there is nothing to keep.",
            place=str(path),
            fix=f"Run the workflow, or `specdec compare {results}` for what was measured so far.",
            code="no_results",
        )
    comparison = must_read(path, Comparison, fix=f"Run `specdec compare {results}` again.")
    plan = resolved_plan(results)
    if plan is not None and comparison.plan != plan:
        raise UserError(
            "The table was made for another config than the one that stands here now.",
            place=str(path),
            fix=f"Run the workflow, or `specdec compare {results}` for what was measured so far.",
            code="old_table",
        )
    return comparison


def _resolved(results: Path) -> dict[str, Any] | None:
    path = results / "config.resolved.json"
    if not path.is_file():
        return None
    content = strict_loads(path.read_bytes())
    return content if isinstance(content, dict) and {"config", "plan"} <= set(content) else None


def _require_stacks(results: Path) -> None:
    """M10: a number without its stack is refused."""
    bare = [
        path.relative_to(results).as_posix()
        for one in session_folders(results)
        for path in one.cells
        if not path.is_symlink() and not _says_stack(path)
    ]
    if bare:
        raise UserError(
            f"{len(bare)} cells do not say on what stack they were measured: {', '.join(bare[:3])}",
            place=str(results / "sessions"),
            fix="Measure them again; a number without its stack is not kept.",
            code="no_stack",
        )


def _says_stack(path: Path) -> bool:
    try:
        return has_stack(path)
    except PermissionError:
        return True  # it is listed as unreadable instead
    except ValueError:
        return False


def _times(results: Path) -> tuple[str | None, str | None]:
    """First start and last end of a server, from the sessions' own records."""
    starts: list[str] = []
    ends: list[str] = []
    for one in session_folders(results):
        try:
            lifetimes = strict_loads(one.session.read_bytes())["lifetimes"]
        except (OSError, ValueError, KeyError):
            continue
        starts += [life["started_at"] for life in lifetimes]
        ends += [life["stopped_at"] for life in lifetimes if life.get("stopped_at")]
    return min(starts, default=None), max(ends, default=None)


def notes(manifest: Manifest) -> list[Finding]:
    """What whoever packs should know."""
    cleaned = [
        Finding(code="redacted", message=f"{path}: a secret was taken out", severity="info")
        for path in manifest.redacted
    ]
    return [*manifest.left_out, *cleaned]


def _readme(name: str) -> str:
    return f"""# {name}: a result bundle of specdec-lab

Everything behind a table about speculative decoding: config, prompts, raw rows, counters, server logs, the stack that
it was measured on, tables, decision, report, and the workflow that made them. Open `results/{name}/report.html`.

- Check it: `sha256sum -c {CHECKSUMS}`, or with the lab `specdec verify .` (checksums, formats, and every table
  recomputed from the raw rows).
- Make tables and report again: `specdec compare results/{name}`.
- See that nothing is left to do: `snakemake -n` here (the lab installed from this folder: `make setup`).
- Lay it beside another one: `specdec diff A.tar.gz B.tar.gz`.
- `{CRATE}` tells other tools what is what (Workflow Run Crate).
"""
