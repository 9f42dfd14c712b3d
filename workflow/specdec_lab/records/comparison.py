"""`comparison.json`: every number behind the table, each beside the noise it must beat.

Serves M28-M31, M33, B1, B2, B4. Ratios are mode / baseline, so 1.25 means 25 % more; missing is null. `load` is the
label of `records.spec.Load` (c4, r2.5).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Finding, Record
from .cell import Acceptance
from .decision import Claim, Plan
from .session import Failure
from .spec import SessionSpec
from .stack import Stack
from .verdict import Verdict


class Gain(Record):
    """One quantity of a mode against its baseline, with the server start as the unit (B1).

    ratio = exp(mean over the mode's starts of log x - mean over the baseline's starts of log x).
    """

    ratio: float | None = None
    low: float | None = Field(default=None, description="Interval of the ratio; null when it is refused.")
    high: float | None = None
    confidence: float | None = None
    refused: str | None = Field(
        default=None, description="Why there is no interval: one start cannot show its own spread."
    )
    floor: float | None = Field(
        default=None, description="Noise floor: how far two starts of the baseline typically differ (0.04 = 4 %)."
    )
    starts: int = 0
    baseline_starts: int = 0
    between_start_sd: float | None = Field(
        default=None, description="Pooled standard deviation of log x between starts."
    )
    degrees: float | None = Field(default=None, description="Degrees of freedom behind that standard deviation.")
    smallest_adoptable: float | None = Field(
        default=None, description="The smallest ratio that this many starts at this noise could have shown."
    )
    per_start: list[float] = Field(default=[], description="Each start of the mode / the baseline's mean.")


class Paired(Record):
    """The same prompts in both modes (D9). Each rule is named; swapping the modes gives exactly the reciprocal."""

    prompts: int = Field(description="Prompts with a decode rate in every start of both.")
    geometric: float | None = Field(default=None, description="Geometric mean over prompts of the decode rates' ratio.")
    total_time: float | None = Field(
        default=None,
        description="Decode time of all tokens, baseline / mode, per token; long answers weigh more.",
    )
    slower: int = Field(default=0, description="Prompts whose decode rate fell.")
    length_differs: int = Field(default=0, description="Prompts whose completion tokens differ from the baseline's.")


Channel = Literal["answer", "tool_calls", "reasoning"]


class Difference(Record):
    """One prompt whose text is not the baseline's."""

    id: str
    channel: Channel
    at_char: int = Field(description="First character that differs, from 0.")
    length: int
    baseline_length: int
    finish_reason: str | None = None
    baseline_finish_reason: str | None = None
    prefix: bool = Field(default=False, description="One text is the beginning of the other.")
    degenerate: str | None = Field(default=None, description="loop | truncated | empty, where the baseline's is not.")
    near_tie: bool | None = Field(
        default=None, description="From the probe: the two next tokens are almost equally likely."
    )
    gap: float | None = Field(default=None, description="From the probe: difference of their log probabilities.")
    excerpt: str = ""
    baseline_excerpt: str = ""


IdentityWord = Literal["same", "within own variation", "undecided", "differs", "not judged"]


