"""Every term of the report with its formula, as the code that computes it states it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """One entry: the word, its formula (may be empty), what it means for the reader."""

    word: str
    formula: str
    meaning: str


TERMS = (
    Term(
        "Aggregate tok/s",
        "completion tokens of the cell / (first request sent → last token of the last request)",
        "What a busy server cares about. Tokens are the server's own count, never chunks.",
    ),
    Term(
        "P50 decode tok/s",
        "per request: tokens after the first arrival / (last arrival − first arrival); then the median",
        "What one user feels while text appears.",
    ),
    Term(
        "TTFT",
        "first generated token of any channel − request sent",
        "Time to first token. Speculation barely moves it.",
    ),
    Term(
        "TPOT",
        "1 / decode tok/s",
        "Amortised time per output token. Not the gap between chunks: a chunk may hold several.",
    ),
    Term(
        "Speedup, gain",
        "exp(mean over the mode's starts of log x − mean over the baseline's starts of log x)",
        "Mode / baseline: 1.25× is 25 % more. Swapping the two gives exactly the reciprocal.",
    ),
    Term(
        "Interval",
        "t interval of the log ratio, with the server start as the unit",
        "Where the true ratio lies, at the stated confidence. One start cannot show its own spread, so it has none.",
    ),
    Term(
        "Noise floor",
        "exp(root mean square of log x − log y over all pairs of the baseline's starts) − 1",
        "How far two starts of the baseline typically differ. A gain inside it is no difference shown.",
    ),
    Term(
        "Spread between starts",
        "fastest start / slowest start − 1",
        "How far the two starts that differ most are from each other. It grows with the number of starts; the noise "
        "floor does not.",
    ),
    Term(
        "Acceptance rate a",
        "accepted tokens / draft tokens",
        "From the server's counters, as the change over the cell; warm-up is outside the window.",
    ),
    Term(
        "Acceptance length",
        "1 + accepted tokens / drafts",
        "Tokens per target pass with a draft, the bonus token included. Bounds the decode speedup.",
    ),
    Term("Acceptance by position", "accepted at that draft position / drafts", "Its sum + 1 is the acceptance length."),
    Term(
        "Expected length",
        "(1 − a^(k+1)) / (1 − a)",
        "What the textbook promises for K drafted tokens. a = 0.8, K = 4 gives 3.36; a = 0.5 gives 1.94.",
    ),
    Term(
        "Ceiling",
        "expected length / (1 + K × cost of one draft step)",
        "The speedup that could be had if nothing else cost anything.",
    ),
    Term(
        "Crossover",
        "lowest measured concurrency at which the mode no longer pays",
        "From here on the server has no spare compute for drafts.",
    ),
    Term(
        "Identical n/N",
        "prompts whose answer, tool calls and reasoning equal the baseline's / prompts answered in both",
        "At temperature 0. A prompt without a text in either is left out. Judged against how often the baseline "
        "equals itself: batching alone can change rounding.",
    ),
    Term(
        "Decode share",
        "Σ (last − first token) / Σ (last token − request sent)",
        "How much of a request's time speculation can touch at all.",
    ),
    Term(
        "Cost per million tokens",
        "price of one GPU hour × GPUs of the mode's server / (aggregate tok/s × 3600) × 10⁶",
        "At this load, with the server as busy as it was here. A mode that needs a further GPU pays for it.",
    ),
    Term(
        "Drift",
        "P50 decode of the closing baseline start / the opening one − 1",
        "Whether the machine itself became slower or faster meanwhile.",
    ),
)

WORDS = {
    "faster": "The gain is clear of the noise and of the stated margin, and nothing speaks against it.",
    "slower": "Clearly slower than the baseline.",
    "no difference shown": "The ratio lies inside the noise; more starts could show a smaller difference.",
    "not comparable": "The two were not measured under the same conditions.",
    "unreliable": "The measurement moved too much in itself: drift, a restart, or starts that differ too much.",
    "not exercised": "The mode never drafted a token, so nothing was tested.",
    "text differs": "The text is not the baseline's beyond the baseline's own variation.",
    "undecided": "Not enough was measured to say.",
}
"""The closed list of verdict words, each in one sentence."""
