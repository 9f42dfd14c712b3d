"""B4: gates that a number must pass before anybody believes it. Each is a typed finding; a passed gate says nothing.

A gate judges the cells of one kind and load: those of a mode (one per start) beside those of its baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from ..quantities import few_samples, median
from ..records.base import Finding, Severity
from ..records.cell import Acceptance
from ..records.comparison import Theory
from ..records.notes import COUNTS
from .cells import Measured
from .findings import finding
from .windows import drafted, remarks

FAILED_SHARE = 0.01
"""Failed requests above this share leave only survivors in the numbers."""
WARM_SHARE, WARM_GAP = 0.5, 0.1
"""Prompt tokens from the cache: above the first no cold prompt; apart by more than the second not like for like."""
LENGTH_SHARE = 0.05
"""Total completion tokens may differ by this share."""
USAGE_SHARE = 0.03
"""Generated tokens by the server's counters against usage."""
COUNT_SLACK = 0.01
"""Counts of drafts and of their tokens may be apart by this share at the two ends of a window."""
_COUNTED = 1 + COUNT_SLACK
BOUND_SLACK = 0.10
"""Measured noise on top of the bound that acceptance sets."""
COLD_FACTOR, COLD_FIRST = 5.0, 2
"""A first request (or two) this many times slower to its first token than the median is a cold start."""
FULL_SHARE = 1 / 3
"""A closed loop that is full for less of its time than this measures mostly how it runs empty."""


def gates(
    cells: Sequence[Measured], baseline: Sequence[Measured], *, acceptance: Acceptance | None, speculative: bool
) -> list[Finding]:
    """Everything suspicious about a mode's cells, before any gain is looked at; those not read say nothing."""
    cells, baseline = ([cell for cell in some if cell.read] for some in (cells, baseline))
    found = [
        *_failures(cells),
        *remarks(cells),
        *_counters(cells),
        *_caches(cells, baseline),
        *_cold(cells),
        *_client(cells),
        *_twice(cells),
        *_work(cells, baseline),
        *_few(cells),
        *_full(cells),
        *_contradicting(cells),
    ]
    if speculative:
        found += _exercised(acceptance, cells)
        found += _beyond_k(cells)
    else:
        found += _plain(cells)
    return found


def _failures(cells: Sequence[Measured]) -> list[Finding]:
    requests = sum(len(cell.requests) or cell.summary.requests for cell in cells)
    failed = sum(cell.summary.failed for cell in cells)
    found = []
    if failed:
        reasons = sorted({one.reason or "unknown" for cell in cells for one in cell.requests if not one.ok})
        why = f" ({', '.join(reasons)})" if reasons else ""
        grave = failed > FAILED_SHARE * requests
        found.append(
            finding(
                "survivors_only",
                f"{failed} of {requests} requests failed{why}; the numbers are of those that survived.",
                severity="error" if grave else "warn",
            )
        )
    return found


def _counters(cells: Sequence[Measured]) -> list[Finding]:
    found: list[Finding] = []
    for cell in cells:
        counters, who = cell.counters, f"{cell.mode} r{cell.replicate}"
        ours = len(cell.requests) or cell.summary.requests
        if counters.requests_finished is not None and counters.requests_finished > ours:
            found.append(
                finding(
                    "foreign_traffic",
                    f"{who}: the server finished {counters.requests_finished} requests, {ours} were ours.",
                )
            )
        answered = len(cell.ok) or cell.summary.requests - cell.summary.failed
        if counters.requests_finished is not None and counters.requests_finished < answered:
            found.append(
                finding(
                    "counters_disagree",
                    f"{who}: {answered} of our requests were answered, and the server finished "
                    f"{counters.requests_finished}: are these the counters of another server?",
                    severity="warn" if counters.settled is False else None,
                )
            )
        usage, generated = cell.tokens, counters.generation_tokens
        known = usage and generated is not None and not cell.summary.failed
        if known and abs((generated or 0) - (usage or 0)) > max(USAGE_SHARE * (usage or 0), ours):
            found.append(finding("counters_disagree", f"{who}: {generated} tokens by the counters, {usage} by usage."))
        accepted, drafts = counters.acceptance.accepted_tokens, counters.acceptance.drafts
        drafted = counters.acceptance.draft_tokens
        if usage and accepted is not None and drafts and drafted is not None:
            cut = ours * (drafted / drafts)
            if accepted > usage + cut:
                found.append(finding("counters_disagree", f"{who}: {accepted} drafts accepted in {usage} tokens."))
    return found


