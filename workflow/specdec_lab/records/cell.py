"""One cell: one workload kind under one load on one server. Raw rows, what they add up to, and the server's counters.

Serves M1-M6 and M22. Times are seconds; those of a row count from the moment its request was sent.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from .base import Finding, Record
from .spec import CellSpec, SessionSpec
from .stack import Stack

SCHEMA_VERSION = 1


class Row(Record):
    """One request, raw. Every number may be missing (null); none is ever replaced by 0."""

    id: str = Field(description="The prompt's id.")
    kind: str = Field(description="The prompt's workload kind.")
    status: Literal["ok", "failed"]
    reason: str | None = Field(
        default=None,
        description="Why it failed, as one word from the client's closed list (http_429, deadline_total, ...).",
    )
    message: str | None = Field(default=None, description="The server's own words, or the error's, when it failed.")
    notes: list[str] = Field(default=[], description="Remarks on a request that still counts (no_done, buffered, ...).")
    sent_s: float | None = Field(default=None, description="When it was sent, from the start of the cell.")
    scheduled_s: float | None = Field(
        default=None, description="Open loop: when it was due, from the start of the cell."
    )
    prompt_tokens: int | None = Field(default=None, description="usage.prompt_tokens as the server counts them.")
    cached_tokens: int | None = Field(default=None, description="Prompt tokens the server took from its cache.")
    completion_tokens: int | None = Field(default=None, description="usage.completion_tokens (M6: never chunks).")
    finish_reason: str | None = None
    ttft_s: float | None = Field(default=None, description="Sent -> first generated token of any channel.")
    first_answer_s: float | None = Field(default=None, description="Sent -> first token of the answer channel.")
    e2e_s: float | None = Field(default=None, description="Sent -> last token (not the usage chunk, not the close).")
    decode_tok_s: float | None = Field(
        default=None, description="Tokens after the first arrival / (last arrival - first arrival)."
    )
    decode_exact: bool | None = Field(
        default=None,
        description="True if the number of tokens in the first arrival was known, False if it was taken to be one.",
    )
    tpot_s: float | None = Field(default=None, description="1 / decode_tok_s: amortised time per output token.")
    text: str | None = None
    reasoning: str | None = None
    tool_calls: str | None = Field(
        default=None, description="Calls of tools in their order, a line `name arguments` each, without their ids."
    )
    arrivals: list[float] = Field(default=[], description="Arrival of each chunk that carried generated text.")
    chunk_tokens: list[int] | None = Field(
        default=None, description="Tokens in each of those chunks, when the server says so; else null."
    )


class Summary(Record):
    """What the rows of one cell add up to. Failed rows are counted and left out of every other number."""

    requests: int
    failed: int
    completed: bool = Field(default=True, description="False when the cell was aborted and holds what was measured.")
    wall_s: float | None = Field(default=None, description="First request sent -> last token of the last request.")
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    agg_tok_s: float | None = Field(default=None, description="M1: completion tokens of the cell / wall_s.")
    p50_decode_tok_s: float | None = Field(default=None, description="M2: median of the rows' decode_tok_s.")
    decode_n: int = Field(default=0, description="How many rows have a decode rate.")
    p50_ttft_s: float | None = None
    p90_ttft_s: float | None = None
    p95_ttft_s: float | None = None
    p99_ttft_s: float | None = None
    p50_tpot_s: float | None = None
    p50_e2e_s: float | None = None
    p95_e2e_s: float | None = None
    p50_chunk_gap_s: float | None = Field(default=None, description="Median gap between chunks (not between tokens).")
    tokens_per_chunk: float | None = None
    mean_completion_tokens: float | None = None
    decode_share: float | None = Field(
        default=None, description="Time between first and last token / end-to-end time, summed over rows (M35)."
    )
    requested_rate: float | None = Field(default=None, description="Open loop: arrivals per second asked for.")
    achieved_rate: float | None = Field(default=None, description="Open loop: arrivals per second sent.")
    p50_schedule_delay_s: float | None = None
    p95_schedule_delay_s: float | None = None
    peak_in_flight: int | None = None
    goodput: float | None = Field(default=None, description="Share of requests that met the stated objective.")
    percentile_method: str = Field(default="linear", description="How a percentile between two samples is taken.")
    few_samples: list[str] = Field(
        default=[], description="Percentile fields above that rest on too few samples to mean what they say (case D2)."
    )


AcceptanceStatus = Literal["measured", "not_applicable", "not_exercised", "absent", "invalid"]


class Acceptance(Record):
    """M4: what the proposer drafted and the target accepted within one cell, from the server's own counters.

    status: `measured`; `not_applicable` (a baseline without such counters); `not_exercised` (counters there, no draft
    made); `absent` (a speculative mode whose server shows no such counters); `invalid` (reset or inconsistent).
    """

    status: AcceptanceStatus
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted_tokens: int | None = None
    acceptance_rate: float | None = Field(default=None, description="accepted / drafted tokens.")
    acceptance_length: float | None = Field(default=None, description="1 + accepted / drafts (with the bonus token).")
    per_position: list[float] = Field(default=[], description="Accepted at that draft position / drafts.")
    findings: list[Finding] = []


class CounterWindow(Record):
    """The change of the server's counters over one cell, and what was read at its two ends."""

    source: Literal["metrics", "none"] = Field(description="`none` when the engine offers no metrics endpoint.")
    acceptance: Acceptance
    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    requests_finished: int | None = None
    prefix_cache_queries: int | None = None
    prefix_cache_hits: int | None = None
    preemptions: int | None = None
    deltas: dict[str, float] = Field(default={}, description="Every counter that the engine's table names, as a delta.")
    settled: bool | None = Field(
        default=None, description="Whether the counters were at rest at both ends of the window."
    )
    findings: list[Finding] = []


class ClientProof(Record):
    """B5: what the client's self-test found on this machine, and how near its limits the client was in this cell."""

    selftest_ttft_error_ms: float | None = None
    selftest_decode_error: float | None = Field(default=None, description="Relative error of the decode rate.")
    ceiling_chunks_s: float | None = None
    chunks_s: float | None = Field(default=None, description="Chunks per second that this cell needed.")
    cpu_share: float | None = Field(
        default=None, description="Client CPU time / wall time in this cell (1 = one core)."
    )
    loop_lag_p99_ms: float | None = None
    selftest_cpu_s_per_million: float | None = Field(
        default=None, description="Client CPU seconds per million chunks, parsing included, in the self-test."
    )
    client_bound: bool = False


class GpuSample(Record):
    """One reading of one GPU while a cell ran."""

    at_s: float
    device: int
    sm_clock_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    memory_used_bytes: int | None = None
    throttle: list[str] = []


class Cell(Record):
    """One cell's file: the envelope, the summary, the counters and the raw rows."""

    schema_version: Literal[1] = 1
    key: str = Field(description="Content address: sha256 over everything that the measurement depends on.")
    mode: str
    replicate: int
    cell: CellSpec
    session: SessionSpec
    digests: dict[str, str] = Field(description="prompts, code, checkpoints, image, hardware.")
    stack: Stack
    server: str = Field(description="Id of the server lifetime in which this cell was measured.")
    order: int = Field(description="Place of this cell within that lifetime, from 0.")
    started_at: str = Field(description="RFC 3339, UTC.")
    warnings: list[Finding] = []
    summary: Summary
    counters: CounterWindow
    client: ClientProof = ClientProof()
    gpu: list[GpuSample] = []
    energy_j: float | None = None
    warmup: dict[str, Any] = Field(default={}, description="How many warm-up requests ran, and how they went.")
    rows: list[Row]
