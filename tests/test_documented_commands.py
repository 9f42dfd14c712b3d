"""Every command that README and docs name is run: here, in a short form here, or by the test that is named for it.

A command that the documentation gains must find its place in one of the four tables, and one that it loses must leave
them. Where a line here is not the one in the documentation, it has the same program, subcommand and options, with a
file that exists in place of one that the reader has.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer

sys.path.insert(0, str(Path(__file__).parent / "workflow"))
import programs

from specdec_lab import cli
from specdec_lab.bundle import archive
from specdec_lab.client.scripted import DONE, Script, ScriptedServer, Seen, Step, delta, paced, sse, usage
from specdec_lab.records.cell import Cell

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "config" / "README.md"]
PAGES += [*sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "containers").glob("*/README.md"))]
PUBLISHED = "results/published/h200-smollm2/h200-smollm2-51bc444c6d06.tar.gz"
JUDGED = "results/judged"
UPGRADE = (
    "specdec diff results/published/h200-smollm2-vllm024/h200-smollm2-vllm024-a77c9373676e.tar.gz "
    "results/published/h200-smollm2-vllm033/h200-smollm2-vllm033-8daf2dfb237c.tar.gz"
)
ENDPOINT = "http://127.0.0.1:8000"
SHELLS = {"", "sh", "bash", "shell", "console"}
PROGRAMS = {"specdec", "snakemake", "make", "python", "python3", "promtool", "sha256sum", "kill", "docker", "pip",
            "nvidia-smi", "nvidia-ctk", "pack.py", "unpack.py", "run.sh"}  # fmt: skip
"""What begins a command within a sentence; a program's name alone is none."""

H200 = "--resources gpu=1 --configfile config/examples/h200-smollm2.yaml"
CEILING = "--resources gpu=1 --configfile config/examples/h200-llama8b-ceiling.yaml"
OFFLINE = "python3 containers/offline/pack.py"
DECIDES = "specdec diff before.tar.gz results/llama31-8b --fail-on slower:5% --fail-on decision"
BENCH = f"specdec bench --base-url {ENDPOINT} --prompts traffic.jsonl --model my-model --concurrency 1 --out cell.json"

RUN = {
    "specdec doctor": "specdec doctor",
    "specdec doctor --config": "specdec doctor --config config/demo.yaml",
    "specdec doctor --config FILE": "specdec doctor --config config/demo.yaml",
    "specdec doctor --log server.log": "specdec doctor --log server.log",
    "specdec verify": f"specdec verify {PUBLISHED}",
    "specdec verify BUNDLE": f"specdec verify {PUBLISHED}",
    "specdec verify demo-0123456789ab.tar.gz": f"specdec verify {PUBLISHED}",
    "specdec diff A B": f"specdec diff {PUBLISHED} {JUDGED}",
    "specdec diff before.tar.gz after.tar.gz": f"specdec diff {PUBLISHED} {PUBLISHED}",
    DECIDES: f"specdec diff {PUBLISHED} {JUDGED} --fail-on slower:5% --fail-on decision",
    "specdec compare": f"specdec compare {JUDGED}",
    "specdec pack results/<name>": f"specdec pack {JUDGED}",
    f"specdec probe results/<name> --base-url {ENDPOINT}": f"specdec probe {JUDGED} --base-url {ENDPOINT}",
    "sha256sum -c": "cd unpacked/* && sha256sum -c MANIFEST.sha256",
    "snakemake -n": "snakemake -n",
    "snakemake --unlock": "snakemake --unlock",
    BENCH: BENCH,
    UPGRADE: UPGRADE,
}
"""Command -> the line that is run here."""

