"""B8: cost per million tokens counts the GPUs that a mode's server holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from specdec_lab.analysis.cost import per_million
from specdec_lab.config.load import load_config
from specdec_lab.config.plan import plan
from specdec_lab.config.resolve import resolve
from specdec_lab.records.decision import DecisionRules


def test_b8_a_server_that_gives_a_thousand_tokens_a_second() -> None:
    """3.6 an hour is 0.001 a second, so 1000 tokens a second cost 1 per million."""
    assert per_million(DecisionRules(price_per_gpu_hour=3.6, gpus_priced=1), 1000.0, 1) == pytest.approx(1.0)


@pytest.mark.parametrize(("gpus", "cost"), [(0, 1.0), (1, 1.0), (2, 2.0), (8, 8.0)])
def test_b8_a_mode_pays_for_each_of_its_gpus(gpus: int, cost: float) -> None:
    assert per_million(DecisionRules(price_per_gpu_hour=3.6, gpus_priced=1), 1000.0, gpus) == pytest.approx(cost)


def test_b8_a_price_of_an_older_file_is_that_of_the_whole_server() -> None:
    assert per_million(DecisionRules(price_per_gpu_hour=3.6), 1000.0, 8) == pytest.approx(1.0)


@pytest.mark.parametrize("speed", [None, 0.0])
def test_b8_without_a_throughput_or_a_price_there_is_no_cost(speed: float | None) -> None:
    assert per_million(DecisionRules(price_per_gpu_hour=3.6, gpus_priced=1), speed, 1) is None
    assert per_million(DecisionRules(), 1000.0, 1) is None


@pytest.mark.parametrize(("gpus", "baseline", "draft"), [(4, 2.0, 4.0), (8, 2.0, 2.0)])
def test_b8_the_configs_price_is_of_the_engines_server_and_other_modes_pay_in_proportion(
    tmp_path: Path, gpus: int, baseline: float, draft: float
) -> None:
    """7.2 for a server whose engine has that many GPUs; the draft's mode has eight."""
    path = tmp_path / "c.yaml"
    path.write_text(
        f"""
name: x
engine: {{software: llama_cpp, launcher: process, gpus: {gpus}}}
checkpoints:
  target: {{bundled: smollm2-135m-q4_1}}
modes:
  baseline: {{}}
  ngram:
    gpus: 8
    speculative: {{method: ngram-simple}}
cost: {{per_hour: 7.2, currency: EUR}}
""",
        encoding="utf-8",
    )
    matrix = resolve(load_config([path]), kinds=["code"], known=["code"])
    rules = plan(matrix).rules
    held = {name: spec.server.gpus for name, spec in matrix.sessions.items()}
    assert per_million(rules, 1000.0, held["baseline"]) == pytest.approx(baseline)
    assert per_million(rules, 1000.0, held["ngram"]) == pytest.approx(draft)
    assert rules.currency == "EUR"
