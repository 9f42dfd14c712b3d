"""What is asked of one server session: the canonical spec that config resolves to and that keys every cell.

Nothing volatile may enter here: no time, no port, no path of one machine, no git revision.
"""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, JsonValue

from .base import Record

Scalar = bool | int | float | str | None


class CheckpointSpec(Record):
    """Where a checkpoint comes from, pinned. Exactly one source is given."""

    hub: str | None = Field(default=None, description="Hugging Face repository, `owner/name`.")
    revision: str | None = Field(default=None, description="Commit of the hub repository.")
    path: str | None = Field(default=None, description="A local file or folder.")
    bundled: str | None = Field(default=None, description="A model that comes from a package (`smollm2-135m-q4_1`).")
    files: list[str] = Field(default=[], description="Patterns of the files to fetch; empty means all that are needed.")
    gated: bool = Field(default=False, description="Whether the hub asks for a token and an accepted licence.")


DRAFT_LENGTHS: dict[str, int] = {
    "num-speculative-tokens": 0,
    "draft-n-max": 0,
    "draft-max": 0,
    "ngram-simple-size-m": 0,
    "ngram-map-k-size-m": 0,
    "ngram-map-k4v-size-m": 0,
    "ngram-mod-n-max": 0,
    "num-steps": 0,
    "num-draft-tokens": 1,
}
"""What vLLM and NIM, llama.cpp and SGLang call K, and how much more than K the option holds; the first that is given
counts. SGLang's num-draft-tokens is the window that the target checks: the drafts and the token before them."""
LOOKUP = ("ngram", "suffix", "lookup")
"""How the names of methods begin that look their drafts up in the text instead of running a model."""
_PREFIX = re.compile(r"^-*(spec|speculative)-|^-+")


def _plain(option: str) -> str:
    return _PREFIX.sub("", option.replace("_", "-"))


def looks_up(method: str | None) -> bool:
    """Whether a method only looks its drafts up; of several side by side (`ngram-mod,draft-simple`) all must."""
    return method is not None and all(part.strip().lower().startswith(LOOKUP) for part in method.split(","))


class ServerSpec(Record):
    """One server as it is to be started: the engine, how it is launched, its flags, its speculation."""

    engine: Literal["vllm", "llama_cpp", "sglang", "nim", "openai"]
    version: str | None = Field(default=None, description="The version that the server must report; null: any.")
    launcher: Literal["docker", "process", "attach"]
    image: str | None = None
    image_digest: str | None = None
    command: list[str] | None = Field(default=None, description="process: the program before the engine's flags.")
    base_url: str | None = Field(default=None, description="attach: a running server.")
    served_model: str | None = Field(default=None, description="Model name in requests; null: the engine's default.")
    args: dict[str, JsonValue] = Field(default={}, description="Server flags without dashes, the same for all modes.")
    env: dict[str, str] = {}
    speculative: dict[str, JsonValue] | None = Field(
        default=None, description="The method and its options in the engine's own words; null: no speculation."
    )
    gpus: int = Field(default=1, description="GPUs this server needs (its tensor-parallel size); 0 on a CPU.")
    ready_timeout_s: float = 900.0
    stop_timeout_s: float = 30.0

    @property
    def method(self) -> str | None:
        """The speculation method in the engine's words; None for a server without speculation."""
        return None if self.speculative is None else str(self.speculative.get("method", "unnamed"))

    @property
    def draft_length(self) -> int | None:
        """K, the most tokens that a step proposes in a row; None where the spec does not say it."""
        given = {_plain(name): value for name, value in (self.speculative or {}).items()}
        for name, more in DRAFT_LENGTHS.items():
            value = given.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > more:
                return value - more
        return None

    @property
    def apart_from_draft_length(self) -> ServerSpec:
        """The same server without K: of two modes of one draft-length sweep these are equal."""
        rest = {name: value for name, value in (self.speculative or {}).items() if _plain(name) not in DRAFT_LENGTHS}
        return self.model_copy(update={"speculative": rest or None})


class Load(Record):
    """How requests are offered. Closed loop: exactly `concurrency` in flight. Open loop: Poisson arrivals at `rate`."""

    concurrency: int | None = None
    rate: float | None = Field(default=None, description="Requests per second.")
    seed: int = Field(default=0, description="Seed of the arrival times (open loop).")

    @property
    def label(self) -> str:
        """Short name used in file names and tables: c4 or r2.5."""
        return f"c{self.concurrency}" if self.rate is None else f"r{self.rate:g}"


class Deadlines(Record):
    """Limits that bound every request and so every cell (seconds)."""

    total_s: float = 300.0
    first_byte_s: float = 120.0
    idle_s: float = 60.0
    abort_after_failures: int = Field(default=8, description="Failures in a row after which the cell is aborted.")


class Objective(Record):
    """A service objective for goodput: a request is good if it meets each limit given."""

    ttft_s: float | None = None
    tpot_s: float | None = None


RESERVED = ("model", "messages", "stream")
"""Fields of a request's body that the client sets itself and no extra may replace."""


class Sampling(Record):
    """What every request body carries, in every mode. Identity is judged at temperature 0 only (M41)."""

    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    extra: dict[str, JsonValue] = Field(default={}, description="Further body fields, e.g. chat_template_kwargs.")


class CellSpec(Record):
    """One cell of the matrix."""

    kind: str
    load: Load
    requests: int | None = Field(default=None, description="Prompts of this kind per cell; null: all of them.")
    warmup: int = Field(description="Warm-up requests, not recorded, at the cell's own load.")
    max_tokens: int | None = Field(default=None, description="Caps the prompts' own max_tokens; null: as they say.")
    ignore_eos: bool = False

    @property
    def name(self) -> str:
        """File stem of the cell: code_c4."""
        return f"{self.kind}_{self.load.label}"


class SessionSpec(Record):
    """One mode's server session: same for each replicate."""

    server: ServerSpec
    checkpoints: dict[str, CheckpointSpec] = Field(description="By role: target, draft, head.")
    against: str | None = Field(description="The baseline mode that this one is compared with; null: it is a baseline.")
    lossy: bool = Field(default=False, description="Verification that may change the text (M18).")
    placebo: bool = Field(default=False, description="The baseline's own arguments under another name.")
    sampling: Sampling = Sampling()
    deadlines: Deadlines = Deadlines()
    objective: Objective = Objective()
