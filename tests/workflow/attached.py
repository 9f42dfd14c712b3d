"""A copy of the workflow whose modes attach to a scripted endpoint: every request can be counted, no engine is needed.

Right for who runs what and how often; no number that such a run gives means anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import programs

from specdec_lab.client.scripted import DONE, Script, Seen, Step, delta, sse, usage


def answer(seen: Seen) -> Script:
    """Four words for a stream, one for the question whether it works, the model's name for a GET."""
    if seen.method == "GET":
        return Script(steps=[Step(0.0, b'{"data": [{"id": "m"}]}')], content_type="application/json")
    if not seen.json.get("stream"):
        body = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
        body |= {"usage": usage(1)["usage"]}
        return Script(steps=[Step(0.0, json.dumps(body).encode())], content_type="application/json")
    pieces = [sse(delta(content=f"w{i} ")) for i in range(4)]
    pieces += [sse(delta(finish="stop")), sse(usage(4)), DONE]
    return Script(steps=[Step(0.02 + 0.01 * i, piece) for i, piece in enumerate(pieces)])


class Project:
    """The workflow in a folder of its own."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        programs.copy(programs.LAB, folder)
        self.config: dict[str, Any] = {
            "name": "tried",
            "engine": {
                "software": "openai",
                "launcher": "attach",
                "served_model": "m",
                "base_url": base_url,
                "gpus": 0,
                "ready_timeout_s": 20,
            },
            "modes": {"baseline": {}, "other": {"speculative": {"method": "unknown"}}},
            "workload": {"requests": 3},
            "load": {"concurrency": [1]},
        }
        self.write()

    def write(self) -> None:
        """Write the config as it is now."""
        (self.folder / "lab.yaml").write_text(json.dumps(self.config), encoding="utf-8")

    @property
    def results(self) -> Path:
        """Where the results go."""
        return self.folder / "results" / "tried"

    def environment(self, folder: Path | None = None) -> dict[str, str]:
        """For programs that run in the project (or in another folder that holds a workflow)."""
        return programs.environment(folder or self.folder, SPECDEC_LOCK_DIR=str(self.folder / "locks"))

    def command(self, *options: str) -> list[str]:
        """Snakemake as a user calls it."""
        return [sys.executable, "-m", "snakemake", *options, "--configfile", "lab.yaml"]

    def snakemake(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return programs.run(self.command(*options), self.folder, self.environment())


def jobs(done: subprocess.CompletedProcess[str]) -> set[str]:
    """The jobs of a run or a dry run, by their messages; empty when there was nothing to be done."""
    assert done.returncode == 0, done.stdout + done.stderr
    return set(re.findall(r"^Job \d+: (.+)$", done.stdout + done.stderr, re.MULTILINE))
