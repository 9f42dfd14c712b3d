"""What docs/results.md says in numbers is what the published files hold."""

import csv
import itertools
import json
import re
import statistics
import tarfile
from pathlib import Path

import pytest

from specdec_lab.analysis.decision import decide
from specdec_lab.bundle.diff import diff
from specdec_lab.bundle.verify import opened, verify
from specdec_lab.records.comparison import Comparison

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
PUBLISHED = ROOT / "results" / "published"
LOADS = ("c1", "c4", "c16", "c64")
LENGTHS = ("eagle3-1.5", "eagle3-2", "eagle3-3", "eagle3-4")
SHAPED = ("ngram-3", *LENGTHS, "draft-3")


def table(folder: str) -> dict[tuple[str, str, str], dict[str, str]]:
    """Rows of a published summary by kind, load and mode."""
    with (PUBLISHED / folder / "summary.csv").open(encoding="utf-8") as file:
        return {(row["kind"], row["load"], row["mode"]): row for row in csv.DictReader(file)}


def said(title: str, *, after: str = "") -> list[str]:
    """The cells of the page's line that begins with this title, behind the line that begins with `after`."""
    text = PAGE[PAGE.index(f"| {after} |") :] if after else PAGE
    line = next(line for line in text.splitlines() if line.startswith(f"| {title} |"))
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def numbers(cell: str) -> list[float]:
    """The decimal numbers of a cell."""
    return [float(number) for number in re.findall(r"\d+\.\d+", cell)]


def check_speeds(cells: list[str], here: list[float], base: list[float] | None) -> None:
    """P50 decode in each cell, and behind it the ratio to the baseline's if there is one."""
    for number, cell in enumerate(cells):
        assert numbers(cell)[0] == pytest.approx(here[number], abs=0.051)
        assert len(numbers(cell)) == (1 if base is None else 2)
        if base is not None:
            assert numbers(cell)[1] == pytest.approx(here[number] / base[number], abs=0.0051)


def column(rows, kind: str, mode: str, name: str) -> list[float]:
    return [float(rows[kind, load, mode][name]) for load in LOADS]


@pytest.mark.parametrize("kind", ["code", "chat", "json"])
def test_real_text_speeds_intervals_and_verdicts(kind):
    rows = table("h200-smollm2")
    base = column(rows, kind, "baseline", "p50_decode_tok_s")
    check_speeds(said(f"{kind}, baseline P50"), base, None)
    check_speeds(said(f"{kind}, n-gram P50"), column(rows, kind, "ngram", "p50_decode_tok_s"), base)
    for load, interval, gain, verdict in zip(
        LOADS, said(f"{kind}, interval"), said(f"{kind}, throughput"), said(f"{kind}, verdict"), strict=True
    ):
        row = rows[kind, load, "ngram"]
        assert numbers(interval) == pytest.approx([float(row["decode_low"]), float(row["decode_high"])], abs=0.0051)
        assert numbers(gain) == pytest.approx([float(row["agg_speedup"])], abs=0.0051)
        assert verdict == row["verdict"]


def test_the_sentence_is_the_decisions():
    page = (PUBLISHED / "h200-smollm2" / "decision.md").read_text(encoding="utf-8")
    (sentence,) = re.findall(r"^\*\*.+\*\*$", page, re.MULTILINE)
    assert sentence in PAGE


@pytest.mark.parametrize("version", ["0.24.0", "0.33.0"])
def test_the_engine_upgrade(version):
    rows = table(f"h200-smollm2-vllm{version[:4].replace('.', '')}")
    base = column(rows, "code", "baseline", "p50_decode_tok_s")
    check_speeds(said(f"{version} baseline P50"), base, None)
    check_speeds(said(f"{version} n-gram P50"), column(rows, "code", "ngram", "p50_decode_tok_s"), base)
    gains = [float(cell.strip("x")) for cell in said(f"{version} throughput")]
    assert gains == pytest.approx(column(rows, "code", "ngram", "agg_speedup"), abs=0.0051)
    check_intervals(said(f"{version} interval"), rows, "ngram")
    assert said(f"{version} verdict") == [rows["code", load, "ngram"]["verdict"] for load in LOADS]


def check_intervals(cells: list[str], rows: dict[tuple[str, str, str], dict[str, str]], mode: str) -> None:
    """The interval of the P50 decode speedup in each cell."""
    for load, cell in zip(LOADS, cells, strict=True):
        row = rows["code", load, mode]
        assert numbers(cell) == pytest.approx([float(row["decode_low"]), float(row["decode_high"])], abs=0.0051)


