"""Docker and its NVIDIA runtime, images, programs, ports, leftovers of killed runs (C1, C3, C5, C7)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any

from ..records.errors import UserError
from .line import Line, Needs


def docker(needs: Needs) -> Iterator[Line]:
    """The engine, its NVIDIA runtime, and the images that the config names."""
    from docker.errors import DockerException

    from ..launchers.docker_engine import connect

    try:
        client = connect(timeout_s=10)
        version, info = client.version(), client.info()
    except (UserError, DockerException, OSError) as error:
        cause, fix = (error.cause, error.fix) if isinstance(error, UserError) else (str(error), "start Docker")
        if needs.docker or not needs.known:
            yield Line(check="Docker", status=needs.lacking(needs.docker), found=cause, fix=fix)
        else:
            yield Line(check="Docker", status="ok", found="no engine answers, and this config needs none")
        return
    yield Line(check="Docker", status="ok", found=f"version {version.get('Version')}, API {version.get('ApiVersion')}")
    yield from _runtime(needs, info)
    for reference in sorted({s.image for s in needs.servers if s.launcher == "docker" and s.image}):
        yield _image(client, reference)
    yield from _left_containers(client)


def _runtime(needs: Needs, info: dict[str, Any]) -> Iterator[Line]:
    devices = [str(d.get("ID", "")) for d in info.get("DiscoveredDevices") or []]
    if "nvidia" in (info.get("Runtimes") or {}) or any("nvidia.com/gpu" in d for d in devices):
        yield Line(check="NVIDIA runtime", status="ok", found="Docker can give containers a GPU")
    elif needs.gpus and needs.docker:
        yield Line(
            check="NVIDIA runtime",
            status="fail",
            found="Docker has no NVIDIA runtime, so no container gets a GPU",
            fix="install the NVIDIA container toolkit: `nvidia-ctk runtime configure --runtime=docker`, restart Docker",
        )
    elif not needs.known:
        yield Line(
            check="NVIDIA runtime",
            status="warn",
            found="Docker has none; containers with a GPU need it",
            fix="install the NVIDIA container toolkit",
        )


def _image(client: Any, reference: str) -> Line:
    from docker.errors import DockerException, ImageNotFound

    from ..launchers.images import digest_of

    try:
        found = client.images.get(reference)
    except ImageNotFound:
        return Line(check="image", status="warn", found=f"{reference} is not here", fix=f"docker pull {reference}")
    except DockerException as error:
        return Line(check="image", status="warn", found=f"{reference}: {error}", fix="see the Docker engine's log")
    return Line(check="image", status="ok", found=f"{reference} is here, {digest_of(found, reference)[:19]}")


def _left_containers(client: Any) -> Iterator[Line]:
    from pydantic import ValidationError

    from ..launchers.docker import LABEL, OWNER_LABEL, Owner

    for container in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
        try:
            gone = Owner.model_validate_json(container.labels.get(OWNER_LABEL, "")).gone()
        except ValidationError:
            continue
        if gone:
            yield Line(
                check="leftovers",
                status="warn",
                found=f"container {container.name} is left by a run that was killed",
                fix="the next run removes it",
            )


def programs(needs: Needs) -> Iterator[Line]:
    """Whether what the process launcher would start is there."""
    from .. import engines
    from ..preflight import program_fault

    told: set[str] = set()
    for server in needs.servers:
        words = " ".join(server.command or engines.get(server.engine).default_command or [server.engine])
        if server.launcher != "process" or words in told:
            continue
        told.add(words)
        fault = program_fault(server)
        if fault is None:
            yield Line(check="program", status="ok", found=words)
        else:
            where = needs.where("engine", "command" if server.command else "software")
            yield Line(check="program", status="fail", found=f"{where}{fault[0]}", fix=fault[1])


def network(_needs: Needs) -> Iterator[Line]:
    """A loopback port can be had; what proxies would do to it (case C8)."""
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    except OSError as error:
        yield Line(
            check="ports", status="fail", found=f"no loopback port can be had: {error}", fix="check `ip link` lo"
        )
        return
    proxies = sorted(k for k, v in os.environ.items() if k.lower() in ("http_proxy", "https_proxy", "all_proxy") and v)
    note = f"; {', '.join(proxies)} is set: used for downloads, never for the servers" if proxies else ""
    yield Line(check="ports", status="ok", found=f"loopback ports are free (tried {port}){note}")


def leftovers(_needs: Needs) -> Iterator[Line]:
    """Servers of killed runs that the next start will end."""
    from ..launchers import traces

    names = [trace.name for trace in traces.leftovers()]
    if names:
        yield Line(
            check="leftovers",
            status="warn",
            found=f"servers of a run that was killed: {', '.join(names)}",
            fix="the next run ends them",
        )
