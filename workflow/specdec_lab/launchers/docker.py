"""Launcher for servers in containers (M9, M19, C1-C3, C5, C7).

The container's standard input is its lifeline: the lab holds the other end, and when the lab is gone, by kill -9 too,
the end-of-file makes a small shell inside end the server. Labels name the owner, so that a later run can sweep what is
left; a container without our label is never touched.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import threading
import time
import uuid
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from ..records.base import Record
from ..records.errors import UserError
from . import images, program
from .base import Exit, LaunchPlan, Mount
from .docker_engine import connect
from .docker_errors import explain, removal_in_progress, text_of
from .traces import Identity, boot_id

LABEL = "org.specdec-lab.server"
OWNER_LABEL = "org.specdec-lab.owner"
LIFELINE = (
    "exec 3<&0; "
    '"$@" </dev/null 3<&- & p=$!; '
    "trap 'kill -TERM $p 2>/dev/null' TERM INT; "
    '( cat <&3 >/dev/null; echo "lifeline closed: ending the server" >&2; kill -TERM $p 2>/dev/null; sleep 10;'
    " kill -KILL $p 2>/dev/null ) & w=$!; exec 3<&-; "
    "wait $p; s=$?; while kill -0 $p 2>/dev/null; do wait $p; s=$?; done; kill $w 2>/dev/null; exit $s"
)
"""Runs the server as its child, passes TERM on, and ends it when standard input closes."""
_SHARED_MEMORY = "8g"
"""vLLM's processes talk through /dev/shm, where 64 MB by default are too few; this is a limit, not a use."""
_RETRIES, _RETRY_S = 10, 0.5


class Owner(Record):
    """The lab process that started a container."""

    host: str
    boot: str
    process: Identity

    @classmethod
    def this(cls) -> Owner:
        """This process."""
        return cls(host=platform.node(), boot=boot_id(), process=Identity.of(os.getpid()))

    def gone(self) -> bool:
        """Whether it has surely ended; another machine's owner is never taken for gone."""
        if self.host != platform.node():
            return False
        return self.boot != boot_id() or not self.process.alive()


