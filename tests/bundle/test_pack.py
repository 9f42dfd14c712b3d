"""M36, M10, case E9: what goes into a bundle, what never does, and that equal content makes equal bytes."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from specdec_lab.bundle import archive
from specdec_lab.bundle.contents import recorded_output
from specdec_lab.bundle.manifest import Manifest
from specdec_lab.bundle.pack import CHECKSUMS, pack
from specdec_lab.records.errors import UserError

SECRET = "hf_TESTSECRET123"


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {m.name.split("/", 1)[1]: tar.extractfile(m).read() for m in tar}


def test_packing_twice_later_and_elsewhere_gives_the_same_bytes(project: Path, results: Path, tmp_path: Path) -> None:
    first = pack(results, out=tmp_path / "one")
    moved = Path(shutil.copytree(project, tmp_path / "it's ünï moved"))
    for path in moved.rglob("*"):
        os.utime(path, (time.time() + 90, time.time() + 90))
    second = pack(moved / "results" / "made", out=tmp_path / "two")
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


def test_an_unpacked_bundle_packs_to_the_same_bundle_again(results: Path, tmp_path: Path) -> None:
    first = pack(results, out=tmp_path / "one")
    folder = archive.unpack(first, tmp_path / "there")
    assert pack(folder / "results" / "made", out=tmp_path / "two").read_bytes() == first.read_bytes()


def test_the_name_is_the_digest_of_the_content_and_changes_with_it(results: Path, tmp_path: Path) -> None:
    first = pack(results, out=tmp_path)
    manifest = Manifest.read(results / "bundle" / "manifest.json")
    assert first.name == f"made-{manifest.digest}.tar.gz"
    (results / "logs").mkdir(exist_ok=True)
    (results / "logs" / "more.log").write_text("more\n")
    assert pack(results, out=tmp_path).name != first.name
    assert first.exists(), "an older bundle stays"


def test_everything_behind_the_table_is_in_it_with_its_checksum(results: Path) -> None:
    path = pack(results)
    assert path.parent == results / "bundle"
    files = members(path)
    wanted = ["summary.txt", "summary.csv", "comparison.json", "decision.json", "prompts.jsonl"]
    wanted += ["sessions/ngram/r1/session.json", "sessions/ngram/r1/code_c1.json"]
    assert all(f"results/made/{name}" in files for name in wanted)
    assert {"README.md", "Snakefile", "workflow/specdec_lab/dag.py", "ro-crate-metadata.json"} <= set(files)
    assert not [name for name in files if "__pycache__" in name or name.endswith((".pyc", ".tar.gz"))]
    sums = dict(line.split("  ", 1)[::-1] for line in files.pop(CHECKSUMS).decode().splitlines())
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def test_others_tools_can_check_and_read_it(results: Path, tmp_path: Path) -> None:
    folder = archive.unpack(pack(results), tmp_path)
    done = subprocess.run(["sha256sum", "-c", "--quiet", CHECKSUMS], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout
    from rocrate.rocrate import ROCrate

    crate = ROCrate(folder)
    assert crate.mainEntity.id == "Snakefile"
    run = crate.get("#run")
    assert run["startTime"] < run["endTime"]
    assert "results/made/summary.csv" in [one.id for one in run["result"]]
    assert "vllm" in run["description"]
    profiles = {one.id for one in crate.root_dataset["conformsTo"]}
    assert "https://w3id.org/ro/wfrun/workflow/0.5" in profiles


def test_e9_no_secret_gets_into_any_file(results: Path, tmp_path: Path) -> None:
    start = results / "sessions" / "ngram" / "r1"
    (start / "server.log").write_text(f"args: hf_token='{SECRET}'\nHF_TOKEN={SECRET}\nAuthorization: Bearer {SECRET}\n")
    (start / "metrics.prom").write_text(f'# env "{SECRET}"\n')
    cell = json.loads((start / "code_c1.json").read_text())
    cell["rows"][0]["message"] = f"ValueError: token {SECRET} was refused"
    (start / "code_c1.json").write_text(json.dumps(cell))
    (results / "notes.txt").write_text("my own key: correct-horse-battery")
    environment = {"HF_TOKEN": SECRET, "OPENAI_API_KEY": "correct-horse-battery"}
    path = pack(results, environment=environment)
    packed = members(path)
    assert not [name for name, content in packed.items() if SECRET.encode() in content or b"correct-horse" in content]
    told = Manifest.read(results / "bundle" / "manifest.json").redacted
    assert {Path(one).name for one in told} == {"server.log", "metrics.prom", "code_c1.json", "notes.txt"}
    json.loads(packed["results/made/sessions/ngram/r1/code_c1.json"])


def test_e9_a_secret_is_found_by_its_shape_where_the_environment_has_none(results: Path) -> None:
    (results / "sessions" / "ngram" / "r1" / "server.log").write_text(f"loaded with {SECRET}")
    assert not [n for n, content in members(pack(results, environment={})).items() if SECRET.encode() in content]


def test_an_answer_that_only_speaks_of_passwords_stays_as_it_was_measured(results: Path) -> None:
    path = results / "sessions" / "ngram" / "r1" / "code_c1.json"
    cell = json.loads(path.read_text())
    cell["rows"][0]["text"] = 'password = "opensesame"'
    path.write_text(json.dumps(cell))
    packed = members(pack(results, environment={}))
    assert packed["results/made/sessions/ngram/r1/code_c1.json"] == path.read_bytes()


def test_e9_links_are_never_followed_and_are_told(results: Path, tmp_path: Path) -> None:
    big = tmp_path / "cache"
    big.mkdir()
    (big / "weights.bin").write_bytes(b"x" * 1000)
    (results / "cache").symlink_to(big)
    (results / "weights.bin").symlink_to(big / "weights.bin")
    (results / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(results / "pipe")
    packed = members(pack(results))
    assert not [name for name in packed if "cache" in name.split("/")[:3] or name.endswith(("dangling", "pipe"))]
    assert "results/made/weights.bin" not in packed
    told = Manifest.read(results / "bundle" / "manifest.json").left_out
    assert sorted(one.code for one in told if one.code in ("link", "special")) == ["link", "link", "link", "special"]
    with tarfile.open(next((results / "bundle").glob("*.gz"))) as tar:
        assert all(m.isfile() and not m.name.startswith("/") and ".." not in m.name for m in tar)


def test_e9_an_unreadable_file_is_listed_and_not_fatal(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (results / "root_only.txt").write_text("x")
    read = Path.read_bytes

    def refused(self: Path) -> bytes:
        if self.name == "root_only.txt":
            raise PermissionError(13, "Permission denied")
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", refused)
    assert "results/made/root_only.txt" not in members(pack(results))
    told = Manifest.read(results / "bundle" / "manifest.json").left_out
    assert [one.message for one in told if one.code == "unreadable"] == [
        "results/made/root_only.txt: Permission denied"
    ]


def test_e9_a_folder_that_cannot_be_written_is_refused_before_anything_is_read(results: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (results / "comparison.json").unlink()
    with pytest.raises(UserError, match="cannot be written"):
        pack(results, out=tmp_path / "file" / "below")


def test_m10_a_number_without_its_stack_is_refused(results: Path) -> None:
    path = results / "sessions" / "ngram" / "r1" / "code_c1.json"
    cell = json.loads(path.read_text())
    del cell["stack"]
    path.write_text(json.dumps(cell))
    with pytest.raises(UserError, match="on what stack"):
        pack(results)


def test_without_a_table_there_is_nothing_to_keep(results: Path) -> None:
    (results / "comparison.json").unlink()
    with pytest.raises(UserError, match="no table yet"):
        pack(results)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil"])
def test_an_archive_that_would_write_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = 1
        tar.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(UserError):
        archive.unpack(path, tmp_path / "into")
    assert not (tmp_path / "evil").exists()


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        info = tarfile.TarInfo("bundle/link")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(UserError, match="no bundle has"):
        archive.unpack(path, tmp_path / "into")


def test_snakemakes_records_are_found_by_what_they_are_about() -> None:
    assert recorded_output(("cmVzdWx0cy9kMi9wcm9tcHRzLmpzb25s",)) == "results/d2/prompts.jsonl"
    assert recorded_output(("@cmVzdWx0cy9kMi9w", "cm9tcHRzLmpzb25s")) == "results/d2/prompts.jsonl"
    assert recorded_output(("not base64!",)) is None


@pytest.mark.parametrize("content", ["{", "[]", ""])
def test_a_table_that_cannot_be_read_is_named(results: Path, content: str) -> None:
    (results / "comparison.json").write_text(content)
    with pytest.raises(UserError, match=r"comparison\.json is not of this version"):
        pack(results)


def test_a_folder_that_is_not_there_is_told_and_not_made(results: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results folder"):
        pack(tmp_path / "mistyped")
    assert not (tmp_path / "mistyped").exists()
    with pytest.raises(UserError, match="no results folder"):
        pack(pack(results))
