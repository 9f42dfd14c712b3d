"""B8: what a million completion tokens cost. The one place of the formula."""

from __future__ import annotations

from ..records.decision import DecisionRules

SECONDS_PER_HOUR = 3600


def per_million(rules: DecisionRules, agg_tok_s: float | None, gpus: int) -> float | None:
    """Price of the mode's server per hour / (completion tokens per second * 3600) * 10^6, in the rules' currency.

    The server's price is that of one GPU times the GPUs it holds, so a mode that needs a second card for its draft pays
    for it; a server on the CPU (`gpus` 0) is one machine. None without a price or without a throughput.
    """
    price = rules.price_per_gpu_hour
    if price is None or not agg_tok_s:
        return None
    hourly = price if rules.gpus_priced is None else price * max(gpus, 1) / rules.gpus_priced
    return hourly / (agg_tok_s * SECONDS_PER_HOUR) * 1e6