def test_what_the_page_says_of_the_upgrade_is_what_diff_says():
    before, after = (next((PUBLISHED / f"h200-smollm2-vllm{v}").glob("h200-*.tar.gz")) for v in ("024", "033"))
    assert f"specdec diff {before.relative_to(ROOT)} {after.relative_to(ROOT)}" in PAGE
    rows = {(one.load, one.mode): one for one in diff(before, after).cells}
    plain, looked_up = ([f"{rows[load, mode].decode.ratio:.2f}x" for load in LOADS] for mode in ("baseline", "ngram"))
    assert "({}, {}, {} and {} P50 decode)".format(*plain) in PAGE
    assert "gained {0}, {1} and {3}\nat concurrency 1, 4 and 64 (`faster`) and {2} at 16".format(*looked_up) in PAGE
    shown = [rows[load, "ngram"].word for load in LOADS]
    assert shown == ["faster", "faster", "no difference shown", "faster"]
    assert f"in {rows['c1', 'baseline'].same_text} of 64 cases at concurrency 1" in PAGE


def test_the_trained_head():
    rows = table("h200-smollm2-vllm033")
    base = column(rows, "code", "baseline", "p50_decode_tok_s")
    check_speeds(said("eagle3, trained P50"), column(rows, "code", "eagle3", "p50_decode_tok_s"), base)
    check_intervals(said("eagle3, trained interval"), rows, "eagle3")
    for title, name in (("length", "acceptance_length"), ("step cost", "step_cost_ratio")):
        cells = [float(cell) for cell in said(f"eagle3, trained {title}")]
        assert cells == pytest.approx(column(rows, "code", "eagle3", name), abs=0.0051)
    assert said("eagle3, trained verdict") == [rows["code", load, "eagle3"]["verdict"] for load in LOADS]


@pytest.mark.parametrize(("start", "title"), [(1, "first"), (2, "second")])
def test_the_trained_drafts_cells(start, title):
    found = {}
    with tarfile.open(PUBLISHED / "h200-smollm2-vllm033" / "draft.tar.gz") as archive:
        for member in archive:
            cell = json.load(archive.extractfile(member))
            if cell["replicate"] == start:
                found[cell["cell"]["load"]["concurrency"]] = f"{cell['summary']['p50_decode_tok_s']:.1f}"
    assert said(f"draft of 4 layers, {title} server") == [found.get(load, "n/a") for load in (1, 4, 16, 64)]


@pytest.mark.parametrize("mode", ["baseline", *SHAPED])
def test_ceiling_speeds(mode):
    rows = table("h200-llama8b-ceiling")
    base = column(rows, "chat", "baseline", "p50_decode_tok_s")
    here = column(rows, "chat", mode, "p50_decode_tok_s")
    check_speeds(said(mode, after="8B shape"), here, None if mode == "baseline" else base)


@pytest.mark.parametrize("mode", SHAPED)
def test_step_costs_and_lengths(mode):
    rows = table("h200-llama8b-ceiling")
    length, *costs = said(mode, after="step cost")
    assert float(length) == pytest.approx(float(rows["chat", "c1", mode]["acceptance_length"]), abs=0.0051)
    assert [float(cost) for cost in costs] == pytest.approx(column(rows, "chat", mode, "step_cost_ratio"), abs=0.0051)


@pytest.mark.parametrize(
    ("title", "folder", "kind", "mode"),
    [
        ("135M code, baseline", "h200-smollm2", "code", "baseline"),
        ("135M code, ngram", "h200-smollm2", "code", "ngram"),
        *((f"8B shape, {mode}", "h200-llama8b-ceiling", "chat", mode) for mode in ("baseline", "ngram-3")),
        *((f"8B shape, {mode}", "h200-llama8b-ceiling", "chat", mode) for mode in ("eagle3-3", "draft-3")),
    ],
)
def test_joules_per_token(title, folder, kind, mode):
    here = column(table(folder), kind, mode, "energy_j_per_token")
    assert [float(cell) for cell in said(title)] == pytest.approx(here, abs=0.00051)


@pytest.mark.parametrize("kind", ["code", "chat", "json"])
@pytest.mark.parametrize(("title", "mode"), [("n-gram", "ngram"), ("eagle3-random", "eagle3-random")])
def test_the_first_machines_speeds(kind, title, mode):
    rows = table("h200-smollm2-first")
    base = column(rows, kind, "baseline", "p50_decode_tok_s")
    check_speeds(said(f"{kind}: baseline"), base, None)
    check_speeds(said(f"{kind}: {title}"), column(rows, kind, mode, "p50_decode_tok_s"), base)