GPU = "it measures on a GPU; what it would run is planned"
SHORT = {
    "snakemake --cores 1 --resources gpu=1": ("snakemake -n --cores 1 --resources gpu=1", GPU),
    "snakemake --cores 1 --resources gpu=1 --configfile config/demo.yaml mine.yaml": (
        "snakemake -n --cores 1 --resources gpu=1 --configfile config/demo.yaml mine.yaml",
        "it takes minutes; tests/workflow/test_demo.py runs the demo's config with a second file upon it",
    ),
    "snakemake --cores 16 --resources gpu=2": ("snakemake -n --cores 16 --resources gpu=2", GPU),
    "snakemake --workflow-profile profiles/slurm --configfile config/config.yaml": (
        "snakemake -n --workflow-profile profiles/slurm --configfile config/config.yaml",
        "it needs a cluster with GPUs; tests/slurm runs the jobs where Slurm is installed",
    ),
    f"containers/offline/run.sh ROOT 0.33.0 {H200}": (f"containers/offline/run.sh ROOT 0.33.0 {H200} -n", GPU),
    f"containers/offline/run.sh ROOT 0.33.0 {CEILING}": (f"containers/offline/run.sh ROOT 0.33.0 {CEILING} -n", GPU),
    f"/tmp/lab/lab/containers/offline/run.sh /tmp/lab 0.33.0 {H200}": (
        f"containers/offline/run.sh ROOT 0.33.0 {H200} -n",
        GPU,
    ),
    "specdec selftest": (
        "specdec selftest --quick --json",
        "it takes a minute, and its limits need a machine that does nothing else; tests/client/test_exactness.py",
    ),
    "specdec selftest --quick": ("specdec selftest --quick --json", "its limits need a machine that does nothing else"),
    "python benchmarks/clients.py": ("python benchmarks/clients.py --help", "it takes minutes on a quiet machine"),
    f"{OFFLINE} lab parts": (f"{OFFLINE} --help", "it downloads 140 MB"),
    f"{OFFLINE} vllm parts --release 0.33.0 --add SmolLM2-135M-Instruct.Q4_1.gguf": (
        f"{OFFLINE} --help",
        "it downloads 800 MB",
    ),
    "pack.py lab DEST": (f"{OFFLINE} --help", "it downloads 140 MB"),
    "pack.py vllm DEST --release 0.33.0": (f"{OFFLINE} --help", "it downloads 800 MB"),
}
"""Command -> the short form that is run here, and why not all of it."""

ELSEWHERE = {
    "make demo": "tests/workflow/test_demo.py::test_the_table_has_a_row_per_kind_load_and_mode",
    "make generated": "tests/config/test_reference.py::test_the_reference_page_is_in_step_with_the_models",
    "make pictures": "tests/browser/test_report.py::test_the_pictures_of_the_docs_can_be_taken",
    "make trust": "tests/analysis/test_trust.py::test_a_missed_bar_is_said",
    "promtool test rules containers/monitoring/rules.test.yml": (
        "tests/monitoring/test_monitoring.py::test_m38_the_rules_are_valid_and_their_own_tests_pass"
    ),
    "kill -TERM": (
        "tests/workflow/test_killed.py::"
        "test_e7_a_run_killed_at_random_moments_ends_with_the_same_cells_and_nothing_measured_twice"
    ),
}
"""Command -> the test that goes the way it goes."""

NOT_HERE = {
    "make test": "it runs this test",
    "make lint types": "the linter's and the type checker's own run, which comes before the tests in .ci/run",
    "make format": "it rewrites the sources",
    "make setup": "it installs from a network; every test needs it to have run",
    "source .venv/bin/activate": "it needs the environment of `make setup`; the lines after it are run in it",
    "pip install -e .[slurm]": "it installs from a network; the same plug-in is among the developer's packages",
    "cd /tmp/lab/lab && SPECDEC_CACHE_DIR=/tmp/lab/cache ../env/lab/bin/python3 containers/offline/shapes.py": (
        "it stands in what unpack.py made; tests/containers/test_offline.py"
    ),
    "python3 containers/offline/train.py /tmp/lab/cache/models/SmolLM2-135M-Instruct.Q4_1-safetensors-* "
    "/tmp/lab/cache/models": "it needs torch, which the lab does not; docs/results.md says where it was run",
    "python3 unpack.py parts /tmp/lab": "it unpacks what pack.py downloaded; tests/containers/test_offline.py",
    "RESULTS=$PWD/results/demo docker compose -f containers/monitoring/compose.yaml up": (
        "it needs Docker and images from a network; tests/monitoring runs the same files in a Prometheus of its own"
    ),
    "kill -9": "it is what not to do; tests/workflow/test_killed.py kills a run so",
    "nvidia-ctk runtime configure --runtime=docker": "it needs an NVIDIA driver and changes the machine",
    "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv": "it needs an NVIDIA driver",
    "python3 -m sglang.launch_server": "it is the server of an engine that runs on a GPU",
}
"""Command -> why no test can run it on any machine."""