def _caches(cells: Sequence[Measured], baseline: Sequence[Measured]) -> list[Finding]:
    ours, theirs = _cached(cells), _cached(baseline)
    if ours is None or theirs is None:
        return _half_known(ours, theirs) if cells and baseline else []
    if abs(ours - theirs) > WARM_GAP:
        return [finding("warm_cache", f"{ours:.0%} of the prompt tokens were cached, {theirs:.0%} in the baseline.")]
    if ours >= WARM_SHARE:
        return [finding("warm_cache", f"The prompts were cached: {ours:.0%} of their tokens came from the cache.")]
    if ours > WARM_GAP:
        return [finding("cache_hits", f"{ours:.0%} of the prompt tokens were cached.")]
    return []


def _half_known(ours: float | None, theirs: float | None) -> list[Finding]:
    """Cached prompts on one side, and no word of them from the other. A baseline that may have been warm, beside a mode
    that was not, makes no gain look larger than it is."""
    if ours is not None:
        told = f"{ours:.0%} of the prompt tokens were cached; what the baseline took from a cache is not known."
        return [finding("warm_cache", told)] if ours > WARM_GAP else []
    if theirs is not None:
        told = f"What this mode took from a cache is not known; {theirs:.0%} of the baseline's prompts were cached."
        return [finding("warm_cache", told, severity=None if theirs > WARM_GAP else "warn")]
    return []


def _cached(cells: Sequence[Measured]) -> float | None:
    """The largest share among the starts; a server whose cache was never asked has none."""
    asked = [0.0 if cell.counters.prefix_cache_queries == 0 else cell.cache_share for cell in cells]
    return max((share for share in asked if share is not None), default=None)


def _cold(cells: Sequence[Measured]) -> list[Finding]:
    found = []
    for cell in cells:
        times = [one.ttft_s for one in cell.ok if one.ttft_s is not None]
        usual = median(times)
        if usual and len(times) > 4 and max(times[:COLD_FIRST]) > COLD_FACTOR * usual:
            mean = fmean(times)
            found.append(
                finding(
                    "cold_start",
                    f"{cell.mode} r{cell.replicate}: first request {max(times[:COLD_FIRST]) * 1000:.0f} ms to its "
                    f"first token, median {usual * 1000:.0f} ms (mean {mean * 1000:.0f} ms).",
                )
            )
        found += _warmup(cell)
    return list({(one.code, one.message): one for one in found}.values())


def _warmup(cell: Measured) -> list[Finding]:
    """Whether the warm-up ran at the cell's own load."""
    concurrency = cell.cell.load.concurrency
    ran, at_once = cell.warmup.get("requests", cell.cell.warmup), cell.warmup.get("concurrency")
    if not concurrency or not isinstance(ran, int):
        return []
    if isinstance(at_once, int) and at_once < concurrency:
        text = f"The warm-up ran {at_once} at once, the cell {concurrency}."
        return [finding("warmup_missing", text)]
    if ran < concurrency:
        return [finding("warmup_missing", f"{ran} warm-up requests before a load of {concurrency} at once.")]
    return []


def _client(cells: Sequence[Measured]) -> list[Finding]:
    return [
        finding("client_bound", f"{cell.mode} r{cell.replicate}: the client was near its own ceiling.")
        for cell in cells
        if cell.client.client_bound
    ]


