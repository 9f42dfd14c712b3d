"""Snakemake's own lint finds nothing, but for one thing that is so on purpose."""

import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.workflow

# Every rule runs in the locked environment that `make setup` builds, so no rule names one of its own.
ON_PURPOSE = "Specify a conda environment or container for each rule."


@pytest.mark.parametrize("config", ["config/demo.yaml", "config/config.yaml"])
def test_snakemake_lint_finds_nothing_else(config):
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--lint", "--configfile", config],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = done.stdout + done.stderr
    assert "Traceback" not in said
    found = re.findall(r"^    \* (.+?):?$", said, re.MULTILINE)
    assert len(found) >= 5, said
    assert {text.rstrip(":") for text in found} == {ON_PURPOSE}
