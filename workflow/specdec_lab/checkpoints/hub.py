"""Provider `hub:` - Hugging Face repositories at pinned revisions (M11). The token comes from the environment alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..records.errors import UserError
from ..records.spec import CheckpointSpec
from ..writable import existing
from . import whole
from .checkpoint import Checkpoint
from .lock import lock_revision, locked_revision

_COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.jinja", "tokenizer*"]
"""What a server of safetensors needs; `original/` copies and other formats stay where they are."""
IGNORED = ["original/*", "consolidated*", "*.pth", "*.bin", "*.gguf", "onnx/*"]


def _pinned(spec: CheckpointSpec) -> str | None:
    """The commit of the config or of the lock, or None at the first fetch; UserError for a branch name, which moves."""
    if spec.revision is not None and not _COMMIT.fullmatch(spec.revision):
        raise UserError(
            f"the hub checkpoint {spec.hub} is not pinned to a commit (revision: {spec.revision})",
            fix="write the 40-digit commit from the repository's history as `revision:`; a branch name moves",
            code="not_pinned",
        )
    return spec.revision or locked_revision(str(spec.hub))


def _files(spec: CheckpointSpec) -> tuple[list[str], list[str] | None]:
    return (spec.files, None) if spec.files else (DEFAULT_FILES, IGNORED)


def _snapshot(spec: CheckpointSpec, revision: str, *, offline: bool) -> Path:
    from huggingface_hub import snapshot_download

    allow, ignore = _files(spec)
    return Path(
        snapshot_download(
            str(spec.hub), revision=revision, allow_patterns=allow, ignore_patterns=ignore, local_files_only=offline
        )
    )


def _checkpoint(spec: CheckpointSpec, path: Path) -> Checkpoint:
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    commit = path.name
    return Checkpoint(path=path, digest=commit, revision=commit, size_bytes=size, origin=f"{spec.hub}@{commit[:12]}")


def locate(spec: CheckpointSpec) -> Checkpoint:
    """The snapshot in the hub's own cache, without any network; works on a cache mounted read-only (case C6 c).

    Without a pinned revision it is the one that was fetched last. The hub's own offline lookup takes a half-finished
    snapshot for a whole one.
    """
    from huggingface_hub.errors import LocalEntryNotFoundError

    revision = _pinned(spec)
    try:
        path = _snapshot(spec, revision or "main", offline=True)
    except LocalEntryNotFoundError as error:
        raise _not_fetched(spec) from error
    found = whole.fault(path)
    if found is not None:
        raise _not_fetched(spec, f": {found[0]}")
    return _checkpoint(spec, path)


def _not_fetched(spec: CheckpointSpec, why: str = "") -> UserError:
    return UserError(
        f"{spec.hub} is not (or not wholly) in the hub cache at {(spec.revision or 'main')[:12]}{why}",
        place=str(hub_cache()),
        fix="run the checkpoint step first, with network (Snakemake does it by itself)",
        code="not_fetched",
    )


def fetch(spec: CheckpointSpec, *, say: Callable[[str], None]) -> Checkpoint:
    """Make sure that the snapshot is whole: nothing is asked of the network when it is. Otherwise the disk is checked
    and what is missing is downloaded; every way to fail says what to do."""
    from huggingface_hub import errors

    try:
        return _kept(spec, locate(spec))
    except UserError as error:
        if error.code != "not_fetched":
            raise
    wanted = _pinned(spec)
    try:
        revision, missing = _missing(spec, wanted)
        _check_disk(str(spec.hub), missing)
        say(f"downloading {spec.hub} at {revision[:12]}: {missing / 1e9:.2f} GB")
        path = _snapshot(spec, wanted or "main", offline=False)
    except (errors.HfHubHTTPError, errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as error:
        raise explain(spec, error) from error
    except ConnectionError as error:
        raise _no_network(spec, error) from error
    except PermissionError as error:
        raise UserError(
            f"the hub cache cannot be written: {error.filename or hub_cache()}",
            place=str(spec.hub),
            fix="give this user the right to write there, or set HF_HOME to another folder",
            code="cache_not_writable",
        ) from error
    except OSError as error:
        raise UserError(
            f"{spec.hub} could not be stored: {error}", fix="check the disk under HF_HOME", code="disk"
        ) from error
    except Exception as error:
        if not _from_network(error):
            raise
        raise _no_network(spec, error) from error
    found = whole.fault(path)
    if found is not None:
        raise UserError(
            f"{spec.hub} is not whole after it was fetched: {found[0]}",
            place=str(path),
            fix="name the right files under `files:`, check the repository, or remove this folder and fetch it anew",
            code="no_weights",
        )
    return _kept(spec, _checkpoint(spec, path))


def _kept(spec: CheckpointSpec, found: Checkpoint) -> Checkpoint:
    if spec.revision is None and found.revision is not None:
        lock_revision(str(spec.hub), found.revision)
    return found


def _missing(spec: CheckpointSpec, revision: str | None) -> tuple[str, int]:
    """The commit, and the bytes of its files that are not in the cache."""
    from fnmatch import fnmatch

    from huggingface_hub import HfApi, try_to_load_from_cache

    info = HfApi().model_info(str(spec.hub), revision=revision, files_metadata=True)
    commit = str(info.sha)
    allow, ignore = _files(spec)
    missing = 0
    for file in info.siblings or []:
        name = file.rfilename
        if not any(fnmatch(name, p) for p in allow) or any(fnmatch(name, p) for p in ignore or []):
            continue
        if not isinstance(try_to_load_from_cache(str(spec.hub), name, revision=commit), str):
            missing += file.size or 0
    return commit, missing


def hub_cache() -> Path:
    """Where huggingface_hub keeps its snapshots."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


def _check_disk(name: str, needed: int) -> None:
    free = shutil.disk_usage(existing(hub_cache())).free
    if needed and free < needed * 1.05:
        raise UserError(
            f"{name} needs {needed / 1e9:.1f} GB, only {free / 1e9:.1f} GB are free",
            place=str(hub_cache()),
            fix="free some space, or set HF_HOME to a folder on a larger disk",
            code="disk_full",
        )


def _from_network(error: Exception) -> bool:
    """By name: the hub's client has changed its HTTP library before (requests, httpx, httpx2)."""
    return any(c.__name__ in ("TransportError", "RequestException", "ConnectionError") for c in type(error).__mro__)


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
