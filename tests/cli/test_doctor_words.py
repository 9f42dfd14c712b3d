"""`specdec doctor X`: a file without an option is no silent look at the machine in general."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from specdec_lab.cli.doctor import run
from specdec_lab.records.errors import UserError


@pytest.mark.parametrize("words", [["config/demo.yaml"], ["server.log", "more"], ["--json", "x"]])
def test_a_file_without_an_option_is_refused_with_the_option(words: list[str]) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(run)
    result = CliRunner().invoke(app, words)
    assert isinstance(result.exception, UserError)
    assert f"--config {words[-1] if '--json' in words else words[0]};" in result.exception.fix
    assert "stray" not in CliRunner().invoke(app, ["--help"]).stdout


def test_a_second_config_without_its_option_is_refused_with_the_whole_command() -> None:
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(run)
    result = CliRunner().invoke(app, ["--config", "a.yaml", "b.yaml"])
    assert isinstance(result.exception, UserError)
    assert "specdec doctor --config a.yaml --config b.yaml;" in result.exception.fix
