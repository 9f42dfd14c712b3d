"""M36: a bundle that is whole is found good; whatever was changed in it is found and named."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from specdec_lab.bundle import archive, beside, verify
from specdec_lab.bundle.manifest import Manifest, Packed
from specdec_lab.bundle.pack import CHECKSUMS, pack
from specdec_lab.records.base import strict_dumps
from specdec_lab.records.errors import UserError


@pytest.fixture
def folder(results: Path, tmp_path: Path) -> Path:
    """An unpacked bundle."""
    return archive.unpack(pack(results), tmp_path / "unpacked")


def outcome(bundle: Path) -> dict[str, str]:
    return {check.name: check.outcome for check in verify.verify(bundle).checks}


def reseal(folder: Path, **changes: object) -> None:
    """Write manifest and checksums again, as whoever forges a bundle would."""
    path = folder / "results" / "made" / "bundle" / "manifest.json"
    manifest = Manifest.read(path)
    files = [
        Packed(path=one.path, sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        for one in manifest.files
        for content in [(folder / one.path).read_bytes()]
    ]
    text = strict_dumps(manifest.model_copy(update={"files": files, **changes}))
    path.write_text(text)
    own = f"{hashlib.sha256(text.encode()).hexdigest()}  results/made/bundle/manifest.json\n"
    (folder / CHECKSUMS).write_text(own)


def test_a_whole_bundle_is_good_as_archive_and_as_folder(results: Path, folder: Path) -> None:
    found = verify.verify(next((results / "bundle").glob("*.tar.gz")))
    assert found.good
    assert {one.name: one.outcome for one in found.checks if one.name != "complete"} == {
        "checksums": "ok",
        "formats": "ok",
        "name": "ok",
        "tables": "ok",
    }
    assert verify.verify(folder).good


@pytest.mark.parametrize("name", ["summary.txt", "sessions/ngram/r1/code_c1.json", "decision.json"])
def test_a_changed_byte_is_found(folder: Path, name: str) -> None:
    path = folder / "results" / "made" / name
    path.write_bytes(path.read_bytes() + b" ")
    found = verify.verify(folder)
    assert not found.good
    assert found.checks[0].told == [f"results/made/{name}: changed since it was packed"]


def rewrite(path: Path, factor: float) -> int:
    """Multiply every fraction in a JSON or CSV file; how many there were."""
    number = re.compile(r"(?<![\w.])\d+\.\d{6,}(?![\w.])")
    text, count = number.subn(lambda found: repr(float(found[0]) * factor), path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    return count


@pytest.mark.parametrize("name", ["comparison.json", "summary.csv"])
@pytest.mark.parametrize(("factor", "expected"), [(1 + 4e-15, "ok"), (1 + 1e-6, "fail")])
def test_last_digits_depend_on_the_machine_and_more_than_those_do_not(
    folder: Path, name: str, factor: float, expected: str
) -> None:
    path = folder / "results" / "made" / name
    before = path.read_bytes()
    assert rewrite(path, factor) > 10
    assert path.read_bytes() != before
    reseal(folder)
    assert outcome(folder)["tables"] == expected


def test_a_missing_and_an_added_file_are_found(folder: Path) -> None:
    (folder / "results/made/summary.csv").unlink()
    (folder / "results/made/sessions/ngram/r1/extra_c1.json").write_text("{}")
    told = verify.verify(folder).checks[0].told
    assert "results/made/summary.csv: missing" in told
    assert "results/made/sessions/ngram/r1/extra_c1.json: not in the manifest" in told


def test_a_changed_manifest_is_found(folder: Path) -> None:
    path = folder / "results/made/bundle/manifest.json"
    path.write_text(path.read_text().replace('"lab"', ' "lab"'))
    assert outcome(folder)["checksums"] == "fail"


def test_a_table_that_does_not_follow_from_the_rows_is_found_even_when_resealed(folder: Path) -> None:
    path = folder / "results/made/summary.csv"
    lines = path.read_text().splitlines()
    row = lines[2].split(",")
    row[11] = str(float(row[11]) * 1.1)
    path.write_text("\n".join([*lines[:2], ",".join(row), *lines[3:]]) + "\n")
    reseal(folder)
    found = verify.verify(folder)
    assert outcome(folder)["checksums"] == "ok"
    assert not found.good
    assert any("agg_tok_s" in line for check in found.checks for line in check.told)


def test_a_decision_that_does_not_follow_is_found_even_when_resealed(folder: Path) -> None:
    path = folder / "results/made/decision.md"
    path.write_text(path.read_text().replace("ngram", "draft_k2"))
    reseal(folder)
    assert outcome(folder)["tables"] == "fail"


def test_rows_that_were_changed_make_the_table_wrong(folder: Path) -> None:
    for path in (folder / "results/made/sessions/ngram").glob("r*/code_c1.json"):
        cell = json.loads(path.read_text())
        for row in cell["rows"]:
            row["decode_tok_s"] *= 2
        path.write_text(json.dumps(cell))
    reseal(folder)
    assert outcome(folder)["tables"] == "fail"


def test_other_judging_code_is_told_and_does_not_make_a_bundle_bad(folder: Path) -> None:
    path = folder / "results/made/decision.md"
    path.write_text(path.read_text() + "\nAs an older lab put it.\n")
    reseal(folder, code={"compare": "another"}, lab="0.0.1")
    found = verify.verify(folder)
    assert found.good
    assert found.checks[-1].outcome == "warn"
    assert "0.0.1" in found.checks[-1].told[0]


def test_e8_a_file_that_is_no_strict_json_is_found(folder: Path) -> None:
    path = folder / "results/made/sessions/ngram/r1/code_c1.json"
    path.write_text(path.read_text().replace('"energy_j": null', '"energy_j": NaN').replace("0.05", "NaN", 1))
    assert "NaN" in path.read_text()
    reseal(folder)
    assert outcome(folder)["formats"] == "fail"


def test_tables_are_the_same_to_the_byte_in_every_process(results: Path) -> None:
    code = "import sys; from pathlib import Path; from specdec_lab.analysis import compare; from hashlib import sha256;"
    code += "print(sha256(compare.compare(Path(sys.argv[1])).model_dump_json().encode()).hexdigest())"
    path = str(Path(verify.__file__).parents[2])
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, str(results)],
            env={**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(seen) == 1


def test_what_is_no_bundle_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no bundle here"):
        verify.verify(tmp_path / "nothing.tar.gz")
    (tmp_path / "text.tar.gz").write_text("hello")
    with pytest.raises(UserError, match="no bundle that can be read"):
        verify.verify(tmp_path / "text.tar.gz")
    with pytest.raises(UserError, match="no manifest"):
        verify.verify(tmp_path)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(b"\x1f\x8b\x08\x00" + b"\0" * 20)
    with pytest.raises(UserError):
        verify.verify(cut)


def test_a_cut_archive_is_refused_wherever_it_is_cut(results: Path, tmp_path: Path) -> None:
    content = pack(results).read_bytes()
    for left in (0, 5, 1000, len(content) // 2, len(content) - 200, len(content) - 4):
        path = tmp_path / f"cut{left}.tar.gz"
        path.write_bytes(content[:left])
        with pytest.raises(UserError, match="no bundle that can be read"):
            verify.verify(path)


@pytest.mark.parametrize("place", [0.5, -6])
def test_an_archive_with_a_changed_byte_is_refused(results: Path, tmp_path: Path, place: float) -> None:
    content = bytearray(pack(results).read_bytes())
    content[int(place * len(content)) if place > 0 else int(place)] ^= 0xFF
    path = tmp_path / "changed.tar.gz"
    path.write_bytes(content)
    with pytest.raises(UserError, match="no bundle that can be read"):
        verify.verify(path)


def test_checksums_that_are_no_text_fail(folder: Path) -> None:
    (folder / CHECKSUMS).write_bytes(b"\xff\xfe")
    assert outcome(folder)["checksums"] == "fail"


def test_a_probe_that_is_none_is_told_by_the_check_of_the_tables(folder: Path) -> None:
    own = folder / "results/made/bundle/manifest.json"
    (folder / "results/made/probe.json").write_text("{")
    manifest = Manifest.read(own)
    probe = Packed(path="results/made/probe.json", sha256="", size=0)
    own.write_text(strict_dumps(manifest.model_copy(update={"files": [*manifest.files, probe]})))
    reseal(folder)
    found = {check.name: check for check in verify.verify(folder).checks}
    assert (found["checksums"].outcome, found["formats"].outcome, found["tables"].outcome) == ("ok", "fail", "fail")
    assert "probe.json is not of this version" in found["tables"].told[0]


@pytest.mark.parametrize("path", ["../../secret", "/etc/passwd"])
def test_a_manifest_that_names_files_outside_is_refused(folder: Path, path: str) -> None:
    own = folder / "results/made/bundle/manifest.json"
    manifest = Manifest.read(own)
    own.write_text(
        strict_dumps(manifest.model_copy(update={"files": [*manifest.files, Packed(path=path, sha256="0", size=0)]}))
    )
    with pytest.raises(UserError, match="outside the bundle"):
        verify.verify(folder)


@pytest.mark.parametrize("name", ["../../elsewhere", "other"])
def test_a_manifest_of_other_results_is_refused(folder: Path, name: str) -> None:
    own = folder / "results/made/bundle/manifest.json"
    own.write_text(strict_dumps(Manifest.read(own).model_copy(update={"name": name})))
    with pytest.raises(UserError, match="lies among other results"):
        verify.verify(folder)


def test_a_fault_in_an_archive_names_the_archive(tmp_path: Path) -> None:
    path = tmp_path / "bare.tar.gz"
    archive.write(path, "bare", [("readme", b"x")])
    with pytest.raises(UserError, match="no manifest") as told:
        verify.verify(path)
    assert told.value.place.startswith(str(path))


def with_members(packed: Path, out: Path, *added: tuple[str, bytes]) -> Path:
    """The archive again, with members added below its folder, as whoever smuggles something in would."""
    out.mkdir()
    path = out / packed.name
    root = packed.name.removesuffix(".tar.gz")
    with tarfile.open(packed) as given, tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as made:
        for member in given:
            made.addfile(member, given.extractfile(member))
        for name, content in added:
            info = tarfile.TarInfo(f"{root}/{name}")
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return path


def test_nothing_is_in_an_archive_beside_what_its_manifest_lists(results: Path, tmp_path: Path) -> None:
    added = [
        ".snakemake/iocache/latest.pkl",
        ".venv/bin/python",
        "extra.txt",
        "results/made/bundle/made-0123456789ab.tar.gz",
        "results/made/extra.tar.gz",
        "results/made/logs/bundle.log",
        "sitecustomize.py",
        "workflow/specdec_lab/__pycache__/cli.cpython-312.pyc",
        "workflow/specdec_lab/evil.py",
    ]
    found = verify.verify(with_members(pack(results), tmp_path / "forged", *((name, b"x") for name in added)))
    assert not found.good
    assert sorted(found.checks[0].told) == [f"{name}: not in the manifest" for name in added]


def test_a_member_that_stands_twice_is_refused(results: Path, tmp_path: Path) -> None:
    path = with_members(pack(results), tmp_path / "forged", ("README.md", b"x"))
    with pytest.raises(UserError, match=r"holds 'made-[0-9a-f]{12}/README.md' twice; .* not in the manifest") as told:
        verify.verify(path)
    assert told.value.code == "unsafe"


@pytest.mark.parametrize("name", ["a\x1b[31m\nb", "a\x7f", "a\x85", "a\udcff"])
def test_a_member_with_a_control_character_is_refused_and_shown_escaped(tmp_path: Path, name: str) -> None:
    path = tmp_path / "odd.tar.gz"
    archive.write(path, "made", [(name, b"x")])
    with pytest.raises(UserError, match="control character") as told:
        verify.verify(path)
    assert told.value.cause.endswith(f": made/{ascii(name)[1:-1]}")
    assert told.value.code == "unsafe"


@pytest.mark.parametrize("name", ["./README.md", "workflow//x.py", "workflow/./x.py"])
def test_a_member_spelled_in_another_way_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "odd.tar.gz"
    archive.write(path, "made", [(name, b"x")])
    with pytest.raises(UserError, match="member that no bundle has"):
        verify.verify(path)


def test_what_lies_behind_the_end_of_an_archive_is_refused(results: Path, tmp_path: Path) -> None:
    packed = pack(results)
    path = tmp_path / packed.name
    more = io.BytesIO()
    with tarfile.open(fileobj=more, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("x/evil.py"))
    path.write_bytes(packed.read_bytes() + gzip.compress(more.getvalue()))
    with pytest.raises(UserError, match="something stands behind its end"):
        verify.verify(path)


def test_nothing_is_in_a_folder_beside_the_manifest_but_what_tools_leave(folder: Path) -> None:
    added = ["evil.so", "sitecustomize.py", "results/made/extra.tar.gz", "workflow/specdec_lab/evil.py"]
    for name in added:
        (folder / name).write_bytes(b"x")
    assert verify.verify(folder).checks[0].told == [f"{name}: not in the manifest" for name in added]


def test_what_working_in_a_folder_leaves_there_is_told_and_does_not_make_it_bad(folder: Path) -> None:
    left = [
        ".snakemake/locks/0.input.lock",
        ".snakemake/metadata/new",
        ".venv/bin/python",
        "workflow/specdec_lab/__pycache__/x.pyc",
        "workflow/specdec_lab/cli/__pycache__/x.pyc",
        "workflow/specdec_lab.egg-info/PKG-INFO",
        "results/made/logs/bundle.log",
        f"results/made/bundle/{folder.name}.tar.gz",
    ]
    for name in left:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    found = verify.verify(folder)
    assert found.good
    remark = next(one for one in found.checks if one.name == "beside")
    assert remark.outcome == "warn"
    assert "workflow/specdec_lab/__pycache__/: not checked, not in the manifest" in remark.told
    assert ".venv/: not checked, not in the manifest" in remark.told
    assert ".snakemake/: not checked, not in the manifest" in remark.told


def test_what_a_tool_adds_to_a_packed_folder_is_told_by_its_name(tmp_path: Path) -> None:
    for name in ("metadata/a", "metadata/b", "log/c", "log/d"):
        (tmp_path / ".snakemake" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".snakemake" / name).touch()
    found = set(beside.unlisted(tmp_path, {".snakemake/metadata/a"}, worked_in=True))
    assert found == {".snakemake/log/", ".snakemake/metadata/b"}
    assert all(beside.left_by_tools(name) for name in found)


def test_a_link_or_a_pipe_in_a_folder_is_not_in_the_manifest(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to(tmp_path / "missing")
    (folder / "elsewhere").symlink_to(tmp_path)
    told = verify.verify(folder).checks[0].told
    assert told == [f"{name}: not in the manifest" for name in ("elsewhere", "nowhere", "pipe")]


def test_a_folder_of_a_bundle_that_is_a_link_is_found(folder: Path, tmp_path: Path) -> None:
    (folder / "workflow").rename(tmp_path / "workflow")
    (folder / "workflow").symlink_to(tmp_path / "workflow")
    assert "workflow: not in the manifest" in verify.verify(folder).checks[0].told


@pytest.mark.timeout(20)
def test_a_manifest_that_is_no_file_is_not_opened(folder: Path) -> None:
    own = folder / "results/made/bundle/manifest.json"
    own.unlink()
    os.mkfifo(own)
    with pytest.raises(UserError, match="is no regular file"):
        verify.verify(folder)


def test_a_checksum_that_the_manifest_does_not_give_is_found(folder: Path) -> None:
    with (folder / CHECKSUMS).open("a") as file:
        file.write(f"{'0' * 64}  evil.py\n")
    assert f"{CHECKSUMS}: lists what the manifest does not" in verify.verify(folder).checks[0].told


def test_what_a_bundle_says_reaches_no_terminal_unescaped(folder: Path) -> None:
    (folder / "a\x1b[31m\nb").write_text("x")
    reseal(folder, redacted=["x\x1b[2Kok  checksums"])
    said: list[str] = []
    verify.tell(verify.verify(folder), said.append)
    assert r"      a\x1b[31m\nb: not in the manifest" in said
    assert all(line.isprintable() for line in said)