@pytest.fixture(scope="module")
def third():
    """P50 decode by kind, mode and concurrency, from the third machine's cell store."""
    found = {}
    with tarfile.open(PUBLISHED / "h200-smollm2-first" / "third-machine.tar.gz") as archive:
        for member in archive:
            if member.name.startswith("cells/measured/") and member.name.endswith(".json"):
                cell = json.load(archive.extractfile(member))
                load = cell["cell"]["load"]["concurrency"]
                found[cell["cell"]["kind"], cell["mode"], load] = cell["summary"]["p50_decode_tok_s"]
    return found


@pytest.mark.parametrize("kind", ["code", "chat", "json"])
@pytest.mark.parametrize("mode", ["baseline", "ngram", "draft"])
def test_the_third_machines_numbers_are_those_of_its_cells(third, kind, mode):
    for load, cell in zip((1, 4, 16, 64), said(f"{kind}, {mode}"), strict=True):
        if cell == "n/a":
            assert (kind, mode, load) not in third
            continue
        here = third[kind, mode, load]
        base = None if mode == "baseline" else [third[kind, "baseline", load]]
        check_speeds([cell], [here], base)


@pytest.mark.parametrize("folder", sorted(path.name for path in PUBLISHED.iterdir()))
def test_every_published_folder_is_on_the_page_with_a_bundle_and_a_report(folder):
    assert f"results/published/{folder}/" in PAGE
    assert list((PUBLISHED / folder).glob(f"h200-*-{'[0-9a-f]' * 12}.tar.gz"))
    assert (PUBLISHED / folder / "report.html").is_file()


@pytest.mark.parametrize(
    "archive", sorted(PUBLISHED.glob(f"*/h200-*-{'[0-9a-f]' * 12}.tar.gz")), ids=lambda path: path.name
)
def test_every_published_bundle_is_whole_and_its_numbers_follow_from_its_rows(archive):
    found = verify(archive)
    assert found.good, found
    assert len(found.checks) == 5


def test_a_gain_at_high_load_that_is_not_deployed_says_why():
    archive = next((PUBLISHED / "h200-smollm2-vllm033").glob("h200-*.tar.gz"))
    with opened(archive) as folder:
        (path,) = folder.rglob("comparison.json")
        (answer,) = decide(Comparison.read(path)).workloads
    assert answer.sentence == "Deploy ngram for code at concurrency 1, keep it plain from 4 on."
    assert answer.why.endswith(
        " Above: c4 2.15x, undecided; c16 3.10x, undecided; "
        "c64 3.54x, faster, but 56/64 texts are the baseline's (baseline against itself 64/64); "
        "all but 1 are asked for."
    )


FOUR = "h200-smollm2-trained"


@pytest.mark.parametrize("kind", ["code", "chat", "json"])
def test_four_modes_speeds_verdicts_lengths_and_step_costs(kind):
    rows, after = table(FOUR), f"{kind}, four modes"
    base = column(rows, kind, "baseline", "p50_decode_tok_s")
    check_speeds(said("baseline", after=after), base, None)
    for mode in ("ngram", "eagle3", "draft"):
        check_speeds(said(mode, after=after), column(rows, kind, mode, "p50_decode_tok_s"), base)
        assert said(f"{mode}, verdict", after=after) == [rows[kind, load, mode]["verdict"] for load in LOADS]
    for mode in ("eagle3", "draft"):
        for load, cell in zip(LOADS, said(f"{mode}, length and step cost", after=after), strict=True):
            here = [float(rows[kind, load, mode][name]) for name in ("acceptance_length", "step_cost_ratio")]
            assert numbers(cell) == pytest.approx(here, abs=0.0051)