def _twice(cells: Sequence[Measured]) -> list[Finding]:
    found = []
    for cell in cells:
        times = Counter(one.id for one in cell.requests)
        again = [prompt for prompt, n in times.items() if n > 1]
        if again:
            text = f"{len(again)} of {len(times)} prompts were answered more than once ({', '.join(again[:3])})."
            found.append(finding("work_differs", f"{cell.mode} r{cell.replicate}: {text}"))
    return found


def _work(cells: Sequence[Measured], baseline: Sequence[Measured]) -> list[Finding]:
    if not cells or not baseline or cells[0].mode == baseline[0].mode:
        return []
    ours = {one.id: one.tokens for one in cells[0].ok if one.tokens is not None}
    theirs = {one.id: one.tokens for one in baseline[0].ok if one.tokens is not None}
    both = ours.keys() & theirs.keys()
    total, base = sum(ours[p] for p in both), sum(theirs[p] for p in both)
    if base and abs(total - base) > LENGTH_SHARE * base:
        return [
            finding(
                "unequal_work",
                f"Length differs: {total} completion tokens, the baseline gave {base} to the same prompts.",
            )
        ]
    return []


def _contradicting(cells: Sequence[Measured]) -> list[Finding]:
    """Answers whose counts of tokens contradict each other or cannot be."""
    found = []
    for note, meaning in COUNTS.items():
        rows = sum(note in one.notes for cell in cells for one in cell.requests)
        if rows:
            text = f"{rows} of {sum(len(cell.requests) for cell in cells)} answers: {meaning}."
            found.append(finding("counts_contradict", text))
    return found


def _full(cells: Sequence[Measured]) -> list[Finding]:
    for cell in cells:
        concurrency, share = cell.cell.load.concurrency, cell.full_share
        if concurrency is not None and concurrency > 1 and share is not None and share < FULL_SHARE:
            text = (
                f"{len(cell.requests)} requests keep {concurrency} in flight for less than a third of the cell's time."
            )
            return [finding("load_not_held", text)]
    return []


def _few(cells: Sequence[Measured]) -> list[Finding]:
    n = min((len(cell.ok) for cell in cells), default=0)
    found = []
    if n and few_samples(95, n):
        found.append(finding("few_samples", f"p95 from {n} requests."))
    rated = sum(cell.decode_n for cell in cells)
    done = sum(len(cell.ok) for cell in cells)
    if done and rated * 2 < done:
        found.append(finding("summary_of_few", f"{rated} of {done} requests have a decode rate."))
    return found


def _exercised(acceptance: Acceptance | None, cells: Sequence[Measured]) -> list[Finding]:
    if acceptance is None or all(cell.counters.source == "none" for cell in cells):
        return [finding("acceptance_unknown", "The server shows no counters of its drafts.")]
    if acceptance.status == "not_exercised" or (acceptance.status == "measured" and acceptance.drafts == 0):
        return [finding("not_exercised", "Speculation was not exercised: not one draft was made.")]
    if acceptance.status in ("absent", "not_applicable"):
        return [finding("speculation_absent", "The server has no speculation counters: speculation seems not enabled.")]
    idle = [f"r{cell.replicate}" for cell in cells if cell.counters.acceptance.status == "not_exercised"]
    if idle:
        return [finding("not_exercised", f"Not one draft was made by {', '.join(idle)}; the other starts drafted.")]
    return []


def most_drafted(cell: Measured) -> int | None:
    """K of a server of vLLM's kind, whose steps draft at most that many tokens; None where K is not known, changes
    with the batch, or belongs to a tree."""
    server = cell.session.server
    options = {name.replace("-", "_").lstrip("_"): value for name, value in (server.speculative or {}).items()}
    k = options.get("num_speculative_tokens")
    if server.engine not in ("vllm", "nim") or not isinstance(k, int) or isinstance(k, bool) or k < 1:
        return None
    return None if any("tree" in name or "per_batch_size" in name for name in options) else k


