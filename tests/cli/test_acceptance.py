"""`specdec acceptance`: JSON on stdout, remarks on stderr, exit code by validity."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).parent.parent / "fixtures" / "metrics"


def specdec(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = "from specdec_lab.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, "acceptance", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "200"},
    )


def test_the_window_is_printed_as_json_with_its_formulas() -> None:
    done = specdec(FIXTURES / "llama_cpp_ngram_before.prom", FIXTURES / "llama_cpp_ngram_after.prom", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(done.stdout)
    assert (answer["engine"], answer["status"], answer["drafts"]) == ("llama_cpp", "measured", 4)
    assert answer["acceptance_length"] == 2.5
    assert answer["formulas"]["acceptance_rate"].startswith("accepted tokens /")


def test_an_invalid_window_is_told_and_fails(tmp_path: Path) -> None:
    done = specdec(FIXTURES / "llama_cpp_ngram_after.prom", FIXTURES / "llama_cpp_ngram_before.prom")
    assert done.returncode == 1
    assert json.loads(done.stdout)["status"] == "invalid"
    assert "restarted" in done.stderr


def test_a_baseline_is_not_asked_for_speculation() -> None:
    scrape = FIXTURES / "vllm_0.32_base.prom"
    assert json.loads(specdec(scrape, scrape, "--baseline").stdout)["status"] == "not_applicable"
    absent = specdec(scrape, scrape)
    assert (absent.returncode, json.loads(absent.stdout)["status"]) == (1, "absent")
    assert "seems not enabled" in absent.stderr


def test_unknown_engines_and_missing_files_are_user_errors(tmp_path: Path) -> None:
    scrape = FIXTURES / "vllm_0.32_base.prom"
    unknown = specdec(scrape, scrape, "--engine", "vlm")
    assert unknown.returncode == 1
    assert "vllm, llama_cpp, sglang, nim" in unknown.stderr
    missing = specdec(scrape, tmp_path / "no.prom")
    assert missing.returncode == 1
    assert "no.prom" in missing.stderr
    assert "Traceback" not in missing.stderr
