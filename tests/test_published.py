"""What docs/results.md says in numbers is what the published files hold."""

import csv
import json
import re
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
FOLDER = ROOT / "results" / "published" / "h200-smollm2"
LOADS = ("c1", "c4", "c16", "c64")
MODES = {"baseline": "baseline", "n-gram": "ngram", "eagle3-random": "eagle3-random"}


@pytest.fixture(scope="module")
def rows():
    with (FOLDER / "summary.csv").open(encoding="utf-8") as file:
        return {(row["kind"], row["load"], row["mode"]): row for row in csv.DictReader(file)}


def table_row(title: str) -> list[str]:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {title} |")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


@pytest.mark.parametrize("kind", ["code", "chat", "json"])
@pytest.mark.parametrize("mode", MODES)
def test_speeds_and_ratios_on_the_page_are_those_of_the_table(rows, kind, mode):
    for load, cell in zip(LOADS, table_row(f"{kind}: {mode}"), strict=True):
        said = [float(number) for number in re.findall(r"\d+\.\d+", cell)]
        here = float(rows[kind, load, MODES[mode]]["p50_decode_tok_s"])
        base = float(rows[kind, load, "baseline"]["p50_decode_tok_s"])
        assert said[0] == pytest.approx(here, abs=0.051)
        if mode != "baseline":
            assert said[1] == pytest.approx(here / base, abs=0.0051)


@pytest.mark.parametrize("mode", MODES)
def test_joules_per_token_on_the_page_are_those_of_the_table(rows, mode):
    energy = PAGE.split("## Energy")[1]
    (line,) = [line for line in energy.splitlines() if line.startswith(f"| {mode} |")]
    for load, cell in zip(LOADS, line.strip("|").split("|")[1:], strict=True):
        assert float(cell) == pytest.approx(float(rows["code", load, MODES[mode]]["energy_j_per_token"]), abs=0.00051)


def test_the_archive_that_the_page_names_is_there():
    (name,) = re.findall(r"`(h200-smollm2-\w+\.tar\.gz)`", PAGE)
    assert (FOLDER / name).is_file()


@pytest.fixture(scope="module")
def third():
    """P50 decode by kind, mode and concurrency, from the third machine's cell store."""
    found = {}
    with tarfile.open(FOLDER / "third-machine.tar.gz") as archive:
        for member in archive:
            if member.name.startswith("cells/measured/") and member.name.endswith(".json"):
                cell = json.load(archive.extractfile(member))
                load = cell["cell"]["load"]["concurrency"]
                found[cell["cell"]["kind"], cell["mode"], load] = cell["summary"]["p50_decode_tok_s"]
    return found


@pytest.mark.parametrize("kind", ["code", "chat", "json"])
@pytest.mark.parametrize("mode", ["baseline", "ngram", "draft"])
def test_the_third_machines_numbers_are_those_of_its_cells(third, kind, mode):
    for load, cell in zip((1, 4, 16, 64), table_row(f"{kind}, {mode}"), strict=True):
        if cell == "n/a":
            assert (kind, mode, load) not in third
            continue
        said = [float(number) for number in re.findall(r"\d+\.\d+", cell)]
        assert said[0] == pytest.approx(third[kind, mode, load], abs=0.051)
        if mode != "baseline":
            assert said[1] == pytest.approx(third[kind, mode, load] / third[kind, "baseline", load], abs=0.0051)
