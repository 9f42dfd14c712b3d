"""The closed list of what the analysis can remark, each with its severity and with what to do about it (B4).

An `error` means that the number beside it must not be used for a decision; a `warn` means read on before you do; an
`info` is there so that nothing has to be guessed.
"""

from __future__ import annotations

from typing import NamedTuple

from ..records.base import Finding, Severity


class Meaning(NamedTuple):
    """How grave a code is, and the hint that goes with it."""

    severity: Severity
    hint: str


CODES: dict[str, Meaning] = {
    # What may be compared (M10, E5)
    "no_stack": Meaning("error", "Measure again: a number without its stack says nothing about your hardware."),
    "schema_differs": Meaning("error", "Measure both modes with one version of the lab."),
    "hardware_differs": Meaning("error", "Measure the mode and its baseline on the same machine."),
    "checkpoint_differs": Meaning("error", "Compare modes of one target model only."),
    "prompts_differ": Meaning("error", "Measure both with the same prompts."),
    "image_differs": Meaning("error", "Measure both with the same engine image, pinned by digest."),
    "work_differs": Meaning("error", "Ask both for the same requests, caps and sampling."),
    "unreadable": Meaning("error", "Delete the file and run again; only its session is repeated."),
    "no_baseline": Meaning("error", "Measure the baseline for this workload and load."),
    "client_differs": Meaning("warn", "The measuring code changed between the two; measure the older one again."),
    "summary_disagrees": Meaning("warn", "The rows count. Was the file edited or cut?"),
    "context_changed": Meaning("info", "Ask for that size, so that the config says what ran."),
    # What was not measured
    "failed_mode": Meaning("error", "See the mode's failure and its server log."),
    "missing_cell": Meaning("error", "Run the workflow again; it measures what is missing."),
    "partial": Meaning("error", "Run the workflow again; it measures what is missing."),
    # Noise (M25, B1, D8)
    "one_start": Meaning("warn", "Give the mode at least 2 replicates: one start cannot show its own spread."),
    "no_floor": Meaning("warn", "Give the baseline at least 2 replicates: how far they differ is the noise floor."),
    "inside_floor": Meaning("info", "A gain inside the noise floor is no gain."),
    "interval_spans_one": Meaning("info", "More replicates narrow the interval."),
    "not_sure_enough": Meaning("info", "More replicates narrow the interval."),
    "noise_high": Meaning("error", "Find what else uses the machine, make cells longer (requests), and repeat."),
    "drift": Meaning("error", "Let the machine settle, nothing else running and clocks fixed, and repeat."),
    "drift_explains": Meaning("error", "Run the modes interleaved, with a closing baseline (the workflow does)."),
    "not_bracketed": Meaning(
        "warn", "Raise replicates by one: only the added starts are measured, the baseline's beside the mode's."
    ),
    "clocks_differ": Meaning("warn", "Fix the clocks (nvidia-smi -lgc) and repeat."),
    "throttled": Meaning("warn", "Check cooling and power limit; a throttled card measures its cooling."),
    "other_card": Meaning("warn", "Cards of one kind differ by some per cent; a placebo on the other card shows it."),
    "side_by_side": Meaning(
        "warn", "For numbers to publish run one at a time (--resources gpu=1), or with a placebo beside them."
    ),
    "placebo_gains": Meaning(
        "error", "The placebo is the baseline under another name. More replicates, a quieter machine."
    ),
    "clear_gain": Meaning("info", ""),
    "clear_loss": Meaning("info", ""),
    # Plausibility (B4, D6, D7)
    "above_acceptance": Meaning("error", "The baseline is not like for like: compare flags, caches, clocks, prompts."),
    "above_tokens_per_step": Meaning(
        "warn", "Do the counters cover all steps? Else the baseline is not like for like."
    ),
    "counters_disagree": Meaning("error", "Tokens that the server counted are not those that the client received."),
    "counter_reset": Meaning("error", "The server restarted inside the cell; measure again."),
    "acceptance_inconsistent": Meaning(
        "error", "Check what this engine version counts as drafted; keep the scrapes with the result."
    ),
    "scrape_empty": Meaning(
        "error", "Switch the server's metrics on, or look whether it still ran, and measure again."
    ),
    "counter_unreadable": Meaning(
        "error", "Look at that line of the server's metrics; another version of the engine may write it soundly."
    ),
    "counters_not_settled": Meaning(
        "warn", "Make sure that nothing else sends requests to this server, and measure the cell again."
    ),
    "duplicate_series": Meaning(
        "warn", "Two servers or proxies may answer under one metrics address: read it by hand, twice."
    ),
    "aliases_disagree": Meaning("warn", "Check which of these names the engine's version still serves."),
    "unreadable_line": Meaning(
        "warn", "Look at that line of the server's metrics: what it counts is not in the numbers."
    ),
    "acceptance_selfcheck": Meaning(
        "warn", "A position may be missing from the scrape, or the counters were read while they moved."
    ),
    "acceptance_estimated": Meaning("info", "Compare it with other modes of this engine only."),
    "prefix_cache_inconsistent": Meaning(
        "warn", "The share of cached prompts is taken from the answers instead, where the server tells it there."
    ),
    "no_engine_metrics": Meaning(
        "warn", "Switch the server's metrics on: foreign traffic, restarts and cached prompts cannot be seen without."
    ),
    "metric_missing": Meaning("info", "If the engine has renamed it, add the new name to its table."),
    "speculation_in_baseline": Meaning(
        "warn", "Remove the speculative configuration from the baseline's arguments, or point it at another server."
    ),
    "counters_remark": Meaning("warn", "Another version of the lab remarked this; see its notes on the code."),
    "foreign_traffic": Meaning("error", "Somebody else used the server; give the lab a server of its own."),
    "warm_cache": Meaning("error", "Switch prefix caching off for the measurement, in all modes alike."),
    "cache_hits": Meaning("warn", "Prefix caching is at work in both modes; TTFT is that of cached prompts."),
    "cold_start": Meaning("warn", "Warm up at the cell's own load before measuring; TTFT is not compared."),
    "warmup_missing": Meaning("warn", "Give the cell at least as many warm-up requests as its concurrency."),
    "client_bound": Meaning(
        "error", "The client was the bottleneck: fewer requests at once, or a faster client machine."
    ),
    "unequal_work": Meaning("warn", "Compare decode rates, not times: the answers have different lengths."),
    "survivors_only": Meaning("error", "Requests failed and are missing from the numbers; see the rows' reasons."),
    "identical_numbers": Meaning("error", "Two modes have the same measurement to the last digit: a copied file."),
    "remembers_repeats": Meaning("error", "The drafter had seen these prompts: one server per cell, or its cache off."),
    "baseline_speculates": Meaning("error", "The baseline drafted tokens: it is not a baseline."),
    "load_not_held": Meaning(
        "warn", "Set workload.requests to 4 times the concurrency or more: this is a burst, not a load that is held."
    ),
    "counts_contradict": Meaning(
        "warn", "Look at the usage in the rows: a proxy that adds up, or hides thoughts, is the usual cause."
    ),
    "few_samples": Meaning("info", "A p95 of fewer than 20 requests is close to their maximum."),
    "summary_of_few": Meaning("warn", "Few requests have a decode rate; the median leans on them."),
    # Speculation (B6, M29, M30)
    "not_exercised": Meaning("warn", "The proposer found nothing to draft on these prompts, or was switched off."),
    "speculation_absent": Meaning(
        "error", "Speculation seems not enabled: read the server log for its speculative config."
    ),
    "acceptance_unknown": Meaning("warn", "This engine shows no counters; whether it speculated rests on its speed."),
    "poor_fit": Meaning("info", "Try another method for this workload."),
    "overhead": Meaning(
        "info", "Costly draft, no spare compute at this load, or a long context: a smaller K or drafter."
    ),
    "wrong_head": Meaning("warn", "Wrong head for this target, or another chat template than it was trained with."),
    "low_coverage": Meaning("warn", "A high rate on few drafts promises nothing; read tokens per step."),
    "short_answers": Meaning("info", "Decode time is a small share here: little for speculation to save."),
    "lossy": Meaning("warn", "This verification may change the text; it is never adopted here."),
    "ceiling_run": Meaning("info", "Acceptance is made up: this shows the ceiling of the engine, not of a method."),
    # Text (M5, M33, M41, D4)
    "same_text": Meaning("info", ""),
    "own_variation": Meaning("info", "The baseline differs from itself about as often."),
    "text_undecided": Meaning("warn", "Run `probe` to see whether the first differences are near-ties."),
    "text_differs": Meaning("error", "Do not adopt: wrong head, wrong template, or a fault in the verification."),
    "truncation": Meaning("warn", "Texts that stop early are lost text, whatever the speed."),
    "degenerate": Meaning("error", "Loops or empty texts where the baseline has none."),
    "no_reference": Meaning(
        "warn", "Find why the baseline does not repeat itself: temperature not honoured, a faulty kernel, cut answers."
    ),
    "no_control": Meaning("warn", "Give the baseline a second start: without it, own variation is unknown."),
    "sampling": Meaning("info", "Above temperature 0 the text changes by design; identity is not judged."),
    "near_ties": Meaning("info", "At the first difference both tokens were almost equally likely."),
    "real_difference": Meaning("error", "At the first difference the baseline clearly preferred its own token."),
    "batched": Meaning(
        "info", "Batching changes rounding, so near-ties may flip at this load even without speculation."
    ),
    "tool_calls_differ": Meaning(
        "warn", "The words agree, the tools called or their arguments do not: compare them in the rows."
    ),
    "no_text": Meaning(
        "warn",
        "Empty answers say nothing of identity. No tokens: the chat template ends the answer at once. Tokens without "
        "a text: the server sends it in a field that the client does not read.",
    ),
    "finish_differs": Meaning(
        "warn",
        "Compare the rows' finish_reason and completion_tokens: an end token was missed, or the cap is counted "
        "otherwise, when drafts are verified.",
    ),
    "finish_own_variation": Meaning("info", "The baseline's own starts end for another reason about as often."),
    "excess_overall": Meaning("warn", "Over all its cells this mode differs more often than the baseline from itself."),
    "reasoning_differs": Meaning("warn", "The answers agree, the reasoning before them does not."),
    # The decision (M7)
    "below_margin": Meaning("info", "A change of deployment should be worth its risk."),
    "throughput_falls": Meaning(
        "warn", "The server completes less at its peak load; fine for few users, not for a batch."
    ),
    "throughput_unknown": Meaning(
        "warn", "Without every request's token count nobody knows whether the server completes less."
    ),
    "identical_too_few": Meaning("warn", "Too few texts are the baseline's own for a change of deployment."),
    "placebo": Meaning("info", "A placebo is never adopted."),
    "simpler_tie": Meaning("info", "Another mode gains as much within the noise and is simpler to run."),
    "not_at": Meaning("warn", "Add the concurrency that you really run to the loads."),
    "no_command": Meaning("warn", "Take the mode's flags from config.resolved.json."),
    "adoptable": Meaning("info", ""),
}


def finding(code: str, message: str, *, severity: Severity | None = None) -> Finding:
    """A remark of this list; KeyError for a code that is not on it."""
    meaning = CODES[code]
    return Finding(code=code, severity=severity or meaning.severity, message=message, hint=meaning.hint)


def errors(findings: list[Finding]) -> list[Finding]:
    """Those that forbid a use of the number."""
    return [one for one in findings if one.severity == "error"]