class RunningContainer:
    """A started container of ours."""

    def __init__(self, client: Any, container: Any, plan: LaunchPlan, image: images.Image, lifeline: Any) -> None:
        self.base_url = f"http://127.0.0.1:{plan.port}"
        self._client = client
        self._container = container
        self._plan = plan
        self._image = image
        self._lifeline = lifeline
        self._removed = False
        self._logger = threading.Thread(target=self._copy_log, name="container-log", daemon=True)
        self._logger.start()

    def _copy_log(self) -> None:
        from docker.errors import DockerException

        with self._plan.log.open("wb") as file, contextlib.suppress(DockerException, OSError):
            for part in self._container.logs(stream=True, follow=True, stdout=True, stderr=True):
                file.write(part)
                file.flush()

    def exited(self) -> Exit | None:
        """See launchers.base."""
        from docker.errors import DockerException, NotFound

        try:
            self._container.reload()
        except NotFound:
            return Exit(code=None, detail="the container was removed by somebody else")
        except DockerException as error:
            return Exit(code=None, detail=f"the Docker engine does not answer: {text_of(error)[:200]}")
        state = self._container.attrs["State"]
        if state["Status"] not in ("exited", "dead", "removing"):
            return None
        self._logger.join(5)
        return Exit(
            code=int(state["ExitCode"]), oom_killed=bool(state.get("OOMKilled")), detail=str(state.get("Error") or "")
        )

    def fault(self) -> str | None:
        """See launchers.base: a container can lose its GPU while it runs (case C1)."""
        if not self._plan.devices:
            return None
        said = self._ask(["nvidia-smi", "-L"])
        if said is not None and re.search(r"Failed to initialize NVML|No devices were found", said):
            return f"the container lost its GPU: {said.strip()[:200]}"
        return None

    def facts(self) -> dict[str, str]:
        """Container and image as the engine ran them, the GPUs' UUIDs as seen inside."""
        facts = {
            "container": str(self._container.id)[:12],
            "image_digest": self._image.digest,
            "image_id": str(self._container.attrs.get("Image", "")),
            "devices": ",".join(self._plan.devices),
        }
        if self._plan.devices:
            said = self._ask(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"])
            if said is not None and "GPU-" in said:
                facts["gpu_uuids"] = ",".join(said.split())
        return facts

    def _ask(self, argv: list[str]) -> str | None:
        from docker.errors import DockerException

        try:
            return str(self._container.exec_run(argv).output.decode("utf-8", "replace"))
        except DockerException:
            return None

    def packages(self) -> dict[str, str]:
        """See launchers.base; asked of the Python that the image's entrypoint runs, or of its python3."""
        entry = [w for w in self._container.attrs["Config"].get("Cmd") or [] if re.search(r"/python[\d.]*$", str(w))]
        for python in dict.fromkeys([*entry[:1], "python3", "python"]):
            said = self._ask([python, *program.FREEZE_COMMAND])
            if found := program.parse_freeze(said or ""):
                return found
        return {}

    def owns_port(self) -> bool | None:
        """See launchers.base: the engine holds the port for this container and no other."""
        if self.exited() is not None:
            return False
        published = self._container.ports.get(f"{self._plan.container_port}/tcp") or []
        return any(int(p["HostPort"]) == self._plan.port for p in published)

    def stop(self, timeout_s: float) -> None:
        """See launchers.base."""
        from docker.errors import DockerException, NotFound

        if self._removed:
            return
        with contextlib.suppress(NotFound):
            try:
                self._container.stop(timeout=int(timeout_s))
            except NotFound:
                raise
            except (DockerException, OSError):
                # The removal below is by force; an engine that does not answer at all shows there.
                pass
        self._logger.join(10)
        with contextlib.suppress(OSError):
            self._lifeline.close()
        remove(self._client, str(self._container.id))
        self._removed = True
        self._client.close()


def remove(client: Any, identity: str) -> None:
    """Remove one of our containers for good and prove it; UserError if it stays. Waits out a removal in progress."""
    from docker.errors import APIError, DockerException, NotFound

    said = ""
    for _ in range(_RETRIES):
        try:
            client.api.remove_container(identity, force=True, v=True)
        except NotFound:
            return
        except APIError as error:
            said = text_of(error)
            if not removal_in_progress(said):
                time.sleep(_RETRY_S)
        except (DockerException, OSError) as error:
            said = text_of(error)
        try:
            client.api.inspect_container(identity)
        except NotFound:
            return
        except (DockerException, OSError) as error:
            said = text_of(error)
        time.sleep(_RETRY_S)
    raise UserError(
        f"the container {identity[:12]} could not be removed: {said[:300]}",
        fix=f"remove it by hand: docker rm -f {identity[:12]}",
        code="not_stopped",
    )


def mounts_for(mounts: list[Mount]) -> list[Mount]:
    """The mounts as a container needs them: a hub snapshot is a folder of links into another folder, so its files are
    mounted one by one where a link leads out of it."""
    made: list[Mount] = []
    for mount in mounts:
        source = mount.source
        outward = source.is_dir() and any(
            p.is_symlink() and not p.resolve().is_relative_to(source.resolve()) for p in source.rglob("*")
        )
        if not outward:
            made.append(mount)
            continue
        files = sorted(p for p in source.rglob("*") if p.is_file())
        made += [Mount(p.resolve(), str(PurePosixPath(mount.target) / p.relative_to(source).as_posix())) for p in files]
    return made


class DockerLauncher:
    """Starts servers as containers."""

    name = "docker"

    def sweep(self) -> list[str]:
        """See launchers.base. Removes containers with our label whose owner has surely ended."""
        removed = []
        with contextlib.closing(connect()) as client:
            for container in client.containers.list(all=True, filters={"label": LABEL}, ignore_removed=True):
                try:
                    owner = Owner.model_validate_json(container.labels.get(OWNER_LABEL, ""))
                except ValidationError:
                    continue
                if owner.gone():
                    remove(client, str(container.id))
                    removed.append(f"container {container.name}, left by a run that was killed")
        return removed

    def start(self, plan: LaunchPlan) -> RunningContainer:
        """See launchers.base. The image must be there or is pulled first."""
        if not plan.image:
            raise UserError("no image is named", place="engine.image", fix="name one, with a tag", code="no_image")
        client = connect()
        image = images.resolve(client, plan.image)
        plan.log.parent.mkdir(parents=True, exist_ok=True)
        plan.log.touch()
        container = self._create(client, plan, image)
        try:
            lifeline = self._start(container, plan)
        except BaseException:
            remove(client, str(container.id))
            raise
        return RunningContainer(client, container, plan, image, lifeline)

    def _create(self, client: Any, plan: LaunchPlan, image: images.Image) -> Any:
        from docker.errors import APIError, DockerException
        from docker.types import DeviceRequest
        from docker.types import Mount as Bind

        config = client.images.get(image.id).attrs.get("Config") or {}
        environment = {**plan.env, **({} if plan.devices else {"NVIDIA_VISIBLE_DEVICES": "void"})}
        for attempt in range(_RETRIES):
            try:
                return client.containers.create(
                    image.id,
                    [*(config.get("Entrypoint") or plan.program), *plan.argv],
                    entrypoint=["/bin/sh", "-c", LIFELINE, "lifeline"],
                    name=re.sub(r"[^A-Za-z0-9_.-]", "-", plan.name),
                    labels={LABEL: uuid.uuid4().hex, OWNER_LABEL: Owner.this().model_dump_json(), **plan.labels},
                    environment=environment,
                    ports={f"{plan.container_port}/tcp": ("127.0.0.1", plan.port)},
                    mounts=[
                        Bind(m.target, str(Path(m.source).resolve()), type="bind", read_only=True)
                        for m in mounts_for(plan.mounts)
                    ],
                    device_requests=[DeviceRequest(device_ids=list(plan.devices), capabilities=[["gpu"]])]
                    if plan.devices
                    else None,
                    stdin_open=True,
                    healthcheck={"test": ["NONE"]},  # an image's own health checks would run beside the measurement
                    shm_size=_SHARED_MEMORY,
                    security_opt=["no-new-privileges:true"],
                )
            except APIError as error:
                said = text_of(error)
                if not removal_in_progress(said) or attempt == _RETRIES - 1:
                    raise explain(said, f"container {plan.name}, image {image.reference}") from error
                time.sleep(_RETRY_S)
            except DockerException as error:
                raise explain(text_of(error), f"image {image.reference}") from error
        raise AssertionError("the loop returns or raises")

    def _start(self, container: Any, plan: LaunchPlan) -> Any:
        """Attach the lifeline, then start; the lifeline. Podman takes the port when it is attached to, Docker at the
        start; podman also starts a container without the GPU that it was asked for, and says nothing."""
        from docker.errors import DockerException

        try:
            lifeline = container.attach_socket(params={"stdin": 1, "stream": 1})
            container.start()
            container.reload()
        except DockerException as error:
            raise explain(text_of(error), f"container {plan.name}, image {plan.image}") from error
        if plan.devices and not (container.attrs.get("HostConfig") or {}).get("DeviceRequests"):
            raise UserError(
                "the container engine ignored the request for a GPU: it lacks the NVIDIA container toolkit",
                place=f"container {plan.name}",
                fix="with podman, set up CDI (`nvidia-ctk cdi generate`) or use Docker; then run `specdec doctor`",
                code="no_gpu_runtime",
            )
        if container.status == "running" and not container.ports.get(f"{plan.container_port}/tcp"):
            raise UserError(
                "the Docker engine published no port for the container, and said nothing",
                place=f"container {plan.name}",
                fix="the engine runs without a bridge network (--bridge=none); start it with one",
                code="no_port",
            )
        return lifeline


LAUNCHER = DockerLauncher()