def _beyond_k(cells: Sequence[Measured]) -> list[Finding]:
    """Counters that hold more than a draft of K tokens can."""
    found = []
    for cell in cells:
        k, counts = most_drafted(cell), cell.counters.acceptance
        if k is None:
            continue
        wrong = []
        if counts.draft_tokens is not None and counts.drafts and counts.draft_tokens > k * counts.drafts * _COUNTED:
            wrong.append(f"{counts.draft_tokens / counts.drafts:.2f} tokens per draft")
        length = counts.acceptance_length
        if length is not None and length > 1 + k * _COUNTED:
            wrong.append(f"an acceptance length of {length:.2f}")
        if wrong:
            text = f"{cell.mode} r{cell.replicate}: {' and '.join(wrong)} by the counters, with drafts of {k} tokens."
            found.append(finding("acceptance_inconsistent", text))
    return found


def _plain(cells: Sequence[Measured]) -> list[Finding]:
    return [
        finding(
            "baseline_speculates",
            f"{cell.mode} r{cell.replicate} drafted: {count} tokens or steps by its counters.",
        )
        for cell in cells
        if (count := drafted(cell.counters.acceptance))
    ]


def above_acceptance(
    speedup: float | None,
    total_time: float | None,
    theory: Theory | None,
    acceptance: Acceptance | None,
    *,
    floor: float | None,
    closed_loop: bool,
    most: int | None = None,
) -> list[Finding]:
    """A drafted step gives at most its tokens and costs at least a plain one, so decode speedup <= acceptance length.

    `most`: K where it is known. No step gives more than K + 1 tokens, whatever the counters say or do not say.

    The acceptance length is a mean over steps. Where requests differ much, the median request may well gain more than
    that (short answers that copy the prompt beside long ones that do not), so what must stay below it is the gain in
    total decode time, where there is one.
    Over all steps, drafted or not, the gain in total decode time is bounded by tokens per step. Counters that miss some
    steps break that bound too, so it is only a warning. At a fixed arrival rate a faster server also has fewer requests
    at once, so there the first bound is only a warning as well.
    """
    slack = 1 + max(BOUND_SLACK, floor or 0.0)
    length = acceptance.acceptance_length if acceptance is not None else None
    if speedup is not None and total_time is not None:
        speedup = min(speedup, total_time)
    severity: Severity = "error" if closed_loop else "warn"
    if speedup is not None and most is not None and speedup > (most + 1) * slack:
        text = f"A decode speedup of {speedup:.2f}x cannot come from steps of {most} drafted tokens and one more."
        return [finding("above_acceptance", text, severity=severity)]
    if speedup is not None and length is not None and speedup > length * slack:
        text = f"A decode speedup of {speedup:.2f}x cannot come from an acceptance length of {length:.2f}."
        return [finding("above_acceptance", text, severity=severity)]
    per_step = theory.tokens_per_step if theory is not None else None
    if total_time is not None and per_step is not None and total_time > per_step * slack:
        text = f"{total_time:.2f}x in total decode time does not follow from {per_step:.2f} tokens per step."
        return [finding("above_tokens_per_step", text)]
    return []


def identical_numbers(cells: Sequence[Measured]) -> dict[tuple[str, int], Finding]:
    """Two cells of a group with the same measured times to the last digit: one is a copy of the other.

    Cells whose times are all alike (made up for a test, or rounded to nothing) tell nothing and are left alone.
    """
    seen: dict[tuple[float, ...], Measured] = {}
    found: dict[tuple[str, int], Finding] = {}
    for cell in cells:
        times = tuple(one.e2e_s for one in cell.ok if one.e2e_s is not None)
        if len(set(times)) < 8:
            continue
        first = seen.setdefault(times, cell)
        if first is not cell:
            text = f"{cell.mode} r{cell.replicate} has the very times of {first.mode} r{first.replicate}."
            for one in (first, cell):
                found.setdefault((one.mode, one.replicate), finding("identical_numbers", text))
    return found
