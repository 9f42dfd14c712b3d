"""Images: three refusals told apart, no pull when present, a moved tag refused (C5, E5, M9)."""

import http.server
import json
import threading

import pytest

from specdec_lab.launchers.images import Image, ImageLock, digest_of, resolve
from specdec_lab.records.errors import UserError


class FakeEngine:
    """An engine whose pull streams what a test scripts."""

    def __init__(self, *records):
        self.records = records
        self.pulls = 0
        self.images = self
        self.api = self

    def get(self, _reference):
        from docker.errors import ImageNotFound

        raise ImageNotFound("no such image")

    def pull(self, *_args, **_options):
        self.pulls += 1
        yield {"status": "Pulling from x"}
        yield from self.records


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("pull access denied for x, repository does not exist or may require 'docker login'", "image_denied"),
        ("unauthorized: authentication required", "image_denied"),
        ("manifest for x:9 not found: manifest unknown: manifest unknown", "image_unknown"),
        ("toomanyrequests: You have reached your pull rate limit", "image_rate_limit"),
        ('Get "https://r/v2/": dial tcp: lookup r on 1.1.1.1:53: no such host', "image_network"),
    ],
)
def test_c5_an_error_inside_a_stream_that_ends_well_is_an_error_and_pulled_once(said, code):
    engine = FakeEngine({"errorDetail": {"message": said}, "error": said})
    with pytest.raises(UserError) as error:
        resolve(engine, "vllm/vllm-openai:v0.33.0")
    assert error.value.code == code
    assert "vllm/vllm-openai:v0.33.0" in error.value.place
    assert engine.pulls == 1


@pytest.mark.docker
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("status", "problem", "code"),
    [
        (401, {"code": "UNAUTHORIZED", "message": "authentication required"}, "image_denied"),
        (403, {"code": "DENIED", "message": "requested access to the resource is denied"}, "image_denied"),
        (404, {"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}, "image_unknown"),
        (429, {"code": "TOOMANYREQUESTS", "message": "too many"}, "image_rate_limit"),
    ],
)
def test_c5_a_real_engine_and_a_refusing_registry_give_distinct_messages(engine, status, problem, code):
    class Registry(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = b"{}" if self.path == "/v2/" else json.dumps({"errors": [problem]}).encode()
            self.send_response(200 if self.path == "/v2/" else status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_args):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with pytest.raises(UserError) as error:
            resolve(engine, f"127.0.0.1:{server.server_port}/some/image:1")
    finally:
        server.shutdown()
    assert error.value.code == code, str(error.value)


@pytest.mark.docker
@pytest.mark.timeout(900)
def test_c5_an_image_that_is_here_is_not_pulled(engine, base_image):
    found = resolve(engine, base_image)
    assert not found.pulled
    assert found.digest.startswith("sha256:")


@pytest.mark.docker
@pytest.mark.timeout(900)
def test_no_registry_is_told_as_such(engine):
    with pytest.raises(UserError) as error:
        resolve(engine, "127.0.0.1:1/nothing/here:1")
    assert error.value.code == "image_network"


class FakeImage:
    def __init__(self, *digests):
        self.attrs = {"RepoDigests": list(digests)}
        self.id = "sha256:own"


def test_m9_the_digest_is_the_repositorys_own_or_the_image_id():
    assert digest_of(FakeImage("a/x@sha256:1", "vllm/vllm-openai@sha256:2"), "vllm/vllm-openai:v0.33.0") == "sha256:2"
    assert digest_of(FakeImage("localhost:5000/x@sha256:3"), "localhost:5000/x") == "sha256:3"
    assert digest_of(FakeImage(), "x:1") == "sha256:own"


A, B = "sha256:" + "a" * 64, "sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("reference", "listed", "right"),
    [
        (f"vllm/vllm-openai@{B}", [f"vllm/vllm-openai@{A}", f"vllm/vllm-openai@{B}"], B),
        (f"vllm/vllm-openai:v0.33.0@{B}", [f"vllm/vllm-openai@{A}", f"docker.io/vllm/vllm-openai@{B}"], B),
        (f"vllm/vllm-openai@{B}", [f"mirror.local/vllm/vllm-openai@{A}", f"mirror.local/vllm/vllm-openai@{B}"], B),
        ("docker.io/vllm/vllm-openai:v0.33.0", [f"mirror.local/vllm/vllm-openai@{A}", f"vllm/vllm-openai@{B}"], B),
        ("vllm/vllm-openai", [f"mirror.local/vllm/vllm-openai@{A}", f"docker.io/vllm/vllm-openai@{B}"], B),
        ("vllm-openai:x", [f"me/my-vllm-openai@{A}", f"vllm-openai@{B}"], B),
        ("library/ubuntu:22", [f"foo/ubuntu@{A}", f"ubuntu@{B}"], B),
        ("index.docker.io/library/ubuntu", [f"foo/ubuntu@{A}", f"ubuntu@{B}"], B),
        ("localhost:5000/vllm", [f"x/vllm@{A}", f"localhost:5000/vllm@{B}"], B),
        ("localhost/vllm:1", [f"vllm@{A}", f"localhost/vllm@{B}"], B),
        ("retagged:1", [f"vllm/vllm-openai@{A}"], A),
        ("retagged:1", [f"vllm/vllm-openai@{A}", f"mirror.local/vllm-openai@{A}"], A),
        ("retagged:1", [f"vllm/vllm-openai@{A}", f"mirror.local/vllm-openai@{B}"], "sha256:own"),
        ("local:dev", ["<none>@<none>"], "sha256:own"),
        ("local@sha256:own", [f"other@{A}"], "sha256:own"),
    ],
)
def test_m9_the_digest_is_that_of_what_was_asked_for(reference, listed, right):
    """Names are matched whole and as Docker reads them; a mirror's digest is not the repository's."""
    assert digest_of(FakeImage(*listed), reference) == right


def test_e5_a_moved_tag_is_refused_and_a_new_one_is_locked(tmp_path):
    first = Image(reference="x:latest", digest="sha256:1", id="i", pulled=True)
    lock = ImageLock.load(tmp_path / "lock.json").checked(first)
    lock.write(tmp_path / "lock.json")
    again = ImageLock.load(tmp_path / "lock.json")
    assert again.checked(first) == lock
    with pytest.raises(UserError, match="another image now") as error:
        again.checked(first.model_copy(update={"digest": "sha256:2"}))
    assert error.value.code == "image_moved"


def test_a_damaged_lock_is_said(tmp_path):
    (tmp_path / "lock.json").write_text("{")
    with pytest.raises(UserError, match="cannot be read"):
        ImageLock.load(tmp_path / "lock.json")
