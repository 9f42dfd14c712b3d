"""What ends a session is recorded, and only that of this try is told."""

from pathlib import Path

import pytest

from specdec_lab.launchers.base import Exit
from specdec_lab.records.errors import UserError
from specdec_lab.records.session import Failure
from specdec_lab.records.spec import ServerSpec, SessionSpec
from specdec_lab.session import failing
from specdec_lab.session.ready import ServerDied


class Made:
    """As much of a job as a failure's record needs."""

    mode, replicate = "ngram", 1
    spec = SessionSpec(server=ServerSpec(engine="llama_cpp", launcher="process"), checkpoints={}, against=None)

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "server.log"


def test_a_fault_of_the_lab_is_recorded_and_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="illegal environment"), failing.recorded(Made(tmp_path)):
        raise ValueError("illegal environment variable name")
    failure = Failure.read(tmp_path / "failure.json")
    assert (failure.code, failure.cause) == ("crashed", "ValueError: illegal environment variable name")


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (Exit(code=-9), "exit code -9, by SIGKILL"),
        (Exit(code=137), "exit code 137, by SIGKILL"),
        (Exit(code=137, oom_killed=True), "exit code 137, by SIGKILL, out of memory"),
        (Exit(code=-15), "exit code -15, by SIGTERM"),
        (Exit(code=1), "(exit code 1)"),
        (Exit(code=255), "(exit code 255)"),
        (Exit(code=None), "(exit code None)"),
    ],
)
def test_a_signal_that_ended_a_server_has_its_name(end: Exit, told: str) -> None:
    assert told in str(ServerDied(end))


def test_a_server_that_died_says_how(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="SIGKILL"), failing.recorded(Made(tmp_path)):
        raise ServerDied(Exit(code=137))
    assert Failure.read(tmp_path / "failure.json").exit_code == 137