class Identity(Record):
    """M5, M33, B2: texts equal to the baseline's, judged against how often the baseline equals itself."""

    word: IdentityWord
    n: int = Field(description="Prompts answered in both, with a text in at least one.")
    identical: int
    control_n: int | None = Field(default=None, description="Prompts of the baseline pair; null: no second start.")
    control_identical: int | None = None
    replicate: int | None = Field(
        default=None, description="The mode's start that is shown: the one that differs most."
    )
    baseline_replicate: int | None = Field(default=None, description="The baseline's start that it is compared with.")
    differing_share: float | None = Field(
        default=None,
        description="Differing texts, averaged over all pairs of a start of the mode and one of the baseline.",
    )
    control_differing_share: float | None = Field(
        default=None, description="The same over all pairs of two starts of the baseline."
    )
    reasoning_n: int | None = Field(default=None, description="Prompts with a reasoning text; null: none has.")
    reasoning_identical: int | None = None
    tool_calls_n: int | None = Field(default=None, description="Prompts with a tool call; null: none has.")
    tool_calls_identical: int | None = None
    silent: int = Field(default=0, description="Prompts without a text in either, which are left out of n.")
    median_at_char: float | None = Field(default=None, description="Median place of the first difference.")
    earliest_at_char: int | None = None
    truncated: int = Field(default=0, description="Texts that are a strict prefix of the baseline's.")
    degenerate: int = 0
    finish_differs: int = Field(default=0, description="Prompts with another finish reason, whatever their texts.")
    finish_only_differs: int = Field(
        default=0,
        description="Equal texts with another finish reason (stop, length), in the mode's start with most of them.",
    )
    control_finish_only_differs: int | None = Field(
        default=None, description="The same of the baseline against itself; null: no second start."
    )
    differences: list[Difference] = Field(default=[], description="At most 20, the earliest first.")
    reasons: list[Finding] = []


class Theory(Record):
    """M29, M30: what acceptance promises, beside what was measured."""

    k: int | None = None
    expected_length: float | None = Field(default=None, description="(1 - a^(k+1)) / (1 - a) at the measured rate a.")
    measured_length: float | None = None
    ceiling: float | None = Field(
        default=None, description="expected_length / (1 + k * cost of one draft step): the speedup that could be had."
    )
    draft_cost: float | None = Field(
        default=None, description="Cost of one draft step as a share of a target step, assumed."
    )
    step_cost_ratio: float | None = Field(
        default=None, description="Tokens per step / decode speedup: one speculative step costs this many plain ones."
    )
    break_even_length: float | None = Field(
        default=None, description="Tokens per step needed for a speedup of 1 at that step cost (equal to it)."
    )
    coverage: float | None = Field(default=None, description="Share of decode steps that carried a draft.")
    tokens_per_step: float | None = Field(
        default=None, description="Tokens per target step over all steps, drafted or not; bounds the speedup."
    )
    diagnosis: list[Finding] = []


class CellResult(Record):
    """One row of the table: one kind under one load in one mode, over its server starts."""

    kind: str
    load: str
    concurrency: int | None = None
    rate: float | None = None
    mode: str
    against: str | None = Field(description="null: this is a baseline.")
    status: Literal["measured", "partial", "failed", "missing"]
    starts: int = Field(default=0, description="Server starts that have this cell.")
    requests: int = 0
    failed: int = 0
    agg_tok_s: float | None = Field(default=None, description="M1, geometric mean over starts.")
    p50_decode_tok_s: float | None = Field(default=None, description="M2, geometric mean over starts.")
    p50_ttft_s: float | None = Field(default=None, description="M3, median over starts.")
    p95_ttft_s: float | None = None
    p50_e2e_s: float | None = None
    mean_completion_tokens: float | None = None
    decode_share: float | None = Field(default=None, description="M35: decode time / request time.")
    decode_n: int = Field(default=0, description="Requests behind p50_decode_tok_s, over all starts.")
    energy_j_per_token: float | None = None
    cost_per_million: float | None = Field(default=None, description="B8: completion tokens, in the rules' currency.")
    acceptance: Acceptance | None = Field(default=None, description="M4, counters of all starts added.")
    acceptance_doubts: list[str] = Field(
        default=[], description="Codes of the findings that throw doubt on the acceptance; empty: none does."
    )
    decode: Gain | None = Field(default=None, description="P50 decode speedup: what one user feels (M31).")
    aggregate: Gain | None = Field(default=None, description="Gain in tokens per second of the whole cell (M31).")
    ttft: Gain | None = Field(default=None, description="P50 TTFT, mode / baseline: above 1 is later.")
    per_prompt: Gain | None = Field(default=None, description="Geometric mean over prompts of decode rates, per start.")
    paired: Paired | None = None
    identity: Identity | None = None
    theory: Theory | None = None
    findings: list[Finding] = Field(
        default=[], description="B4: plausibility, and everything else to know about this row."
    )
    verdict: Verdict | None = Field(default=None, description="null for a baseline.")