def test_what_the_page_concludes_from_the_four_modes():
    rows = table(FOUR)
    costs, lengths, speeds = (
        {mode: sorted(float(row[name]) for (_, _, m), row in rows.items() if m == mode) for mode in ("eagle3", "draft")}
        for name in ("step_cost_ratio", "acceptance_length", "decode_speedup")
    )
    assert "keeps 1.45 to 1.50 tokens a step" in PAGE
    assert [f"{lengths['eagle3'][place]:.2f}" for place in (0, -1)] == ["1.45", "1.50"]
    assert "Each step costs 1.2 to 1.9 plain ones" in PAGE
    assert [f"{costs['eagle3'][place]:.1f}" for place in (0, -1)] == ["1.2", "1.9"]
    assert "costs 3.3 to 5.7 plain ones" in PAGE
    assert [f"{costs['draft'][place]:.1f}" for place in (0, -1)] == ["3.3", "5.7"]
    assert "`slower` in all 12, 0.27x to 0.44x" in PAGE
    assert [f"{speeds['draft'][place]:.2f}" for place in (0, -1)] == ["0.27", "0.44"]
    assert {row["verdict"] for (_, _, mode), row in rows.items() if mode == "draft"} == {"slower"}
    assert "faster" not in {row["verdict"] for (_, _, mode), row in rows.items() if mode == "eagle3"}
    sentence = re.search(r"^\*\*.+\*\*$", (PUBLISHED / FOUR / "decision.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert f"The lab's sentence: {sentence[0]}" in PAGE


def test_two_machines_agree_on_ngram_in_all_but_the_cell_that_the_page_names():
    before, after = (next((PUBLISHED / name).glob("h200-*.tar.gz")) for name in ("h200-smollm2", FOUR))
    found = diff(before, after).cells
    apart = [(one.kind, one.load, one.mode, f"{one.decode.ratio:.2f}x") for one in found if "no diff" not in one.word]
    assert len(found) == 24
    assert apart == [("json", "c64", "ngram", "0.68x")]
    assert "in 23 of 24 cells" in PAGE
    assert "n-gram for json at 64 came out at 0.68x" in PAGE


@pytest.fixture(scope="module")
def starts():
    """Every cell of the four modes' run (`side`) and of the one after it (`alone`), by mode, kind, load and start."""
    found = {"side": [], "alone": []}
    with opened(next((PUBLISHED / FOUR).glob("h200-*.tar.gz"))) as folder:
        for path in folder.glob("results/*/sessions/*/*/*_c*.json"):
            found["side"].append(json.loads(path.read_text(encoding="utf-8")))
    with tarfile.open(PUBLISHED / FOUR / "alone.tar.gz") as archive:
        found["alone"] = [json.load(archive.extractfile(member)) for member in archive]
    return {
        place: {
            (one["mode"], one["cell"]["kind"], one["cell"]["load"]["concurrency"], one["replicate"]): one
            for one in cells
        }
        for place, cells in found.items()
    }


def test_one_at_a_time_is_neither_faster_nor_steadier_for_the_small_model(starts):
    names = list(itertools.product(("ngram", "eagle3"), ("code", "chat", "json"), (1, 4, 16, 64)))
    rates = {
        place: {name: [cells[*name, start]["summary"]["p50_decode_tok_s"] for start in (1, 2)] for name in names}
        for place, cells in starts.items()
    }
    apart = {place: [max(pair) / min(pair) - 1 for pair in found.values()] for place, found in rates.items()}
    shown = [f"{statistics.median(apart[place]):.0%}".replace("%", " %") for place in ("side", "alone")]
    assert said("how far two starts lie apart, median") == shown
    assert said("how far two starts lie apart, most") == [f"{max(apart[p]) * 100:.0f} %" for p in ("side", "alone")]
    many = [str(sum(one >= 0.1 for one in apart[place])) for place in ("side", "alone")]
    assert said("cells in which it is 10 % or more") == many
    alone, side = (statistics.geometric_mean(itertools.chain(*rates[place].values())) for place in ("alone", "side"))
    assert said("P50 decode against side by side, geometric mean") == ["1.00x", f"{alone / side:.2f}x"]


@pytest.mark.parametrize(
    ("title", "place", "start"), [("first server", "side", 1), ("second server", "side", 2), ("alone", "alone", 1)]
)
def test_a_rate_that_jumps_within_the_cell_at_a_constant_clock(starts, title, place, start):
    cell = starts[place]["baseline", "chat", 1, start]
    rates = [row["decode_tok_s"] for row in sorted(cell["rows"], key=lambda row: row["sent_s"])]
    eighths = [statistics.median(rates[i * 8 : i * 8 + 8]) for i in range(8)]
    assert [int(one) for one in said(title, after="baseline, chat, concurrency 1")] == [round(one) for one in eighths]
    readings = [one for cell in starts["side"].values() for one in cell["gpu"] if cell["mode"] == "baseline"]
    assert {one["sm_clock_mhz"] for one in readings} == {1980}
    assert not [one for one in readings if one["throttle"]]
    assert f"at most {max(one['power_w'] for one in readings):.0f} of 700 W" in PAGE


def test_a_cell_of_one_wave_is_as_short_as_the_page_says(starts):
    walls = [cell["summary"]["wall_s"] for (mode, _, load, _), cell in starts["side"].items() if load == 64]
    assert f"lasts {min(walls):.1f} to {max(walls):.1f} s" in PAGE
