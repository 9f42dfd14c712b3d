"""Checkpoints, disk, token, folders that must be writable (M11, C6, E9)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from ..writable import existing, require_writable
from .line import Line, Needs, Status

GB = 1e9
HUB_BYTES = 30 * GB
"""About what an 8B target, a 1B draft and a head take."""
WORK_BYTES = 2 * GB


def token(needs: Needs) -> Iterator[Line]:
    """Whether a hub token is there; never its value."""
    from huggingface_hub import get_token

    gated = sorted(name for name, spec in needs.checkpoints.items() if spec.gated and not _there(needs, name))
    if get_token():
        yield Line(check="token", status="ok", found="a Hugging Face token is present")
    elif gated:
        yield Line(
            check="token",
            status="fail",
            found=f"no Hugging Face token, and {', '.join(gated)} {'is' if len(gated) == 1 else 'are'} gated",
            fix="accept the licence on the model's page, make a read token, and set HF_TOKEN",
        )
    elif needs.known:
        yield Line(check="token", status="ok", found="no Hugging Face token, and none is needed")
    else:
        yield Line(
            check="token",
            status="warn",
            found="no Hugging Face token; gated checkpoints need one",
            fix="set HF_TOKEN to a read token",
        )


def _there(needs: Needs, name: str) -> bool:
    try:
        _look(needs.checkpoints[name])
    except UserError:
        return False
    return True


def found_checkpoints(needs: Needs) -> Iterator[Line]:
    """Each checkpoint: here, or to be fetched; a path that does not exist fails."""
    for name, spec in needs.checkpoints.items():
        try:
            origin, size = _look(spec)
        except UserError as error:
            missing_path = spec.path is not None or error.code != "not_fetched"
            yield Line(
                check="checkpoint",
                status="fail" if missing_path else "warn",
                found=f"{needs.where('checkpoints', name, 'path') if missing_path else ''}{name}: {error.cause}",
                fix=error.fix if missing_path else "it is fetched before the first server starts",
            )
        else:
            yield Line(check="checkpoint", status="ok", found=f"{name}: {origin}, {size / GB:.2f} GB")


def _look(spec: CheckpointSpec) -> tuple[str, int]:
    """Where a checkpoint comes from, and its bytes. A path of the user's own is looked at, and not read through: it may
    be a folder of anything."""
    from .. import checkpoints
    from ..checkpoints import local

    if checkpoints.source(spec) != "path":
        one = checkpoints.locate(spec)
        return one.origin, one.size_bytes
    path = local.find(spec)
    if path.is_file():
        return str(spec.path), path.stat().st_size
    files = (file for file in path.iterdir() if file.is_file())
    return str(spec.path), sum(file.stat().st_size for file in files)


def disk(needs: Needs) -> Iterator[Line]:
    """Room for checkpoints and results."""
    from ..checkpoints.checkpoint import cache_dir
    from ..checkpoints.hub import hub_cache

    to_fetch = [name for name, spec in needs.checkpoints.items() if spec.hub and not _there(needs, name)]
    places = {"results": (Path(needs.results), WORK_BYTES), "cache": (cache_dir(), WORK_BYTES)}
    if to_fetch or not needs.known:
        places["hub cache"] = (hub_cache(), HUB_BYTES)
    for name, (folder, wanted) in places.items():
        free = shutil.disk_usage(existing(folder)).free
        if free < wanted:
            yield Line(
                check="disk",
                status=needs.lacking(needs.known),
                found=f"{name}: {free / GB:.1f} GB free under {folder}, about {wanted / GB:.0f} GB are needed",
                fix="free some space, or set HF_HOME or SPECDEC_CACHE_DIR to a larger disk",
            )
        else:
            yield Line(check="disk", status="ok", found=f"{name}: {free / GB:.0f} GB free")


def folders(needs: Needs) -> Iterator[Line]:
    """Folders that a run writes into; a read-only one is better found now than after two hours (case E9)."""
    from ..checkpoints.checkpoint import cache_dir

    places: list[tuple[Path, str, str, Status]] = [
        (Path(needs.results), "of the results", "run from another folder", "fail"),
        (cache_dir(), "of the cache", "set SPECDEC_CACHE_DIR to another one", "warn"),
    ]
    for folder, whose, fix, status in places:
        try:
            require_writable(folder, whose, fix)
        except UserError as error:
            yield Line(check="folders", status=status, found=f"{error.cause} {error.place}", fix=error.fix)
