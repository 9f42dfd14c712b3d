"""The connection to the Docker engine of this machine, or to podman's socket by DOCKER_HOST."""

from __future__ import annotations

import os
from typing import Any

from ..records.errors import UserError


def connect(timeout_s: float = 60.0) -> Any:
    """A client; UserError (code `no_docker`) where no engine answers, or where it is another machine's."""
    import docker
    from docker.errors import DockerException

    host = os.environ.get("DOCKER_HOST", "")
    if host.startswith(("tcp://", "ssh://", "http://", "https://")):
        raise UserError(
            f"DOCKER_HOST names another machine ({host}); the server's loopback port would be there, not here",
            fix="run the lab on that machine, or attach to a server that runs there",
            code="remote_docker",
        )
    try:
        client = docker.from_env(timeout=timeout_s)
        client.ping()
    except DockerException as error:
        refused = "Permission" in str(error) or "EACCES" in str(error)
        raise UserError(
            "the Docker engine may not be used by this user" if refused else "no Docker engine answers",
            place=host or "unix:///var/run/docker.sock",
            fix="add this user to the group `docker` and log in again"
            if refused
            else "start Docker (`systemctl start docker`), or set DOCKER_HOST to the engine's socket",
            code="no_docker",
        ) from error
    return client
