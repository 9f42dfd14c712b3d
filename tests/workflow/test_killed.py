"""A run that is killed at any moment and started again ends as if nothing had happened (cases E7, C7; B6).

The endpoint is scripted, because faults and not speeds are what counts here. Modes attach to it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from attached import Project as AttachedProject
from attached import answer

from specdec_lab.client.scripted import ScriptedServer
from specdec_lab.records.base import strict_loads
from specdec_lab.records.cell import Cell

pytestmark = [pytest.mark.workflow, pytest.mark.slow, pytest.mark.timeout(1200)]

TIMES = int(os.environ.get("SPECDEC_KILLS", "20"))
MODES = ("baseline", "other")
CELLS = ("chat_c1", "code_c1", "json_c1")


class Project(AttachedProject):
    """Runs of the workflow that may be killed."""

    def start(self) -> subprocess.Popen[str]:
        """Start a run as a process group of its own."""
        return subprocess.Popen(
            self.command("--cores", "1", "--until", "compare"),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def unlock(self) -> None:
        """The one command that the documentation gives after a kill -9."""
        done = self.snakemake("--unlock")
        assert done.returncode == 0, done.stderr

    def store(self) -> dict[Path, bytes]:
        """Every complete cell that is in the store, by file."""
        return {path: path.read_bytes() for path in self.folder.glob("cells/measured/*/*.json")}


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(answer) as running:
        yield running


def test_e7_a_run_killed_at_random_moments_ends_with_the_same_cells_and_nothing_measured_twice(
    server: ScriptedServer, tmp_path: Path
) -> None:
    project = Project(tmp_path, server.base_url)
    config = (tmp_path / "lab.yaml").read_bytes()
    moments = random.Random(7)
    complete: dict[Path, bytes] = {}
    length = 25.0
    for number in range(TIMES):
        started = time.monotonic()
        run = project.start()
        deadline = moments.uniform(0.2, length)
        try:
            run.communicate(timeout=deadline)
            length = max(4.0, 0.9 * (time.monotonic() - started))
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, moments.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
            run.communicate(timeout=60)
        now = project.store()
        for path, content in complete.items():
            assert now[path] == content, f"a complete cell was measured again after kill {number}"
        for content in now.values():
            Cell.model_validate(strict_loads(content))
        complete = now
        if number % 5 == 4:
            shutil.rmtree(tmp_path / "results", ignore_errors=True)  # the store alone is the truth
        if (tmp_path / ".snakemake" / "locks").is_dir() and any((tmp_path / ".snakemake" / "locks").iterdir()):
            project.unlock()
    last = project.start()
    said, _ = last.communicate(timeout=240)
    assert last.returncode == 0, said
    cells = [Cell.read(path) for path in project.store()]
    wanted = {(mode, replicate, name) for mode in MODES for replicate in (1, 2) for name in CELLS}
    assert Counter((c.mode, c.replicate, c.cell.name) for c in cells) == Counter(wanted)
    for path, content in complete.items():
        assert project.store()[path] == content
    for cell in cells:
        assert [row.status for row in cell.rows] == ["ok"] * 3
        assert len({row.id for row in cell.rows}) == 3
        shown = tmp_path / f"results/tried/sessions/{cell.mode}/r{cell.replicate}/{cell.cell.name}.json"
        assert Cell.read(shown).rows == cell.rows
    assert (tmp_path / "lab.yaml").read_bytes() == config
    assert not list(tmp_path.rglob("*.unreadable-*"))
