"""Attaching starts nothing and stops nothing (M20)."""

import pytest

from specdec_lab import launchers
from specdec_lab.launchers.base import LaunchPlan
from specdec_lab.records.errors import UserError


def test_attach_takes_the_address_and_leaves_the_server_alone(tmp_path):
    running = launchers.get("attach").start(
        LaunchPlan(name="t", argv=["http://127.0.0.1:9/v1/"], log=tmp_path / "l" / "s")
    )
    assert running.base_url == "http://127.0.0.1:9"
    assert running.exited() is None
    assert running.owns_port() is None
    running.stop(1)
    assert "attached" in (tmp_path / "l" / "s").read_text()


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x"])
def test_an_address_that_is_none_is_refused(tmp_path, url):
    with pytest.raises(UserError, match="no address"):
        launchers.get("attach").start(LaunchPlan(name="t", argv=[url], log=tmp_path / "s"))


def test_an_unknown_launcher_is_refused_with_the_list():
    with pytest.raises(UserError, match="docker, process, attach"):
        launchers.get("podman")
