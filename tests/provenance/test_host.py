"""The machine and the packages underneath a number (M10)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from specdec_lab.provenance.host import host, packages
from specdec_lab.records.errors import UserError
from specdec_lab.records.stack import Host


def test_m10_the_host_names_its_cpu_memory_and_system() -> None:
    here = host()
    assert here.cores >= 1
    assert here.memory_bytes > 2**20
    assert here.cpu
    assert here.system.startswith("Linux") or "Darwin" in here.system
    assert here.python.startswith("3.")
    assert Host.model_validate_json(here.model_dump_json()) == here


def test_m10_packages_are_those_of_the_named_interpreter() -> None:
    found = packages(sys.executable)
    assert found["pydantic"].startswith("2.")
    assert "prometheus-client" in found
    assert list(found) == sorted(found)


def test_m10_an_interpreter_that_cannot_run_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        packages(tmp_path / "python")
    assert caught.value.code == "packages_unknown"
    assert str(tmp_path) in caught.value.place
