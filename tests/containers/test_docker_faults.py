"""What a Docker engine does at bad moments, scripted: removals in progress, a GPU lost, an engine gone (C1, C3)."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from specdec_lab.launchers import docker as launcher
from specdec_lab.launchers.base import LaunchPlan
from specdec_lab.launchers.docker_errors import explain
from specdec_lab.records.errors import UserError

errors = pytest.importorskip("docker.errors")


def api_error(status, text):
    reply = SimpleNamespace(status_code=status, reason="", url="")
    return errors.APIError("refused", response=reply, explanation=text)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(launcher, "_RETRY_S", 0.0)


def plan(tmp_path, **more):
    return LaunchPlan(name="t", argv=["x"], log=tmp_path / "l", image="i:1", port=1, **more)


def test_c3_a_removal_in_progress_is_waited_for(quick):
    client = MagicMock()
    busy = api_error(409, "removal of container abc is already in progress")
    client.api.remove_container.side_effect = [busy, errors.NotFound("gone")]
    launcher.remove(client, "abc")
    assert client.api.remove_container.call_count == 2


def test_c3_a_container_that_stays_is_told_with_its_id(quick):
    client = MagicMock()
    client.api.remove_container.side_effect = api_error(500, "driver failed")
    with pytest.raises(UserError, match="driver failed"):
        launcher.remove(client, "abc")
    assert client.api.remove_container.call_count == launcher._RETRIES


def test_c3_a_name_that_is_being_freed_is_tried_again_and_a_taken_one_is_not(quick, tmp_path, monkeypatch):
    client = MagicMock()
    client.images.get.return_value.attrs = {"Config": {}, "RepoDigests": []}
    client.containers.create.return_value.logs.return_value = []
    monkeypatch.setattr(launcher, "connect", lambda: client)
    busy = api_error(409, "removal of container abc is already in progress")
    client.containers.create.side_effect = [busy, client.containers.create.return_value]
    launcher.LAUNCHER.start(plan(tmp_path))
    assert client.containers.create.call_count == 2
    taken = api_error(409, 'Conflict. The container name "/t" is already in use by container "f00"')
    client.containers.create.side_effect = taken
    with pytest.raises(UserError, match="not ours") as error:
        launcher.LAUNCHER.start(plan(tmp_path))
    assert error.value.code == "name_taken"
    assert client.containers.create.call_count == 3


def running(tmp_path, container, **more):
    container.logs.return_value = []
    (tmp_path / "l").touch()
    return launcher.RunningContainer(MagicMock(), container, plan(tmp_path, **more), MagicMock(), MagicMock())


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        ("Failed to initialize NVML: Unknown Error", True),
        ("No devices were found", True),
        ("GPU 0: NVIDIA H200 (UUID: GPU-1)", False),
        ('exec: "nvidia-smi": executable file not found in $PATH', False),
    ],
)
def test_c1_a_gpu_lost_in_a_running_container_is_a_fault(tmp_path, said, lost):
    container = MagicMock()
    container.exec_run.return_value.output = said.encode()
    assert (running(tmp_path, container, devices=["0"]).fault() is not None) == lost
    assert running(tmp_path, container).fault() is None


def test_a_container_that_somebody_removed_has_exited(tmp_path):
    container = MagicMock()
    container.reload.side_effect = errors.NotFound("no such container")
    assert "removed by somebody else" in running(tmp_path, container).exited().detail


def test_an_out_of_memory_kill_is_told(tmp_path):
    container = MagicMock()
    container.attrs = {"State": {"Status": "exited", "ExitCode": 137, "OOMKilled": True}}
    end = running(tmp_path, container).exited()
    assert (end.code, end.oom_killed) == (137, True)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "no_gpu_runtime"),
        ('could not select device driver "nvidia" with capabilities: [[gpu]]', "no_gpu_runtime"),
        ("CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all", "no_gpu_runtime"),
        ("nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0", "driver_too_old"),
        ("Bind for 127.0.0.1:8000 failed: port is already allocated", "port_taken"),
        ("Error starting userland proxy: listen tcp4 127.0.0.1:8000: bind: address already in use", "port_taken"),
        ("cannot listen on the TCP port: listen tcp4 127.0.0.1:8000: bind: address already in use", "port_taken"),
        ('invalid mount config for type "bind": bind source path does not exist: /x', "mount"),
        ("write /var/lib/docker: no space left on device", "disk_full"),
        ("something new", "docker"),
        ("invalid reference format", "image_reference"),
        ("invalid reference format: repository name (VLLM/x) must be lowercase", "image_reference"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", "image_platform"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries: not found", "image_platform"),
        ("exec /usr/bin/python3: exec format error", "image_platform"),
        ('Get "https://r.io/v2/": tls: failed to verify certificate: x509: unknown authority', "image_certificate"),
        ('Get "https://r.io/v2/": http: server gave HTTP response to HTTPS client', "image_plain_http"),
        ("received unexpected HTTP status: 503 Service Unavailable", "image_registry_fails"),
        ("error parsing HTTP 502 response body: invalid character '<'", "image_registry_fails"),
        ("error parsing HTTP 429 response body: invalid character 'T'", "image_rate_limit"),
        ("net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "image_network"),
        ("dial tcp 1.2.3.4:443: connect: no route to host", "image_network"),
        ("unexpected EOF", "image_broken_off"),
        ("filesystem layer verification failed for digest sha256:x", "image_broken_off"),
        ('Error response from daemon: Head "https://ghcr.io/v2/x/manifests/y": denied', "image_denied"),
        ("denied: requested access to the resource is denied", "image_denied"),
        ('failed to resolve reference "docker.io/x/y:z": docker.io/x/y:z: not found', "image_unknown"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?", "no_docker"),
        ("dial unix /var/run/docker.sock: connect: connection refused", "no_docker"),
        ("permission denied while trying to connect to the Docker daemon socket at unix:///x", "no_docker"),
        ("nvidia-container-cli: initialization error: nvml error: driver not loaded", "no_gpu_driver"),
        ("nvidia-container-cli: initialization error: driver/library version mismatch", "driver_mismatch"),
        ('error mounting "/x": permission denied: unknown', "docker"),
    ],
)
def test_refusals_of_docker_and_podman_have_a_code_and_the_engines_words(said, code):
    error = explain(said, "container t")
    assert error.code == code
    assert said[:40] in error.cause
    assert error.fix


def test_a_socket_that_is_not_for_this_user_is_told_apart_from_an_engine_that_is_down():
    assert "group `docker`" in explain("permission denied while trying to connect to the docker API", "x").fix
    assert "start Docker" in explain("Cannot connect to the Docker daemon", "x").fix
