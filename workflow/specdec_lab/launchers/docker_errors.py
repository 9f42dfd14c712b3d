"""What a Docker engine (or podman behind the same API) refuses, as cause and fix (cases C1, C3, C5)."""

from __future__ import annotations

import re

from ..records.errors import UserError

_KNOWN: tuple[tuple[str, str, str, str], ...] = (
    (
        r"could not select device driver|Unknown runtime specified nvidia|unresolvable CDI devices",
        "no_gpu_runtime",
        "Docker cannot give a container the GPU: the NVIDIA container toolkit is missing",
        "install it (`nvidia-ctk runtime configure --runtime=docker`), restart Docker, then run `specdec doctor`",
    ),
    (
        r"unsatisfied condition: cuda>=",
        "driver_too_old",
        "the NVIDIA driver is older than this image's CUDA needs",
        "install a driver of the R580 line or later (CUDA 13), or use an image for an older CUDA",
    ),
    (
        r"port is already allocated|address already in use|cannot listen on the TCP port",
        "port_taken",
        "the port is in use by something else",
        "end what listens there; the lab takes a free port by itself at the next start",
    ),
    (
        r"toomanyrequests|too many requests|rate limit",
        "image_rate_limit",
        "the registry limits how much this address may pull",
        "wait, or `docker login` to a registry account, then try again",
    ),
    (
        r"manifest (?:for .* )?(?:not found|unknown)|manifest unknown|name unknown|reference does not exist",
        "image_unknown",
        "the registry has no such image or tag",
        "check the image's name and tag",
    ),
    (
        r"pull access denied|unauthorized|access (?:to the resource is )?(?:denied|forbidden)|^denied|\bdenied:"
        r"|authentication required|no basic auth credentials",
        "image_denied",
        "the registry refuses this image: it is private, or does not exist",
        "check the name, and `docker login` to that registry",
    ),
    (
        r"no such host|dial tcp|connection refused|i/o timeout|TLS handshake|Temporary failure in name resolution",
        "image_network",
        "the registry cannot be reached",
        "connect this machine, or load the image by hand (`docker load`); an image that is there needs no network",
    ),
    (
        r"bind source path does not exist",
        "mount",
        "a file to be mounted is not on the Docker engine's machine",
        "run the lab on the machine that runs the Docker engine",
    ),
    (
        r"is already in use by container|name .* is already in use",
        "name_taken",
        "a container of that name exists, and it is not ours",
        "rename or remove it yourself; the lab touches only containers with its own label",
    ),
    (
        r"exec: .*no such file or directory|executable file not found|stat .*: no such file",
        "no_program",
        "the image has no such program",
        "check the image; the lab needs /bin/sh and the engine's own entrypoint in it",
    ),
    (
        r"no space left on device",
        "disk_full",
        "the Docker engine's disk is full",
        "`docker system df` shows what uses it",
    ),
)
_ABSENT = re.compile(r"no such image", re.IGNORECASE)


def text_of(error: BaseException) -> str:
    """What the engine said, without the client's wrapping."""
    return str(getattr(error, "explanation", None) or error)


def explain(said: str, place: str) -> UserError:
    """The engine's words as cause, place and fix."""
    for pattern, code, cause, fix in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE | re.MULTILINE):
            return UserError(f"{cause}: {said.strip()[:300]}", place=place, fix=fix, code=code)
    if _ABSENT.search(said):
        return UserError(
            f"the image is not here: {said.strip()[:300]}", place=place, fix="pull or build it", code="no_image"
        )
    return UserError(f"the Docker engine refuses: {said.strip()[:500]}", place=place, fix="", code="docker")


def removal_in_progress(said: str) -> bool:
    """A conflict that goes away by itself."""
    return bool(re.search(r"removal of container .* is already in progress|marked for removal", said, re.IGNORECASE))
