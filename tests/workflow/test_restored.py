"""What was measured once stays measured: undone changes, one more load, an empty folder, an unpacked bundle (B6, M36).

Every request that reaches the endpoint is counted.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from attached import Project, answer, jobs
from programs import run

from specdec_lab.bundle import archive
from specdec_lab.bundle.verify import verify
from specdec_lab.client.scripted import ScriptedServer
from specdec_lab.formats import format_of
from specdec_lab.records.session import Failure

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(900)]

SESSIONS, KINDS, WARMUP, REQUESTS = 4, 3, 2, 3
CELL = WARMUP + REQUESTS


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as running:
        yield running


@pytest.fixture(scope="module")
def project(server: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("restored"), server.base_url)
    done = made.snakemake("--cores", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_the_first_run_asks_each_thing_once(project: Project, server: ScriptedServer) -> None:
    streamed = [seen for seen in server.posts if seen.json.get("stream")]
    assert len(streamed) == SESSIONS * KINDS * CELL
    assert jobs(project.snakemake("--cores", "1", "--dry-run")) == set()


def test_every_file_of_a_run_fits_its_schema(project: Project) -> None:
    checked = set()
    for path in project.folder.rglob("*.json*"):
        form = format_of(path.relative_to(project.folder).as_posix())
        if form is not None:
            form.check(path.read_bytes())
            checked.add(form.name)
    assert {"cell", "session", "lifetime", "comparison", "decision", "prompt", "resolved_config", "manifest"} <= checked


def test_m36_the_run_made_a_bundle_that_is_good_and_done_wherever_it_is_unpacked(
    project: Project, server: ScriptedServer, tmp_path: Path
) -> None:
    bundle = next((project.results / "bundle").glob("tried-*.tar.gz"))
    found = verify(bundle)
    assert found.good, found
    folder = archive.unpack(bundle, tmp_path)
    dry = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
    assert jobs(run(dry, folder, project.environment(folder))) == set()
    config = json.loads((folder / "config" / "config.yaml").read_text().split("\n", 1)[1])
    config["modes"]["other"]["speculative"]["k"] = 3
    (folder / "config" / "config.yaml").write_text(json.dumps(config))
    planned = jobs(run(dry, folder, project.environment(folder)))
    assert {job for job in planned if job.startswith("Measuring")} == {
        "Measuring other, replicate 1",
        "Measuring other, replicate 2",
    }


def test_one_more_concurrency_asks_only_for_the_new_cells_and_undoing_it_for_nothing(
    project: Project, server: ScriptedServer
) -> None:
    before = len(server.posts)
    project.config["load"]["concurrency"] = [1, 2]
    project.write()
    assert project.snakemake("--cores", "1", "--until", "compare").returncode == 0
    asked = [seen for seen in server.posts[before:] if seen.json.get("stream")]
    assert len(asked) == SESSIONS * KINDS * CELL
    before = len(server.posts)
    project.config["load"]["concurrency"] = [1]
    project.write()
    assert project.snakemake("--cores", "1", "--until", "compare").returncode == 0
    assert len(server.posts) == before


def test_an_emptied_results_folder_is_filled_from_the_store(project: Project, server: ScriptedServer) -> None:
    before = len(server.posts)
    table = (project.results / "summary.csv").read_bytes()
    shutil.rmtree(project.results)
    assert project.snakemake("--cores", "1", "--until", "compare").returncode == 0
    assert len(server.posts) == before
    assert (project.results / "summary.csv").read_bytes() == table


@pytest.mark.parametrize("harm", ["deleted", "cut off", "emptied"])
def test_a_cell_file_that_is_gone_or_cut_is_brought_back_from_the_store(
    harm: str, project: Project, server: ScriptedServer
) -> None:
    before = len(server.posts)
    assert project.snakemake("--cores", "1", "--until", "compare").returncode == 0
    cell = next((project.results / "sessions" / "other" / "r2").glob("json_*.json"))
    content, table = cell.read_bytes(), (project.results / "summary.csv").read_bytes()
    cell.unlink() if harm == "deleted" else cell.write_bytes(content[:900] if harm == "cut off" else b"")
    looked = project.snakemake("--cores", "1", "--until", "compare", "--dry-run")
    assert f"{cell.name} is gone or cut off; a run brings it back" in looked.stdout + looked.stderr
    assert (project.results / "comparison.json").exists(), "a dry run changes nothing"
    done = project.snakemake("--cores", "1", "--until", "compare")
    assert done.returncode == 0, done.stdout + done.stderr
    assert cell.read_bytes() == content
    assert (project.results / "summary.csv").read_bytes() == table
    assert len(server.posts) == before
    assert jobs(project.snakemake("--cores", "1", "--until", "compare", "--dry-run")) == set()


def test_e7_a_failed_mode_leaves_its_log_and_reason_and_the_others_run_on(
    server: ScriptedServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, server.base_url)
    project.config["engine"]["ready_timeout_s"] = 2
    project.config["modes"]["broken"] = {"speculative": {"method": "unknown"}, "base_url": "http://127.0.0.1:9"}
    project.config["workload"]["kinds"] = ["json"]
    project.write()
    done = project.snakemake("--cores", "1", "--until", "session")
    assert done.returncode != 0
    start = project.results / "sessions" / "broken" / "r1"
    failure = Failure.read(start / "failure.json")
    assert failure.fix
    assert (start / "server.log").is_file()
    assert failure.cause in done.stdout + done.stderr
    for mode in ("baseline", "other"):
        assert (project.results / "sessions" / mode / "r2" / "session.json").is_file()
    before = len(server.posts)
    project.config["modes"]["broken"]["base_url"] = server.base_url
    project.write()
    assert project.snakemake("--cores", "1", "--until", "session").returncode == 0
    asked = [seen for seen in server.posts[before:] if seen.json.get("stream")]
    assert len(asked) == 2 * CELL
    assert not (start / "failure.json").exists()
