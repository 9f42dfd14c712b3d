"""Containers on a real engine: started, watched, stopped, swept; only ours are ever touched (M19, C1-C3, C7)."""

import os
import socket
import subprocess
import sys
import textwrap
import time
import urllib.request
import uuid
from pathlib import Path

import pytest

from specdec_lab import launchers
from specdec_lab.failures import diagnose
from specdec_lab.launchers.base import LaunchPlan, Mount
from specdec_lab.launchers.docker import LABEL, OWNER_LABEL, Owner
from specdec_lab.launchers.traces import Identity
from specdec_lab.records.errors import UserError

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]
SERVE = (
    "import http.server as h; print('up', flush=True);"
    "h.HTTPServer(('0.0.0.0', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, seconds=30.0):
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("did not happen in time")


def plan(image, tmp_path, code=SERVE, **more) -> LaunchPlan:
    given = {"name": f"test-{uuid.uuid4().hex[:8]}", "port": free_port(), "image": image, **more}
    return LaunchPlan(argv=["python3", "-u", "-c", code], log=tmp_path / "server.log", **given)


def answers(url) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status == 200
    except OSError:
        return False


def ours(engine):
    return engine.containers.list(all=True, filters={"label": LABEL})


def test_a_container_serves_on_loopback_owns_its_port_and_is_gone_after_stop(engine, base_image, tmp_path):
    running = launchers.get("docker").start(plan(base_image, tmp_path))
    wait_for(lambda: answers(running.base_url))
    assert running.exited() is None
    assert running.owns_port() is True
    assert running.fault() is None
    assert running.facts()["image_digest"].startswith("sha256:")
    begun = time.monotonic()
    running.stop(20)
    running.stop(20)
    assert time.monotonic() - begun < 10
    assert ours(engine) == []
    assert "up" in (tmp_path / "server.log").read_text()
    assert not answers(running.base_url)


def test_c2_a_death_is_noticed_in_seconds_with_code_full_log_and_first_error(engine, base_image, tmp_path):
    code = textwrap.dedent(
        """
        import sys
        for n in range(1, 400):
            print("ValueError: bad draft vocab" if n == 120 else f"line {n}", flush=True)
        print("RuntimeError: Engine core initialization failed. See root cause above.", flush=True)
        sys.exit(1)
        """
    )
    running = launchers.get("docker").start(plan(base_image, tmp_path, code))
    end = wait_for(running.exited, 15)
    log = (tmp_path / "server.log").read_text()
    running.stop(5)
    assert (end.code, end.oom_killed) == (1, False)
    assert log.splitlines()[0] == "line 1"
    assert len(log.splitlines()) == 400
    assert "bad draft vocab" in diagnose(log, end, "vllm").cause


def test_c3_a_taken_port_is_a_clear_refusal_and_the_half_made_container_is_removed(engine, base_image, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as stranger, pytest.raises(UserError, match="in use") as error:
        launchers.get("docker").start(plan(base_image, tmp_path, port=stranger.getsockname()[1]))
    assert error.value.code == "port_taken"
    assert ours(engine) == []


def test_c3_a_foreign_container_of_the_same_name_is_left_untouched(engine, base_image, tmp_path):
    name = f"test-{uuid.uuid4().hex[:8]}"
    foreign = engine.containers.create(base_image, ["true"], name=name)
    try:
        with pytest.raises(UserError, match="not ours"):
            launchers.get("docker").start(plan(base_image, tmp_path, name=name))
        assert engine.containers.get(name).id == foreign.id
    finally:
        foreign.remove()


def test_c1_without_the_gpu_runtime_the_start_names_the_toolkit_and_leaves_nothing(engine, base_image, tmp_path):
    if "nvidia" in engine.info().get("Runtimes", {}):
        pytest.skip("this engine has the NVIDIA runtime")
    with pytest.raises(UserError, match="NVIDIA container toolkit") as error:
        launchers.get("docker").start(plan(base_image, tmp_path, devices=["0"]))
    assert error.value.code == "no_gpu_runtime"
    assert ours(engine) == []


@pytest.mark.parametrize(
    ("entrypoint", "first"), [(["vllm", "serve"], ["vllm", "serve", "python3"]), (None, ["python3", "-m", "engine"])]
)
def test_a_gpu_is_asked_for_by_id_never_by_count(monkeypatch, tmp_path, entrypoint, first):
    from unittest.mock import MagicMock

    client = MagicMock()
    client.images.get.return_value.attrs = {"Config": {"Entrypoint": entrypoint}, "RepoDigests": []}
    monkeypatch.setattr("specdec_lab.launchers.docker.connect", lambda: client)
    client.containers.create.return_value.logs.return_value = []
    client.containers.create.return_value.attrs = {"HostConfig": {"DeviceRequests": [{"DeviceIDs": ["0"]}]}}
    launchers.get("docker").start(plan("image:1", tmp_path, devices=["0"], program=["python3", "-m", "engine"]))
    request = client.containers.create.call_args.kwargs["device_requests"][0]
    assert request["DeviceIDs"] == ["0"]
    assert not request.get("Count")
    assert client.containers.create.call_args.args[1][: len(first)] == first


def test_c7_kill_9_of_the_lab_ends_the_server_and_the_next_run_removes_the_leftover(engine, base_image, tmp_path):
    code = textwrap.dedent(
        f"""
        import time
        from pathlib import Path
        from specdec_lab import launchers
        from specdec_lab.launchers.base import LaunchPlan
        argv, log = ["python3", "-u", "-c", {SERVE!r}], Path({str(tmp_path / "l")!r})
        plan = LaunchPlan(name="test-lifeline", argv=argv, log=log, port={free_port()}, image={base_image!r})
        print(launchers.get("docker").start(plan).base_url, flush=True)
        time.sleep(120)
        """
    )
    lab = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    url = lab.stdout.readline().strip()
    wait_for(lambda: answers(url))
    assert launchers.get("docker").sweep() == []  # its owner lives
    lab.kill()
    lab.wait()
    begun = time.monotonic()
    wait_for(lambda: not answers(url), 15)
    assert time.monotonic() - begun < 12
    assert len(launchers.get("docker").sweep()) == 1
    assert ours(engine) == []


def test_the_sweep_touches_neither_foreign_containers_nor_those_of_living_or_other_owners(engine, base_image):
    this = Owner.this()
    gone = this.model_copy(update={"process": Identity(pid=2**22 - 1, started=1.0)})
    away = gone.model_copy(update={"host": "another-machine"})
    made = {}
    for name, labels in {
        "foreign": {},
        "unreadable": {LABEL: "x"},
        "living": {LABEL: "x", OWNER_LABEL: this.model_dump_json()},
        "away": {LABEL: "x", OWNER_LABEL: away.model_dump_json()},
        "left": {LABEL: "x", OWNER_LABEL: gone.model_dump_json()},
    }.items():
        made[name] = engine.containers.create(base_image, ["true"], labels=labels)
    try:
        assert len(launchers.get("docker").sweep()) == 1
        still = {c.id for c in engine.containers.list(all=True)}
        assert {n for n, c in made.items() if c.id in still} == {"foreign", "unreadable", "living", "away"}
    finally:
        for name in ("foreign", "unreadable", "living", "away"):
            made[name].remove(force=True)


def test_mounts_are_read_only_and_a_hub_snapshot_of_links_arrives_whole(engine, base_image, tmp_path):
    blobs, snapshot = tmp_path / "hub's blobs ü" / "blobs", tmp_path / "hub's blobs ü" / "snapshots" / "abc"
    blobs.mkdir(parents=True)
    (snapshot / "sub").mkdir(parents=True)
    (blobs / "b1").write_text("weights")
    (snapshot / "model.safetensors").symlink_to(Path("../../blobs/b1"))
    (snapshot / "sub" / "c.json").symlink_to(Path("../../../blobs/b1"))
    code = textwrap.dedent(
        """
        from pathlib import Path
        root = Path("/models/target")
        files = [p for p in root.rglob("*") if p.is_file()]
        print(sorted((p.relative_to(root).as_posix(), p.read_text()) for p in files), flush=True)
        try:
            (root / "model.safetensors").write_text("x")
        except OSError as error:
            print(error.strerror, flush=True)
        """
    )
    running = launchers.get("docker").start(
        plan(base_image, tmp_path, code, mounts=[Mount(snapshot, "/models/target")])
    )
    wait_for(running.exited)
    running.stop(2)
    said = (tmp_path / "server.log").read_text()
    assert "[('model.safetensors', 'weights'), ('sub/c.json', 'weights')]" in said
    assert "Read-only file system" in said


def test_a_server_deaf_to_term_is_killed_after_the_limit(engine, base_image, tmp_path):
    code = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(99)"
    )
    running = launchers.get("docker").start(plan(base_image, tmp_path, code))
    wait_for(lambda: "deaf" in (tmp_path / "server.log").read_text())
    begun = time.monotonic()
    running.stop(1)
    assert time.monotonic() - begun < 8
    assert ours(engine) == []


def test_secrets_of_this_environment_do_not_enter_the_container(engine, base_image, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_TESTSECRET123")
    running = launchers.get("docker").start(plan(base_image, tmp_path, "import os; print(dict(os.environ))"))
    wait_for(running.exited)
    running.stop(1)
    assert "TESTSECRET" not in (tmp_path / "server.log").read_text()


def test_a_remote_engine_is_refused(monkeypatch):
    monkeypatch.setitem(os.environ, "DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(UserError, match="another machine"):
        launchers.get("docker").sweep()
