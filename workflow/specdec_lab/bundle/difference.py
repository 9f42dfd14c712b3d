"""Records of `specdec diff`: two bundles side by side, B against A (M37)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ..records.base import Finding, Record
from ..records.comparison import Gain

Change = Literal["faster", "slower", "no difference shown", "not comparable"]
QUANTITIES = ("decode", "throughput", "ttft", "acceptance", "identity")
"""What of a row is compared."""


class StackChange(Record):
    """One fact underneath the numbers that is not the same in both."""

    where: str = Field(description="host, gpu, engine, package, checkpoint, flags, workload, code.")
    fact: str
    a: str | None
    b: str | None


class CellChange(Record):
    """One row of the table in both bundles. Ratios are B / A."""

    kind: str
    load: str
    mode: str
    decode: Gain
    aggregate: Gain
    ttft: Gain
    word: Change = Field(description="Of P50 decode: shown or not, with server starts as the unit.")
    remark: str = ""
    acceptance_a: float | None = None
    acceptance_b: float | None = None
    length_a: float | None = None
    length_b: float | None = None
    identical_a: float | None = Field(default=None, description="Share of texts equal to A's own baseline.")
    identical_b: float | None = None
    same_text: int | None = Field(default=None, description="Prompts that this mode answered alike in A and B.")
    same_text_n: int | None = Field(default=None, description="Prompts that both have a text for.")
    unknown: dict[str, str] = Field(
        default={},
        description="Each of QUANTITIES that cannot be compared -> why.",
    )


class DecisionChange(Record):
    """The answer for one workload in both."""

    kind: str
    baseline: str
    a: str | None
    b: str | None
    range_a: str | None = Field(default=None, description="Concurrencies that A's mode is for: `1 to 16`.")
    range_b: str | None = None
    changed: bool
    sentence_a: str
    sentence_b: str


class Difference(Record):
    """Everything that differs between two bundles."""

    schema_version: Literal[1] = 1
    a: str
    b: str
    stack: list[StackChange]
    cells: list[CellChange]
    only_a: list[str] = Field(default=[], description="Rows (kind load mode) that B does not have.")
    only_b: list[str] = Field(default=[], description="Rows that A does not have.")
    decisions: list[DecisionChange]
    undecided: list[str] = Field(default=[], description="Decisions that cannot be compared: what is missing, where.")
    findings: list[Finding] = Field(default=[], description="What to know before reading the numbers.")
