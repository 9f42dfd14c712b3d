"""The hub provider against a scripted hub: pinned, whole, offline, and every refusal answered (M11, C6, failure 1)."""

import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

EMPTY = b"\x02" + b"\0" * 7 + b"{}"
"""A file of safetensors without a tensor; what follows is not looked at."""
COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b"{}",
    "model-1.safetensors": EMPTY + b"w" * 1000,
    "model-2.safetensors": EMPTY + b"v" * 1000,
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    ).encode(),
    "original/consolidated.00.pth": b"x" * 5000,
    "README.md": b"read me",
}
CODE = """
import json, sys
from specdec_lab import checkpoints
from specdec_lab.records.errors import UserError
from specdec_lab.records.spec import CheckpointSpec
try:
    found = checkpoints.fetch(CheckpointSpec(hub="org/model", revision=sys.argv[1] or None), say=lambda t: None)
    print(json.dumps({"digest": found.digest, "files": sorted(p.name for p in found.path.iterdir())}))
except UserError as error:
    print(json.dumps({"code": error.code, "text": str(error)}))
"""


@pytest.fixture
def hub():
    """A hub that serves one repository, or refuses as scripted: (status, X-Error-Code)."""

    class Hub(http.server.BaseHTTPRequestHandler):
        refusal = None
        size = 0

        def do_GET(self):
            Hub.asked.append(f"{self.command} {self.path}")
            Hub.seen_tokens.add(self.headers.get("Authorization"))
            if Hub.refusal is not None:
                return self._reply(Hub.refusal[0], b'{"error": "no"}', {"X-Error-Code": Hub.refusal[1]})
            if "/tree/" in self.path:
                listed = [{"type": "file", "oid": n, "size": len(b), "path": n} for n, b in FILES.items()]
                return self._reply(200, json.dumps(listed).encode(), {})
            if self.path.startswith("/api/models/org/model"):
                listed = [{"rfilename": n, "size": len(b) + Hub.size} for n, b in FILES.items()]
                return self._reply(200, json.dumps({"id": "org/model", "sha": COMMIT, "siblings": listed}).encode(), {})
            name = self.path.partition(f"/resolve/{COMMIT}/")[2]
            if name in FILES:
                return self._reply(200, FILES[name], {"ETag": f'"{name}-1"', "X-Repo-Commit": COMMIT})
            return self._reply(404, b"{}", {"X-Error-Code": "EntryNotFound"})

        do_HEAD = do_GET

        def _reply(self, status, body, headers):
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(key, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_args):
            return

    Hub.asked, Hub.seen_tokens = [], set()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Hub.url = f"http://127.0.0.1:{server.server_port}"
    yield Hub
    server.shutdown()


def fetch(hub_url, home: Path, revision=COMMIT, **env) -> dict:
    given = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and "proxy" not in k.lower()}
    given |= {
        "HF_ENDPOINT": hub_url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_ETAG_TIMEOUT": "5",
        **env,
    }
    done = subprocess.run(
        [sys.executable, "-c", CODE, revision], env=given, capture_output=True, text=True, timeout=60, cwd=home
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_m11_a_pinned_snapshot_is_fetched_without_needless_copies_and_found_again_offline(hub, tmp_path):
    first = fetch(hub.url, tmp_path)
    assert first["digest"] == COMMIT
    assert first["files"] == [
        "config.json",
        "model-1.safetensors",
        "model-2.safetensors",
        "model.safetensors.index.json",
    ]
    asked = len(hub.asked)
    assert fetch(hub.url, tmp_path) == first
    assert len(hub.asked) == asked  # nothing is asked of the hub when the snapshot is whole
    assert fetch("http://127.0.0.1:9", tmp_path, HF_HUB_OFFLINE="1") == first


def test_m11_without_a_revision_the_commit_of_the_first_fetch_is_locked(hub, tmp_path):
    (tmp_path / "config").mkdir()
    assert fetch(hub.url, tmp_path, revision="")["digest"] == COMMIT
    asked = len(hub.asked)
    assert fetch(hub.url, tmp_path, revision="")["digest"] == COMMIT
    assert len(hub.asked) == asked
    lock = tmp_path / "config" / "checkpoints.lock.json"
    assert json.loads(lock.read_text())["revisions"] == {"org/model": COMMIT}
    lock.write_text(json.dumps({"schema_version": 1, "revisions": {"org/model": "f" * 40}}))
    fetch(hub.url, tmp_path, revision="")
    assert any("f" * 40 in line for line in hub.asked)
    lock.write_text("{")
    assert fetch(hub.url, tmp_path, revision="")["code"] == "lock"


def test_c6_a_half_finished_snapshot_is_completed(hub, tmp_path):
    fetch(hub.url, tmp_path)
    next(tmp_path.rglob("model-2.safetensors")).unlink()
    assert "model-2.safetensors" in fetch(hub.url, tmp_path)["files"]


def test_c6_a_pointer_in_the_place_of_weights_is_told_after_the_fetch(hub, tmp_path, monkeypatch):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 16060556376\n"
    monkeypatch.setitem(FILES, "model-2.safetensors", pointer)
    said = fetch(hub.url, tmp_path)
    assert said["code"] == "no_weights"
    assert "model-2.safetensors is a pointer of Git LFS" in said["text"]


@pytest.mark.parametrize(
    ("refusal", "token", "code", "words"),
    [
        ((401, "GatedRepo"), None, "gated_401", ["accept the licence", "HF_TOKEN"]),
        ((403, "GatedRepo"), "hf_TESTSECRET123", "gated_403", ["accept the licence", "no access"]),
        ((401, "RepoNotFound"), None, "no_repo", ["private"]),
        ((404, "RevisionNotFound"), None, "no_revision", ["commits"]),
        ((429, ""), None, "hub_429", ["limits"]),
    ],
)
def test_c6_refusals_say_exactly_what_to_do_and_never_the_token(hub, tmp_path, refusal, token, code, words):
    hub.refusal = refusal
    said = fetch(hub.url, tmp_path, **({"HF_TOKEN": token} if token else {}))
    assert said["code"] == code
    assert all(word in said["text"] for word in words), said
    assert "TESTSECRET" not in said["text"]
    if token:
        assert f"Bearer {token}" in hub.seen_tokens
    assert not any("TESTSECRET" in f.read_text(errors="replace") for f in tmp_path.rglob("*") if f.is_file())


def test_c6_offline_with_an_empty_cache_says_so(tmp_path):
    said = fetch("http://127.0.0.1:9", tmp_path, HF_HUB_OFFLINE="1")
    assert said["code"] == "offline"
    assert "not complete" in said["text"]


def test_no_network_is_told_as_such(tmp_path):
    assert fetch("http://127.0.0.1:9", tmp_path)["code"] == "offline"


def test_m11_the_disk_is_checked_before_anything_is_downloaded(hub, tmp_path):
    hub.size = 10**15
    said = fetch(hub.url, tmp_path)
    assert said["code"] == "disk_full"
    assert not any("/resolve/" in line for line in hub.asked)


def test_c6_a_file_in_the_caches_place_is_a_clear_message(hub, tmp_path):
    (tmp_path / "hub").write_text("in the way")
    said = fetch(hub.url, tmp_path)
    assert said["code"] in ("disk", "cache_not_writable")
    assert "HF_HOME" in said["text"]