class Floor(Record):
    """M25: the baseline against itself in one cell."""

    baseline: str
    kind: str
    load: str
    starts: int
    decode: float | None = Field(
        default=None, description="Spread between starts of P50 decode: fastest / slowest - 1, as a share."
    )
    aggregate: float | None = Field(default=None, description="The same of aggregate tok/s.")
    identical: int | None = None
    identical_n: int | None = None
    drift: float | None = Field(default=None, description="Closing / opening start - 1 of P50 decode.")
    findings: list[Finding] = []


class Start(Record):
    """One server start as it was run: order, time, heat (B1)."""

    mode: str
    replicate: int
    server: str
    started_at: str
    cells: int
    sm_clock_mhz: float | None = Field(default=None, description="Median while cells ran.")
    temperature_c: float | None = None
    power_w: float | None = None
    throttle: list[str] = []


class FailedMode(Record):
    """A mode that could not be measured, in whole or in part."""

    mode: str
    replicates: list[int]
    failure: Failure | None = Field(default=None, description="The first failure; null: no cell and no reason on file.")


class CurvePoint(Record):
    """One measured point of a sweep."""

    x: float
    mode: str
    kind: str
    load: str
    p50_decode_tok_s: float | None = None
    decode_speedup: float | None = None
    agg_tok_s: float | None = None
    aggregate_gain: float | None = None
    acceptance_length: float | None = None


class Curve(Record):
    """One line of a sweep's plot (M15, M34)."""

    axis: Literal["k", "context", "rate"]
    method: str
    kind: str | None = None
    load: str | None = None
    points: list[CurvePoint]
    best_x: float | None = Field(default=None, description="Smallest x within the noise of the best P50 decode.")


class Reference(Record):
    """A published result to hold a measured one against (M39)."""

    model: str
    engine: str
    hardware: str
    method: str
    workload: str
    concurrency: int | None = None
    k: int | None = None
    speedup_low: float
    speedup_high: float
    acceptance_length: float | None = None
    source: str


class ReferenceMatch(Record):
    """Whether a measured row looks like the published one."""

    mode: str
    kind: str
    load: str
    measured: float
    reference: Reference
    looks_alike: bool
    remark: str


class ClaimMatch(Record):
    """A claim beside what was measured for it."""

    claim: Claim
    measured_best: float | None = None
    kind: str | None = None
    load: str | None = None
    remark: str


class Surprise(Record):
    """M40: a result that the expectation did not foresee."""

    kind: str
    mode: str
    expected: list[str]
    message: str
    hint: str = ""


class Confounder(Record):
    """B3: something besides speculation that differs between a mode's servers and its baseline's."""

    mode: str
    fact: str
    baseline: str
    value: str
    declared: bool = Field(default=False, description="True: an argument in the config; False: it came by itself.")
    meaning: str = Field(default="", description="Why it may matter.")


class Comparison(Record):
    """Everything that the tables, the decision and the report are made of."""

    schema_version: Literal[1] = 1
    name: str
    plan: Plan
    cells: list[CellResult]
    floors: list[Floor] = []
    starts: list[Start] = Field(default=[], description="In the order they ran.")
    failed: list[FailedMode] = []
    confounders: list[Confounder] = []
    curves: list[Curve] = []
    references: list[ReferenceMatch] = []
    claims: list[ClaimMatch] = []
    surprises: list[Surprise] = []
    findings: list[Finding] = []
    stack: Stack | None = Field(default=None, description="Of the first baseline cell.")
    specs: dict[str, SessionSpec] = Field(default={}, description="Mode -> what was served, for what can be deployed.")
