"""`specdec verify`: is a bundle whole, is every file what it claims to be, do its tables follow from its rows (M36)?"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import Field, JsonValue

from ..formats import format_of
from ..provenance.code import digest as code_digest
from ..records.base import Record
from ..records.errors import UserError
from ..records.reading import must_read
from .archive import unpack
from .beside import left_by_tools, shown, unlisted
from .manifest import Manifest, manifest_path
from .pack import CHECKSUMS

Outcome = Literal["ok", "warn", "fail"]
CLOSE = 1e-9
"""Relative: numbers of a table that differ by more than this are not the same number."""
_MEASURED = ("starts", "requests", "failed", "agg_tok_s", "p50_decode_tok_s", "p50_ttft_s", "p95_ttft_s")
"""Columns that no judgement enters: they must agree whatever code recomputes them."""


class Check(Record):
    """One thing that was looked at."""

    name: str
    outcome: Outcome
    told: list[str] = Field(default=[], description="What is wrong, one line each.")


class Verification(Record):
    """All checks of one bundle."""

    bundle: str
    checks: list[Check]

    @property
    def good(self) -> bool:
        """Nothing failed."""
        return all(one.outcome != "fail" for one in self.checks)


@contextmanager
def opened(bundle: Path) -> Iterator[Path]:
    """The folder of a bundle: the given one, or where the archive was unpacked for as long as this is open."""
    if bundle.is_dir():
        yield bundle
        return
    if not bundle.is_file():
        raise UserError(
            "There is no bundle here.",
            place=str(bundle),
            fix="Give an archive that `specdec pack` made, or the folder it unpacks to.",
            code="no_bundle",
        )
    with tempfile.TemporaryDirectory(prefix="specdec-") as folder:
        try:
            yield unpack(bundle, Path(folder))
        except UserError as error:  # the folder is gone when the user reads this
            error.place = error.place.replace(folder, str(bundle))
            raise


def verify(bundle: Path) -> Verification:
    """Check a bundle, archive or folder. UserError when it is none at all."""
    with opened(bundle) as folder:
        manifest = _manifest(folder)
        worked_in = bundle.is_dir()
        beside = list(unlisted(folder, _listed(manifest), worked_in=worked_in))
        left = [path for path in beside if worked_in and left_by_tools(path)]
        added = [path for path in beside if path not in left]
        checks = [_checksums(folder, manifest, added), _formats(folder, manifest), _secrets(manifest)]
        if left:
            told = [f"{path}: not checked, not in the manifest" for path in left]
            checks.append(Check(name="beside", outcome="warn", told=told))
        if checks[0].outcome != "fail":
            checks.append(_name(bundle, manifest))
            checks.append(_judged_again(folder, manifest))
        return Verification(bundle=bundle.name, checks=checks)


def _manifest(folder: Path) -> Manifest:
    found = sorted(folder.glob(manifest_path("*")))
    if len(found) != 1:
        near = sorted(
            str(path) for way in ("*.tar.gz", "bundle/*.tar.gz", "*/bundle/*.tar.gz") for path in folder.glob(way)
        )
        raise UserError(
            "This folder is no bundle: it has no manifest." if not found else "This folder holds several bundles.",
            place=str(folder),
            fix=f"Give the archive: {near[0]}"
            if near
            else "Give an archive that `specdec pack` made, or the folder it unpacks to.",
            code="no_bundle",
        )
    if not _is_plain(found[0]):
        raise UserError(
            "The manifest is no regular file.", place=str(found[0]), fix="Get the bundle again.", code="unreadable"
        )
    manifest = must_read(found[0], Manifest, fix="Get the bundle again.")
    named = found[0].relative_to(folder).as_posix()
    outside = [one.path for one in manifest.files if _leads_outside(one.path)]
    if outside or manifest_path(manifest.name) != named:
        raise UserError(
            f"The manifest names a file outside the bundle: {outside[0]!r}."
            if outside
            else f"The manifest is that of {manifest.name!r} and lies among other results.",
            place=str(found[0]),
            fix="Do not use this bundle; ask where it comes from.",
            code="unsafe",
        )
    return manifest


def _leads_outside(path: str) -> bool:
    pure = PurePosixPath(path)
    return pure.is_absolute() or ".." in pure.parts


def _is_plain(path: Path) -> bool:
    """A regular file itself: whatever else has that name is not opened."""
    return path.is_file() and not path.is_symlink()


def _listed(manifest: Manifest) -> set[str]:
    return {*(one.path for one in manifest.files), manifest_path(manifest.name), CHECKSUMS}


def _checksums(folder: Path, manifest: Manifest, added: list[str]) -> Check:
    """`added`: what is in the bundle and not in its manifest."""
    told = []
    for one in manifest.files:
        path = folder / one.path
        if not _is_plain(path):
            told.append(f"{one.path}: missing")
        elif _sha256(path) != one.sha256:
            told.append(f"{one.path}: changed since it was packed")
    own = manifest_path(manifest.name)
    sums = folder / CHECKSUMS
    lines = set(sums.read_bytes().splitlines()) if _is_plain(sums) else set()
    first = f"{_sha256(folder / own)}  {own}".encode()
    if first not in lines:
        told.append(f"{own}: not the manifest that {CHECKSUMS} names")
    elif lines - {first, *(f"{one.sha256}  {one.path}".encode() for one in manifest.files)}:
        told.append(f"{CHECKSUMS}: lists what the manifest does not")
    told += [f"{path}: not in the manifest" for path in added]
    return Check(name="checksums", outcome="fail" if told else "ok", told=told)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _formats(folder: Path, manifest: Manifest) -> Check:
    told = []
    for one in manifest.files:
        form = format_of(one.path)
        if form is None or not (folder / one.path).is_file():
            continue
        try:
            form.check((folder / one.path).read_bytes())
        except ValueError as error:
            told.append(f"{one.path}: no {form.name} of version {form.version}: {_first_line(error)}")
    return Check(name="formats", outcome="fail" if told else "ok", told=told)


def _first_line(error: ValueError) -> str:
    return " ".join(line.strip() for line in str(error).splitlines()[:3])


def _secrets(manifest: Manifest) -> Check:
    told = [f"{path}: a secret was taken out" for path in manifest.redacted]
    told += [one.message for one in manifest.left_out]
    return Check(name="complete", outcome="warn" if told else "ok", told=told)


def _name(bundle: Path, manifest: Manifest) -> Check:
    named = bundle.name.removesuffix(".tar.gz")
    told = []
    if bundle.is_file() and named != manifest.folder:
        told.append(f"the archive is called {named}, its content is {manifest.folder}")
    return Check(name="name", outcome="warn" if told else "ok", told=told)


@dataclass(frozen=True)
class _Made:
    """Tables made again, beside those in the bundle."""

    packed: Path
    again: Path

    def same(self, name: str) -> bool:
        """Whether the two say the same: texts to the byte, numbers of JSON and CSV to `CLOSE`.

        The last digits of a number depend on the machine's mathematics library and on Python's version.
        """
        packed, again = ((folder / name).read_text(encoding="utf-8") for folder in (self.packed, self.again))
        if packed == again:
            return True
        if name.endswith(".json"):
            return _alike(json.loads(packed), json.loads(again))
        if name.endswith(".csv"):
            ours, theirs = (list(csv.reader(io.StringIO(text))) for text in (packed, again))
            return [len(row) for row in ours] == [len(row) for row in theirs] and all(
                _equal(one, other)
                for row, as_made in zip(ours, theirs, strict=True)
                for one, other in zip(row, as_made, strict=True)
            )
        return False


def _judged_again(folder: Path, manifest: Manifest) -> Check:
    """The tables; what cannot be judged again fails, whatever is wrong with it."""
    try:
        return _tables(folder, manifest)
    except UserError as error:
        return Check(name="tables", outcome="fail", told=[f"cannot be made again: {error.cause}"])
    except (ValueError, KeyError) as error:
        return Check(name="tables", outcome="fail", told=[f"cannot be made again: {type(error).__name__}: {error}"])


def _tables(folder: Path, manifest: Manifest) -> Check:
    """Recompute every table from the raw rows. With the judging code that packed it, all must be equal;
    with other code, what was measured must agree, and other judgements are told."""
    from ..analysis import compare, decision, tables

    with tempfile.TemporaryDirectory(prefix="specdec-") as place:
        results = Path(place) / "results" / manifest.name
        packed = folder / "results" / manifest.name
        results.mkdir(parents=True)
        for name in ("config.resolved.json", "probe.json"):
            if (packed / name).is_file():
                shutil.copyfile(packed / name, results / name)
        if not (packed / "sessions").is_dir():
            return Check(name="tables", outcome="fail", told=["there are no rows to recompute a table from"])
        (results / "sessions").symlink_to((packed / "sessions").resolve())
        tables.write(compare.compare(results), results)
        decision.write(results)
        made = _Made(packed, results)
        same_code = all(manifest.code.get(stage) == code_digest(stage) for stage in ("compare", "decide"))
        texts = [
            name
            for name in ("comparison.json", "summary.csv", "summary.txt", "decision.json", "decision.md")
            if (packed / name).is_file() and not made.same(name)
        ]
        if not texts:
            return Check(name="tables", outcome="ok")
        told = list(_differences(made, _MEASURED))
        if told:
            return Check(name="tables", outcome="fail", told=told)
        cells_redacted = any("/sessions/" in path for path in manifest.redacted)
        if same_code and not cells_redacted:
            told = list(_differences(made, None)) or [f"{name}: does not follow from the rows" for name in texts]
            return Check(name="tables", outcome="fail", told=told)
        why = "rows were redacted" if cells_redacted else f"judged by other code than in lab {manifest.lab}"
        return Check(name="tables", outcome="warn", told=[f"{name}: differs; {why}" for name in texts])


def _differences(made: _Made, columns: tuple[str, ...] | None) -> Iterator[str]:
    """Cells of summary.csv that do not agree; `columns` None: all that both have."""
    packed, again = (_rows(folder / "summary.csv") for folder in (made.packed, made.again))
    for key in sorted(set(packed) | set(again)):
        where = " ".join(key)
        if key not in packed or key not in again:
            yield f"summary.csv {where}: only {'in the bundle' if key in packed else 'by the rows'}"
            continue
        for column in columns or tuple(set(packed[key]) & set(again[key])):
            ours, theirs = packed[key].get(column, ""), again[key].get(column, "")
            if not _equal(ours, theirs):
                yield f"summary.csv {where} {column}: {ours or 'nothing'} in the bundle, {theirs or 'nothing'} by rows"


def _rows(path: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    if not path.is_file():
        return {}
    reader = csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")))
    return {(row["kind"], row["load"], row["mode"]): row for row in reader}


def _equal(ours: str, theirs: str) -> bool:
    if ours == theirs:
        return True
    try:
        return _close(float(ours), float(theirs))
    except ValueError:
        return False


def _close(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=CLOSE, abs_tol=CLOSE)


def _alike(ours: JsonValue, theirs: JsonValue) -> bool:
    """Whether two JSON values are equal but for the last digits of numbers, wherever those stand."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_alike(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(_alike(*pair) for pair in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, float):
        return _close(ours, theirs)
    return ours == theirs and type(ours) is type(theirs)


def tell(found: Verification, say: Callable[[str], None], limit: int = 20) -> None:
    """The checks for people."""
    for check in found.checks:
        say(f"{check.outcome:4}  {check.name}")
        for line in check.told[:limit]:
            say(f"      {shown(line)}")
        if len(check.told) > limit:
            say(f"      and {len(check.told) - limit} more")
