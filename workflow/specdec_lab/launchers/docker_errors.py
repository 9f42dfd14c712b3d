"""What a Docker engine (or podman behind the same API) refuses, as cause and fix (cases C1, C3, C5)."""

from __future__ import annotations

import re

from ..records.errors import UserError

_KNOWN: tuple[tuple[str, str, str, str], ...] = (
    (
        r"permission denied while trying to connect to the docker|docker\.sock: connect: permission denied"
        r"|Connection aborted.*Permission",
        "no_docker",
        "the Docker engine may not be used by this user",
        "add this user to the group `docker` and log in again",
    ),
    (
        r"cannot connect to the docker daemon|failed to connect to the docker API|is the docker daemon running"
        r"|docker\.sock: connect:|Connection aborted",
        "no_docker",
        "no Docker engine answers",
        "start Docker (`systemctl start docker`), or set DOCKER_HOST to the engine's socket",
    ),
    (
        r"invalid reference format|repository name .* must be (?:lowercase|canonical)",
        "image_reference",
        "this is no name that an image can have",
        "write it as name:tag or registry/name:tag, the name in lower case and without spaces",
    ),
    (
        r"no matching manifest for|no match for platform|does not match the (?:detected host|specified) platform"
        r"|exec format error",
        "image_platform",
        "the image is not made for this machine's kind of processor",
        "use an image or tag for this architecture (`uname -m` names it), or another machine",
    ),
    (
        r"driver/library version mismatch",
        "driver_mismatch",
        "the NVIDIA driver's library is of another version than the running kernel module",
        "restart this machine: the driver was updated while it ran",
    ),
    (
        r"nvidia-container-cli: initialization error|driver not loaded|libnvidia-ml\.so\S*: cannot open",
        "no_gpu_driver",
        "the NVIDIA driver of this machine does not answer",
        "install or load the driver, until `nvidia-smi` lists the GPUs here; then run `specdec doctor`",
    ),
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
        r"toomanyrequests|too many requests|rate limit|(?:HTTP|status|status code):? 429\b",
        "image_rate_limit",
        "the registry limits how much this address may pull",
        "wait, or `docker login` to a registry account, then try again",
    ),
    (
        r"manifest (?:for .* )?(?:not found|unknown)|manifest unknown|name unknown|reference does not exist"
        r"|failed to resolve reference .*: not found",
        "image_unknown",
        "the registry has no such image or tag",
        "check the image's name and tag",
    ),
    (
        r"pull access denied|unauthorized|access (?:to the resource is )?(?:denied|forbidden)|^denied"
        r"|(?<!permission )\bdenied:|: denied\b|\b403 Forbidden|authentication required|no basic auth credentials",
        "image_denied",
        "the registry refuses this image: it is private, or does not exist",
        "check the name, and `docker login` to that registry",
    ),
    (
        r"x509:|certificate (?:signed by unknown authority|has expired|is not (?:valid|trusted))",
        "image_certificate",
        "the registry's certificate is not trusted here",
        "check this machine's clock; give the Docker engine the certificate of the registry, or of the proxy in "
        "between (/etc/docker/certs.d/REGISTRY/ca.crt), and restart it",
    ),
    (
        r"server gave HTTP response to HTTPS client",
        "image_plain_http",
        "the registry speaks plain HTTP, which the Docker engine refuses",
        "give the registry a certificate, or name it under `insecure-registries` in /etc/docker/daemon.json",
    ),
    (
        r"(?:HTTP|status|status code):? 5\d\d\b"
        r"|\b5\d\d (?:Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)",
        "image_registry_fails",
        "the registry, or a proxy before it, answers with an error of its own",
        "wait and try again, or load the image by hand (`docker load`); an image that is there needs no network",
    ),
    (
        r"unexpected EOF|connection reset by peer|layer verification failed|unexpected commit digest",
        "image_broken_off",
        "the download of the image broke off, or came damaged",
        "try again: what came whole is kept",
    ),
    (
        r"no such host|dial tcp|connection refused|i/o timeout|TLS handshake|Temporary failure in name resolution"
        r"|Client\.Timeout exceeded|context deadline exceeded|request canceled|network is unreachable"
        r"|no route to host",
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
_OTHERWISE = "its words say what it lacks; its own log (`journalctl -u docker`) and `docker info` say more"
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
    return UserError(f"the Docker engine refuses: {said.strip()[:500]}", place=place, fix=_OTHERWISE, code="docker")


def removal_in_progress(said: str) -> bool:
    """A conflict that goes away by itself."""
    return bool(re.search(r"removal of container .* is already in progress|marked for removal", said, re.IGNORECASE))