TABLES = (RUN, SHORT, ELSEWHERE, NOT_HERE)


def fenced(text: str) -> Iterator[str]:
    """The commands of the shell blocks, continued lines joined, comments left out."""
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language in SHELLS:
            for line in block.replace("\\\n", " ").splitlines():
                command = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
                if command:
                    yield command


def spoken(text: str) -> Iterator[str]:
    """The commands that stand in sentences."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`]+)`", prose):
        words = code.split()
        if len(words) > 1 and words[0] in PROGRAMS:
            yield " ".join(words)


def documented() -> set[str]:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    return {command for text in texts for command in (*fenced(text), *spoken(text))}


def flags(command: str) -> set[str]:
    return {word.partition("=")[0] for word in shlex.split(command) if re.match(r"--\w", word)}


def test_every_command_has_its_place_and_every_place_its_command() -> None:
    placed = [command for table in TABLES for command in table]
    assert len(placed) == len(set(placed)), "a command stands in two tables"
    assert documented() - set(placed) == set(), "documented, and in no table"
    assert set(placed) - documented() == set(), "in a table, and no longer documented"


def test_what_is_run_here_is_the_command_that_is_documented() -> None:
    for command, line in [*RUN.items(), *((command, short) for command, (short, _) in SHORT.items())]:
        assert Path(shlex.split(command)[0]).name in {Path(word).name for word in shlex.split(line)}, line
        assert "--help" in line or "selftest" in line or flags(command) <= flags(line), line


def test_the_tests_that_are_named_exist() -> None:
    for named in ELSEWHERE.values():
        path, _, name = named.partition("::")
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), named
    for reason in [*NOT_HERE.values(), *(why for _, why in SHORT.values())]:
        for path in re.findall(r"tests/[\w/.]+\w", reason):
            assert (ROOT / path).exists(), path


def test_every_target_of_make_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    asked = {command.split()[1] for command in documented() if command.startswith("make ")}
    assert asked
    assert asked <= targets


@pytest.mark.parametrize("command", sorted(c for c in documented() if c.startswith("specdec ")))
def test_every_line_of_specdec_parses(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["specdec"])
    name, *words = shlex.split(command)[1:]
    subcommand = typer.main.get_command(cli.build()).commands[name]  # type: ignore[attr-defined]
    known = {option for parameter in subcommand.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert flags(command) <= known
    complete = not command.endswith("--config") and (words or not any(p.required for p in subcommand.params))
    if complete:
        subcommand.make_context(name, list(words))


@dataclass
class Lab:
    """A copy of the repository with results, traffic and an endpoint, as a reader of the documentation has them."""

    folder: Path
    root: Path
    url: str

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        line = re.sub(r"\bROOT\b", shlex.quote(str(self.root)), line.replace(ENDPOINT, self.url))
        environment = programs.environment(
            self.folder,
            PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            SPECDEC_CACHE_DIR=str(self.root / "cache"),
        )
        return programs.run(["bash", "-c", line], self.folder, environment, timeout_s=120)


def answer(seen: Seen) -> Script:
    """A stream of two chunks; for the questions of `specdec probe` a model's name, and two tokens nearly as likely."""
    if seen.method == "GET":
        models = json.dumps({"data": [{"id": "m"}]}).encode()
        return (
            Script([Step(0, models)], content_type="application/json") if "models" in seen.path else Script(status=404)
        )
    if not seen.json.get("stream"):
        listed = [{"token": "a", "logprob": -0.69}, {"token": "b", "logprob": -0.71}]
        said = {"choices": [{"logprobs": {"content": [{"token": "a", "top_logprobs": listed}]}}]}
        return Script([Step(0, json.dumps(said).encode())], content_type="application/json")
    return paced([sse(delta(content="a")), sse(delta(finish="stop")), sse(usage(2)), DONE])


