"""A real Docker engine: the one that answers, or one started for these tests; and a base image with Python 3."""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

BASE = "specdec-ci/python-base:local"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def _client():
    import docker

    return docker.from_env(timeout=60)


def _answers() -> bool:
    from docker.errors import DockerException

    try:
        return bool(_client().ping())
    except DockerException:
        return False


@pytest.fixture(scope="session")
def engine():
    """A client of a real engine; skipped where there is none and none can be started."""
    pytest.importorskip("docker")
    if _answers():
        yield _client()
        return
    if shutil.which("dockerd") is None or os.getuid() != 0:
        pytest.skip("no Docker engine answers, and none can be started here (needs root and the package docker.io)")
    work = Path(tempfile.mkdtemp(prefix="dockerd-"))
    argv = ["dockerd", "-H", f"unix://{work}/docker.sock", "--data-root", f"{work}/data", "--exec-root", f"{work}/exec"]
    argv += ["--pidfile", f"{work}/dockerd.pid"]
    before = os.environ.get("DOCKER_HOST")
    with (work / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT)
    os.environ["DOCKER_HOST"] = f"unix://{work}/docker.sock"
    try:
        limit = time.monotonic() + 60
        while not _answers():
            if daemon.poll() is not None or time.monotonic() > limit:
                pytest.skip(f"dockerd does not start here: {(work / 'dockerd.log').read_text()[-300:]}")
            time.sleep(0.2)
        yield _client()
    finally:
        daemon.terminate()
        daemon.wait(60)
        subprocess.run(["umount", work / "exec/netns/default", work / "data"], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(work, ignore_errors=True)
        if before is None:
            del os.environ["DOCKER_HOST"]
        else:
            os.environ["DOCKER_HOST"] = before


@pytest.fixture(scope="session")
def base_image(engine):
    """An image with Python 3 and its venv module: SPECDEC_TEST_BASE_IMAGE, python:3.12-slim, or Debian."""
    from docker.errors import DockerException, ImageNotFound

    for name in filter(None, (os.environ.get("SPECDEC_TEST_BASE_IMAGE"), BASE, "python:3.12-slim")):
        try:
            engine.images.get(name)
        except ImageNotFound:
            continue
        return name
    try:
        engine.images.pull("python", tag="3.12-slim")
    except DockerException:
        return _from_debian(engine)
    return "python:3.12-slim"


def _from_debian(engine) -> str:
    if shutil.which("debootstrap") is None or os.getuid() != 0:
        pytest.skip("no base image: no registry answers, and there is no debootstrap (or no root) to make one")
    with tempfile.TemporaryDirectory(prefix="base-image-") as work:
        root = Path(work) / "root"
        listed = subprocess.run(
            [
                "apt-get",
                "indextargets",
                "--format",
                "$(REPO_URI) $(CODENAME)",
                "Created-By: Packages",
                "Component: main",
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")
        mirror, suite = next(line.split() for line in listed if "security" not in line and "updates" not in line)
        packages = "--include=ca-certificates,python3,python3-venv,libgomp1"
        try:
            subprocess.run(["debootstrap", "--variant=minbase", packages, suite, root, mirror], check=True, stdout=-3)
        finally:
            # An interrupted debootstrap leaves the system's own /proc mounted there; nothing may be deleted through it.
            for inner in ("proc", "sys"):
                subprocess.run(["umount", "-l", root / inner], stderr=subprocess.DEVNULL, check=False)
        if CERTIFICATES.exists():
            shutil.copy(CERTIFICATES, root / "etc/ssl/certs/")
        tar = Path(work) / "base.tar"
        left_out = [f"--exclude=./{p}" for p in ("var/cache/apt/*", "usr/share/doc/*", "usr/share/man/*", "dev/*")]
        subprocess.run(["tar", "-C", root, *left_out, "-cf", tar, "."], check=True)
        with tar.open("rb") as file:
            engine.api.import_image_from_data(
                file, repository=BASE.split(":")[0], tag="local", changes=[f"ENV PIP_CERT={CERTIFICATES}"]
            )
    return BASE


@pytest.fixture(scope="session")
def llama_image(engine, base_image):
    """containers/llama-cpp built on that base."""
    repository = Path(__file__).parents[2]
    image, _ = engine.images.build(
        path=str(repository / "workflow/specdec_lab/engines"),
        dockerfile=str(repository / "containers/llama-cpp/Dockerfile"),
        tag="specdec-lab/llama-cpp:test",
        buildargs={"BASE_IMAGE": base_image},
        rm=True,
    )
    return image.tags[0]


@pytest.fixture(autouse=True)
def _nothing_is_left(request):
    """Every test leaves no container of ours behind."""
    if "engine" not in request.fixturenames:
        yield
        return
    from specdec_lab.launchers.docker import LABEL

    client = request.getfixturevalue("engine")
    yield
    left = client.containers.list(all=True, filters={"label": LABEL})
    for container in left:
        container.remove(force=True)
    assert not left
