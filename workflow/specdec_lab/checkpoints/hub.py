"""Provider `hub:` - Hugging Face repositories at pinned revisions (M11). The token comes from the environment alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from .checkpoint import Checkpoint

_COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "tokenizer*"]
"""What a server of safetensors needs; `original/` copies and other formats stay where they are."""
IGNORED = ["original/*", "consolidated*", "*.pth", "*.bin", "*.gguf", "onnx/*"]


def _revision(spec: CheckpointSpec) -> str:
    if not spec.revision or not _COMMIT.fullmatch(spec.revision):
        raise UserError(
            f"the hub checkpoint {spec.hub} is not pinned to a commit (revision: {spec.revision or 'none'})",
            fix="write the 40-digit commit from the repository's history as `revision:`; a branch name moves",
            code="not_pinned",
        )
    return spec.revision


def _files(spec: CheckpointSpec) -> tuple[list[str], list[str] | None]:
    return (spec.files, None) if spec.files else (DEFAULT_FILES, IGNORED)


def _snapshot(spec: CheckpointSpec, *, offline: bool) -> Path:
    from huggingface_hub import snapshot_download

    allow, ignore = _files(spec)
    return Path(
        snapshot_download(
            str(spec.hub),
            revision=_revision(spec),
            allow_patterns=allow,
            ignore_patterns=ignore,
            local_files_only=offline,
        )
    )


def _checkpoint(spec: CheckpointSpec, path: Path) -> Checkpoint:
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    revision = _revision(spec)
    return Checkpoint(
        path=path, digest=revision, revision=revision, size_bytes=size, origin=f"{spec.hub}@{revision[:12]}"
    )


def locate(spec: CheckpointSpec) -> Checkpoint:
    """The snapshot in the hub's own cache, without any network; works on a cache mounted read-only (case C6 c)."""
    from huggingface_hub.errors import LocalEntryNotFoundError

    _revision(spec)
    try:
        path = _snapshot(spec, offline=True)
    except LocalEntryNotFoundError as error:
        raise UserError(
            f"{spec.hub} is not in the hub cache at {_revision(spec)[:12]}",
            fix="run the checkpoint step first, with network (Snakemake does it by itself)",
            code="not_fetched",
        ) from error
    if not any(path.iterdir()):
        raise UserError(
            f"the snapshot of {spec.hub} is empty", place=str(path), fix="fetch it again", code="not_fetched"
        )
    return _checkpoint(spec, path)


def fetch(spec: CheckpointSpec, *, say: Callable[[str], None]) -> Checkpoint:
    """Download what is missing of the pinned snapshot, after a check of the disk; every way to fail says what to do."""
    import httpx
    from huggingface_hub import errors

    _revision(spec)
    try:
        missing = _missing_bytes(spec)
        _check_disk(str(spec.hub), missing)
        if missing:
            say(f"downloading {spec.hub} at {_revision(spec)[:12]}: {missing / 1e9:.1f} GB")
        return _checkpoint(spec, _snapshot(spec, offline=False))
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        complete = _already_complete(spec)
        if complete is not None:
            return complete
        raise explain(spec, error) from error
    except (httpx.TransportError, ConnectionError) as error:
        complete = _already_complete(spec)
        if complete is not None:
            return complete
        raise _no_network(spec, error) from error
    except PermissionError as error:
        raise UserError(
            f"the hub cache cannot be written: {error.filename}",
            place=str(spec.hub),
            fix="give this user the right to write there, or set HF_HOME to another folder",
            code="cache_not_writable",
        ) from error
    except OSError as error:
        raise UserError(
            f"{spec.hub} could not be stored: {error}", fix="check the disk under HF_HOME", code="disk"
        ) from error


def _already_complete(spec: CheckpointSpec) -> Checkpoint | None:
    """The cached snapshot, when the network is off or away but nothing is missing."""
    try:
        return locate(spec)
    except UserError:
        return None


def _missing_bytes(spec: CheckpointSpec) -> int:
    from fnmatch import fnmatch

    from huggingface_hub import HfApi, try_to_load_from_cache

    info = HfApi().model_info(str(spec.hub), revision=_revision(spec), files_metadata=True)
    allow, ignore = _files(spec)
    missing = 0
    for file in info.siblings or []:
        name = file.rfilename
        if not any(fnmatch(name, p) for p in allow) or any(fnmatch(name, p) for p in ignore or []):
            continue
        if not isinstance(try_to_load_from_cache(str(spec.hub), name, revision=_revision(spec)), str):
            missing += file.size or 0
    return missing


def hub_cache() -> Path:
    """Where huggingface_hub keeps its snapshots."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def _check_disk(name: str, needed: int) -> None:
    folder = hub_cache()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if needed and free < needed * 1.05:
        raise UserError(
            f"{name} needs {needed / 1e9:.1f} GB, only {free / 1e9:.1f} GB are free",
            place=str(hub_cache()),
            fix="free some space, or set HF_HOME to a folder on a larger disk",
            code="disk_full",
        )


def _no_network(spec: CheckpointSpec, error: Exception) -> UserError:
    return UserError(
        f"the hub cannot be reached and {spec.hub} is not complete in the cache ({type(error).__name__})",
        place=str(hub_cache()),
        fix="connect this machine, or fill the cache elsewhere and set HF_HUB_OFFLINE=1",
        code="offline",
    )


def explain(spec: CheckpointSpec, error: Exception) -> UserError:
    """The hub's refusal as cause and fix: gated (401 or 403), no such repository or revision, bad token, limits."""
    from huggingface_hub import errors, get_token

    name = str(spec.hub)
    page = f"https://huggingface.co/{name}"
    status: Any = getattr(getattr(error, "response", None), "status_code", None)
    has_token = bool(get_token())
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError):
        return _no_network(spec, error)
    if isinstance(error, errors.GatedRepoError):
        if not has_token or status == 401:
            fix = f"accept the licence at {page}, then set HF_TOKEN to a read token of that account"
            return UserError(f"{name} is gated and the hub wants a token (401)", fix=fix, code="gated_401")
        fix = f"open {page} with the token's account, accept the licence, wait for the grant, then try again"
        return UserError(f"{name} is gated and this token's account has no access (403)", fix=fix, code="gated_403")
    if isinstance(error, errors.RevisionNotFoundError):
        return UserError(
            f"{name} has no revision {spec.revision}", fix=f"take a commit from {page}/commits", code="no_revision"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        fix = "check the spelling; a private repository also answers like this without the right HF_TOKEN"
        return UserError(f"the hub knows no repository {name} (or it is private)", place=page, fix=fix, code="no_repo")
    if status in (401, 403):
        what = "wants a valid token" if status == 401 else "refuses this token"
        return UserError(
            f"the hub {what} for {name} ({status})",
            place=page,
            fix="set HF_TOKEN to a valid read token whose account may read the repository",
            code=f"hub_{status}",
        )
    if status == 429:
        return UserError(
            f"the hub limits this address (429) at {name}", fix="wait some minutes, or set HF_TOKEN", code="hub_429"
        )
    return UserError(
        f"the hub answered {status or type(error).__name__} for {name}",
        place=page,
        fix="try again later",
        code="hub_error",
    )
