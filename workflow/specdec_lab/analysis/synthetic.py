"""Made-up cells with a known truth, for judging the judge (`make trust`) and for tests. Never shown as a measurement.

A synthetic cell is the JSON that a real one would be, so that it passes through the same reading and judging code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..quantities import median, percentile
from ..records.spec import CellSpec, Load, ServerSpec, SessionSpec

ENVELOPE: dict[str, Any] = {
    "schema_version": 1,
    "digests": {"prompts": "p", "code": "c", "image": "i", "hardware": "h"},
    "stack": {
        "host": {"cpu": "synthetic", "cores": 8, "memory_bytes": 1, "system": "synthetic", "python": "3.11"},
        "engine": {"software": "synthetic", "version": "1"},
        "checkpoints": {"target": "t"},
        "lab": "0",
    },
}


@dataclass
class Made:
    """One cell to be made: a decode rate per prompt and what was answered."""

    mode: str
    replicate: int
    rates: Sequence[float | None]
    kind: str = "chat"
    concurrency: int = 4
    rate: float | None = None
    """Requests per second instead of a fixed concurrency."""
    against: str | None = "baseline"
    texts: Sequence[str] | None = None
    tokens: Sequence[int | None] | None = None
    ttfts: Sequence[float | None] | None = None
    started_at: str = "2026-01-01T00:00:00Z"
    speculative: dict[str, Any] | None = None
    drafts: int | None = None
    draft_tokens: int | None = None
    accepted: int | None = None
    acceptance_status: str | None = None
    placebo: bool = False
    lossy: bool = False
    temperature: float = 0.0
    agg_tok_s: float | None = None
    server: str | None = None
    order: int = 0
    clocks: Sequence[int] = ()
    fail: dict[int, str] = field(default_factory=dict)
    """Row number -> reason, for requests that failed."""
    reasoning: Sequence[str | None] | None = None
    finish: Sequence[str | None] | None = None
    tool_calls: Sequence[str | None] | None = None
    over: dict[str, Any] = field(default_factory=dict)
    """Replaces keys of the finished cell."""

    @property
    def name(self) -> str:
        """File stem."""
        return f"{self.kind}_{self.load.label}"

    @property
    def load(self) -> Load:
        """How requests are offered."""
        return Load(concurrency=self.concurrency) if self.rate is None else Load(rate=self.rate)


def plain_text(prompt: int, length: int = 1200) -> str:
    """A text that is different for each prompt, the same each time, and free of loops."""
    words: list[str] = []
    value = prompt + 1
    while sum(len(word) + 1 for word in words) < length:
        value = value * 6364136223846793005 + 1442695040888963407 & (2**64 - 1)
        words.append(f"w{value >> 40:x}")
    return " ".join(words)[:length]


def flipped(text: str, at_char: int) -> str:
    """The text as it goes on otherwise from a character on."""
    return text[:at_char] + "~" + text[at_char + 1 :][::-1]


def cell(made: Made) -> dict[str, Any]:
    """The cell's JSON. Times follow from the rates: tokens after the first / rate."""
    n = len(made.rates)
    tokens = list(made.tokens) if made.tokens is not None else [101] * n
    ttfts = list(made.ttfts) if made.ttfts is not None else [0.05] * n
    rows = [_row(made, i, tokens[i], ttfts[i]) for i in range(n)]
    ok = [row for row in rows if row["status"] == "ok"]
    rates = [row["decode_tok_s"] for row in ok if row["decode_tok_s"] is not None]
    counts = [row["completion_tokens"] for row in ok]
    total = None if None in counts or not counts else sum(counts)
    first = [row["ttft_s"] for row in ok if row["ttft_s"] is not None]
    ends = [row["e2e_s"] for row in ok if row["e2e_s"] is not None]
    wall = sum(ends) / made.concurrency if ends else None
    agg = made.agg_tok_s if made.agg_tok_s is not None else (total / wall if total and wall else None)
    status = made.acceptance_status or _status(made)
    return {
        **ENVELOPE,
        "key": f"{made.mode}-{made.replicate}-{made.name}",
        "mode": made.mode,
        "replicate": made.replicate,
        "cell": CellSpec(kind=made.kind, load=made.load, warmup=made.concurrency).model_dump(),
        "session": _session(made).model_dump(),
        "server": made.server or f"{made.mode}-{made.replicate}",
        "order": made.order,
        "started_at": made.started_at,
        "summary": {
            "requests": n,
            "failed": n - len(ok),
            "wall_s": wall,
            "completion_tokens": total,
            "agg_tok_s": agg,
            "p50_decode_tok_s": median(rates),
            "decode_n": len(rates),
            "p50_ttft_s": median(first),
            "p95_ttft_s": percentile(first, 95),
        },
        "counters": {
            "source": "metrics",
            "acceptance": {
                "status": status,
                "drafts": made.drafts,
                "draft_tokens": made.draft_tokens,
                "accepted_tokens": made.accepted,
                "acceptance_rate": made.accepted / made.draft_tokens if made.accepted and made.draft_tokens else None,
                "acceptance_length": 1 + made.accepted / made.drafts if made.accepted and made.drafts else None,
            },
        },
        "gpu": [{"at_s": float(i), "device": 0, "sm_clock_mhz": clock} for i, clock in enumerate(made.clocks)],
        "rows": rows,
        **made.over,
    }


def _status(made: Made) -> str:
    if not made.speculative:
        return "not_applicable"
    return "measured" if made.drafts else "not_exercised"


def _session(made: Made) -> SessionSpec:
    return SessionSpec(
        server=ServerSpec(engine="vllm", launcher="process", speculative=made.speculative),
        checkpoints={},
        against=made.against,
        lossy=made.lossy,
        placebo=made.placebo,
        sampling={"temperature": made.temperature},
    )


def _row(made: Made, i: int, tokens: int | None, ttft: float | None) -> dict[str, Any]:
    if i in made.fail:
        return {"id": f"p{i}", "kind": made.kind, "status": "failed", "reason": made.fail[i]}
    rate = made.rates[i]
    end = ttft + (tokens - 1) / rate if ttft is not None and tokens and rate else ttft
    return {
        "id": f"p{i}",
        "kind": made.kind,
        "status": "ok",
        "completion_tokens": tokens,
        "decode_tok_s": rate,
        "ttft_s": ttft,
        "e2e_s": end,
        "text": made.texts[i] if made.texts is not None else f"answer {i}",
        "reasoning": made.reasoning[i] if made.reasoning is not None else None,
        "tool_calls": made.tool_calls[i] if made.tool_calls is not None else None,
        "finish_reason": made.finish[i] if made.finish is not None else "stop",
    }


def starts(
    mode: str, rates: Sequence[float], *, prompts: int = 20, times: Sequence[str] | None = None, **more: Any
) -> list[Made]:
    """One cell per start of a mode, the same rate for all its prompts; between the baseline's first two in time."""
    plain = mode == "baseline"
    more.setdefault("against", None if plain else "baseline")
    return [
        Made(
            mode,
            number,
            [rate] * prompts,
            started_at=times[number - 1]
            if times
            else f"2026-01-01T00:{number if plain else 1:02d}:{0 if plain else 20 + number:02d}Z",
            **more,
        )
        for number, rate in enumerate(rates, start=1)
    ]