def block(language: str) -> str:
    """The only block of this language in README."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGES[0].read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("root")
    folder = root / "lab"
    folder.mkdir()
    programs.copy((*programs.LAB, "config", "containers", "benchmarks", "results/published"), folder)
    programs.copy(("Makefile", "README.md", "pyproject.toml", "requirements.lock", "LICENSE"), folder)
    (folder / "unpacked").mkdir()
    bundle = archive.unpack(folder / PUBLISHED, folder / "unpacked")
    shutil.copytree(bundle / "results" / "h200-smollm2", folder / JUDGED)
    (folder / "mine.yaml").write_text(block("yaml"), encoding="utf-8")
    row = json.loads(block("json"))
    rows = [json.dumps({**row, "id": f"t{number}"}) for number in range(4)]
    (folder / "traffic.jsonl").write_text("\n".join(rows), encoding="utf-8")
    shutil.copy(ROOT / "tests" / "fixtures" / "logs" / "vllm_port_in_use.log", folder / "server.log")
    for text in (folder / "config" / "examples").glob("h200-*.yaml"):
        for name in re.findall(r"\$SPECDEC_CACHE_DIR/(models/[\w.-]+)", text.read_text(encoding="utf-8")):
            (root / "cache" / name).mkdir(parents=True, exist_ok=True)
            (root / "cache" / name / "config.json").write_text("{}", encoding="utf-8")
    with ScriptedServer(answer) as server:
        made = Lab(folder, root, server.base_url)
        done = made.run("python3 containers/offline/prompts.py build/prompts-64.jsonl 64")
        assert done.returncode == 0, done.stderr
        yield made


def planned(done: subprocess.CompletedProcess[str]) -> None:
    assert re.search(r"^session +\d+$", done.stdout + done.stderr, re.MULTILINE)


def proved(done: subprocess.CompletedProcess[str]) -> None:
    assert json.loads(done.stdout)


def explained(done: subprocess.CompletedProcess[str]) -> None:
    assert "the port is in use" in done.stdout


def looked(done: subprocess.CompletedProcess[str]) -> None:
    assert "config/config.yaml (the default" in done.stdout


MAY_FAIL: dict[str, Callable[[subprocess.CompletedProcess[str]], None]] = {
    "specdec doctor": looked,
    "specdec doctor --log server.log": explained,
    "specdec selftest --quick --json": proved,
}
"""Lines whose exit code is 1 when they found something; what they say is looked at instead."""


@pytest.mark.workflow
@pytest.mark.slow
@pytest.mark.parametrize("line", sorted({*RUN.values(), *(short for short, _ in SHORT.values())}))
def test_the_commands_work_as_written(lab: Lab, line: str) -> None:
    done = lab.run(line)
    if line in MAY_FAIL:
        MAY_FAIL[line](done)
        return
    assert done.returncode == 0, done.stdout + done.stderr
    if " -n" in line:
        planned(done)
    if "--help" in line:
        asked = [command for command, (short, _) in SHORT.items() if short == line]
        assert all(flag in done.stdout for command in asked for flag in flags(command))
    if line.startswith("specdec probe"):
        assert (lab.folder / JUDGED / "probe.json").exists()
    if line == BENCH:
        assert Cell.read(lab.folder / "cell.json").summary.failed == 0


CONFIGS = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "config").rglob("*.yaml"))
DRY = " ".join(short for short, _ in SHORT.values())


@pytest.mark.workflow
@pytest.mark.slow
@pytest.mark.parametrize("config", [config for config in CONFIGS if config not in DRY])
def test_a_config_that_no_command_names_is_planned_too(lab: Lab, config: str) -> None:
    done = lab.run(f"snakemake -n --cores 1 --resources gpu=1 --configfile {config}")
    assert done.returncode == 0, done.stdout + done.stderr
    planned(done)
