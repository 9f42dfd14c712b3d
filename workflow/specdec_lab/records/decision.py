"""What a judgement needs to know beforehand (rules, plan) and what it ends in (decisions, routes).

Serves M7, M31, M32, B7. `config.resolved.json` holds a `Plan` under the key `plan`; the analysis reads that key and
nothing else of the file. Without the file, the plan is read off the sessions that are there, with the default rules.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Finding, Record
from .spec import CellSpec
from .verdict import Verdict, Word


class DecisionRules(Record):
    """The stated rule for a win (M7), fixed before anything runs."""

    margin: float = Field(
        default=0.05, ge=0, description="P50 decode must gain at least this share to be worth a change."
    )
    at: int | None = Field(
        default=None,
        gt=0,
        description="Concurrency that the user really runs; null: every measured load is judged alike.",
    )
    at_by_kind: dict[str, int] = Field(default={}, description="The same per workload kind, where kinds differ.")
    identical_share: float = Field(
        default=0.98,
        ge=0,
        le=1,
        description="Share of texts equal to the baseline's below which a mode is not adopted.",
    )
    noise_limit: float = Field(
        default=0.10, gt=0, description="A noise of starts, or a drift, from which on a result is unreliable (M25)."
    )
    confidence: float = Field(default=0.95, gt=0.5, lt=1, description="Of the intervals that are printed.")
    throughput_loss: float = Field(
        default=0.02,
        ge=0,
        description="Aggregate throughput at the peak load may fall by this share before a mode is refused.",
    )
    decode_share: float = Field(
        default=0.5, ge=0, le=1, description="Below this share of decode time there is little left to save (M35)."
    )
    price_per_gpu_hour: float | None = Field(
        default=None,
        ge=0,
        description="Price of one hour of `gpus_priced` GPUs, or of the machine where the servers have none (B8).",
    )
    gpus_priced: int | None = Field(
        default=None,
        ge=1,
        description="For how many GPUs that price is; null (older files): for all of the server, however many it has.",
    )
    currency: str = "USD"

    def concurrency_for(self, kind: str) -> int | None:
        """The concurrency at which this kind is decided; None: at every load."""
        return self.at_by_kind.get(kind, self.at)


class Claim(Record):
    """M39: what somebody says a method gains, kept as a claim and shown beside what was measured here."""

    mode: str = Field(description="The mode that the claim is about.")
    text: str = Field(description="The claim in its author's words: `up to 3x`.")
    speedup: float | None = Field(default=None, gt=0, description="Its number, as a ratio of decode speeds.")
    kind: str | None = Field(default=None, description="The workload it speaks of; null: any.")
    concurrency: int | None = Field(default=None, description="The concurrency it speaks of; null: any.")
    source: str = Field(description="Where it was read.")


class Expectation(Record):
    """M40: a hypothesis about which methods win on a workload, written down before measuring."""

    kind: str
    first: list[str] = Field(description="Methods to try first, best first; `off` is one of them.")
    because: str
    surprise_if: list[str] = Field(default=[], description="Methods whose clear win would ask for an explanation.")
    surprise_hint: str = ""


class PlannedMode(Record):
    """One mode as the config asks for it."""

    name: str
    against: str | None = Field(description="The baseline it is compared with; null: it is a baseline.")
    replicates: int = Field(default=2, ge=1, description="Fresh server starts.")
    placebo: bool = False
    lossy: bool = False
    method: str | None = Field(default=None, description="The speculation method in the engine's words; null: none.")
    k: int | None = Field(default=None, description="Draft length, where the method has one.")


class Sweep(Record):
    """M15, M34: modes that differ in one number only, for a curve."""

    axis: Literal["k", "context", "rate"]
    method: str = Field(description="What is swept: one curve each.")
    points: dict[str, float] = Field(
        default={}, description="axis k: mode -> K; context: kind -> tokens; rate: load label -> requests per second."
    )


class Plan(Record):
    """What was asked for, so that what is missing can be seen."""

    schema_version: Literal[1] = 1
    name: str
    rules: DecisionRules = DecisionRules()
    modes: list[PlannedMode] = Field(default=[], description="From the simplest to deploy to the most demanding.")
    cells: list[CellSpec] = Field(default=[], description="Cells that every mode should have in every replicate.")
    claims: list[Claim] = []
    expectations: list[Expectation] = []
    sweeps: list[Sweep] = []


class Candidate(Record):
    """Why one mode was or was not taken for one workload at one load."""

    mode: str
    word: Word
    adoptable: bool
    decode_speedup: float | None = None
    aggregate_gain: float | None = None
    reasons: list[Finding]


class Route(Record):
    """One line of the routing table: this workload, in this range of concurrency, goes to this mode."""

    kind: str
    from_concurrency: int
    to_concurrency: int | None = Field(description="Last concurrency that was measured for it; null: and above.")
    mode: str = Field(description="A mode's name; the baseline's name means: speculation off.")
    speculative: bool
    interactive: bool = Field(
        default=True,
        description="True: chosen for what one user feels (P50 decode); False: for what the server completes.",
    )

    @property
    def span(self) -> str:
        """The range of concurrency in words: `4`, `1 to 4`, `16 and above`."""
        if self.to_concurrency is None:
            return f"{self.from_concurrency} and above"
        if self.to_concurrency == self.from_concurrency:
            return str(self.from_concurrency)
        return f"{self.from_concurrency} to {self.to_concurrency}"


class WorkloadDecision(Record):
    """The answer for one workload kind (M32)."""

    kind: str
    baseline: str
    mode: str | None = Field(
        description="The mode to deploy; the baseline's name means: keep it plain; null: no answer."
    )
    speculative: bool = Field(description="Whether that answer is a speculative mode.")
    from_concurrency: int | None = Field(
        default=None,
        description="Lowest concurrency that the mode is for: 1, unless it was measured lower and did not pay.",
    )
    up_to: int | None = Field(default=None, description="Highest measured concurrency at which it still pays.")
    crossover: int | None = Field(
        default=None, description="Lowest measured concurrency at which it no longer pays; null: not reached."
    )
    batch_mode: str | None = Field(
        default=None, description="The answer when only aggregate throughput at the peak load counts (M31)."
    )
    ceiling: bool = Field(
        default=False, description="Acceptance was set in every mode: a study of costs, with nothing to deploy."
    )
    sentence: str
    why: str = Field(description="The numbers behind it, in one sentence.")
    verdict: Verdict
    candidates: list[Candidate] = []
    next_step: str = Field(default="", description="What would settle it, when it is not settled.")


class DynamicK(Record):
    """vLLM's `num_speculative_tokens_per_batch_size` for one method: [[from, to, K], ...], inclusive (M32)."""

    method: str
    mode: str | None = Field(default=None, description="The mode whose options it goes with; null in older files.")
    kind: str | None = Field(default=None, description="The workload it was measured on; null: all agree.")
    schedule: list[tuple[int, int, int]]
    caution: str = ""


class Decision(Record):
    """`decision.json`."""

    schema_version: Literal[1] = 1
    name: str
    rules: DecisionRules
    workloads: list[WorkloadDecision]
    routes: list[Route] = []
    dynamic_k: list[DynamicK] = []
    serve: dict[str, list[str]] = Field(
        default={},
        description="Mode -> command that serves it in production, as argv; `$NAME` is a variable.",
    )
    findings: list[Finding] = []
