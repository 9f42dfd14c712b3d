"""What is deployed, up to which load, and what is never deployed (M7, M31, M32, M35, B7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis import decision, tables
from specdec_lab.analysis.compare import compare
from specdec_lab.analysis.deploy import dynamic
from specdec_lab.analysis.synthetic import Made, starts
from specdec_lab.records.comparison import Comparison
from specdec_lab.records.decision import Decision, DecisionRules, Plan, PlannedMode, Sweep
from specdec_lab.records.spec import CellSpec, CheckpointSpec, Load, ServerSpec, SessionSpec

Write = Callable[..., Path]
LOADS = (1, 4, 16)


def drafted(method: str = "eagle3", k: int = 3) -> dict[str, Any]:
    return {
        "speculative": {"method": method, "num_speculative_tokens": k},
        "drafts": 700,
        "draft_tokens": 700 * k,
        "accepted": 1300,
    }


def ladder(mode: str, speeds: list[float], **more: Any) -> list[Made]:
    """Two starts at each load; `speeds` per load."""
    return [
        made
        for load, speed in zip(LOADS, speeds, strict=True)
        for made in starts(mode, [speed, speed * 1.004], concurrency=load, **more)
    ]


def plan(modes: dict[str, tuple[str, int]], **rules: Any) -> Plan:
    return Plan(
        name="made",
        rules=DecisionRules(**rules),
        modes=[
            PlannedMode(name="baseline", against=None),
            *(
                PlannedMode(name=name, against="baseline", method=method, k=k, lossy=name == "lossy")
                for name, (method, k) in modes.items()
            ),
        ],
        cells=[CellSpec(kind="chat", load=Load(concurrency=load), warmup=load) for load in LOADS],
    )


def answer(folder: Write, cells: list[Made], given: Plan | None = None) -> tuple[Decision, Comparison]:
    comparison = compare(folder(cells, plan=given))
    return decision.decide(comparison), comparison


def spans(decided: Decision) -> list[tuple[int, int | None, str]]:
    return [(one.from_concurrency, one.to_concurrency, one.mode) for one in decided.routes if one.interactive]


BASE = [50.0, 48.0, 40.0]


def test_m32_a_mode_is_deployed_up_to_the_load_at_which_it_stops_paying(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 75.0, 38.0], **drafted())
    decided, _ = answer(folder, cells)
    (one,) = decided.workloads
    assert (one.mode, one.up_to, one.crossover) == ("eagle3", 4, 16)
    assert one.sentence == "Deploy eagle3 for chat up to concurrency 4, keep it plain from 16 on."
    assert one.why.endswith(" Above: c16 0.95x, no difference shown.")
    assert one.batch_mode == "baseline"
    assert spans(decided) == [(1, 4, "eagle3"), (5, None, "baseline")]
    assert [r.mode for r in decided.routes if not r.interactive] == ["baseline"]


def test_m7_the_load_that_is_really_run_decides(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 75.0, 38.0], **drafted())
    decided, _ = answer(folder, cells, plan({"eagle3": ("eagle3", 3)}, at=16))
    (one,) = decided.workloads
    assert not one.speculative
    assert one.sentence.startswith("Keep chat plain")
    assert spans(decided) == [(1, None, "baseline")], "the router does what the sentence says"


def test_m32_a_mode_that_pays_only_under_load_is_deployed_from_there(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [40.0, 75.0, 62.0], **drafted())
    decided, _ = answer(folder, cells)
    (one,) = decided.workloads
    assert (one.from_concurrency, one.up_to, one.crossover) == (2, 16, None)
    assert one.sentence == "Deploy eagle3 for chat from concurrency 2 to 16, keep it plain below."
    assert spans(decided) == [(1, 1, "baseline"), (2, 16, "eagle3"), (17, None, "baseline")]


def test_m32_the_range_around_the_load_that_is_run_reaches_down_as_well(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 75.0, 38.0], **drafted())
    decided, _ = answer(folder, cells, plan({"eagle3": ("eagle3", 3)}, at=4))
    assert decided.workloads[0].sentence == "Deploy eagle3 for chat up to concurrency 4, keep it plain from 16 on."
    assert spans(decided) == [(1, 4, "eagle3"), (5, None, "baseline")]


def test_b7_a_load_at_which_a_mode_pays_again_is_told_and_left_out(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 48.0, 62.0], **drafted())
    decided, _ = answer(folder, cells)
    (one,) = decided.workloads
    assert one.sentence == "Deploy eagle3 for chat at concurrency 1, keep it plain from 4 on."
    assert spans(decided) == [(1, 1, "eagle3"), (2, None, "baseline")]
    assert one.why.endswith(" Above: c4 1.00x, no difference shown; c16 1.55x, faster.")
    assert [schedule.schedule for schedule in decided.dynamic_k] == [[(1, 1, 3), (2, 1024, 0)]]


def test_b7_one_mode_serves_a_workload_though_another_gains_more_at_a_higher_load(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 75.0, 60.0], **drafted())
    cells += ladder("ngram", [70.0, 70.0, 80.0], **drafted("ngram", 5))
    decided, _ = answer(folder, cells)
    assert (
        decided.workloads[0].sentence == "Deploy eagle3 for chat up to concurrency 16, the highest that was measured."
    )
    assert spans(decided) == [(1, 16, "eagle3"), (17, None, "baseline")]


def test_m7_a_gain_below_the_margin_is_not_worth_a_change(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [x * 1.3 for x in BASE], **drafted())
    decided, _ = answer(folder, cells, plan({"eagle3": ("eagle3", 3)}, margin=0.5))
    (one,) = decided.workloads
    assert not one.speculative
    assert "below_margin" in {reason.code for reason in one.candidates[0].reasons}
    assert "50% or more" in one.sentence


def test_m31_throughput_that_falls_keeps_a_mode_out(folder: Write) -> None:
    cells = ladder("baseline", BASE)
    for made in ladder("eagle3", [90.0, 85.0, 70.0], **drafted()):
        made.agg_tok_s = 10.0
        cells.append(made)
    decided, _ = answer(folder, cells)
    (one,) = decided.workloads
    assert not one.speculative
    assert "throughput_falls" in {reason.code for reason in one.candidates[0].reasons}


def test_b7_ties_go_to_the_simpler_mode(folder: Write) -> None:
    cells = ladder("baseline", BASE)
    cells += ladder("ngram", [90.0, 80.0, 60.0], **drafted("ngram", 5))
    cells += ladder("eagle3", [90.3, 80.3, 60.2], **drafted())
    decided, _ = answer(folder, cells, plan({"ngram": ("ngram", 5), "eagle3": ("eagle3", 3)}))
    (one,) = decided.workloads
    assert one.mode == "ngram"
    assert "simpler" in next(c for c in one.candidates if c.mode == "eagle3").reasons[0].message


def test_b7_ties_go_to_the_smaller_k(folder: Write) -> None:
    cells = ladder("baseline", BASE)
    for k, lift in ((5, 1.002), (3, 1.0), (2, 0.8)):
        cells += ladder(f"k{k}", [90.0 * lift, 80.0 * lift, 60.0 * lift], **drafted("eagle3", k))
    decided, _ = answer(folder, cells, plan({"k5": ("eagle3", 5), "k3": ("eagle3", 3), "k2": ("eagle3", 2)}))
    assert decided.workloads[0].mode == "k3"


def test_m32_dynamic_k_follows_the_best_paying_k_per_load(folder: Write) -> None:
    cells = ladder("baseline", BASE)
    cells += ladder("k5", [100.0, 70.0, 38.0], **drafted("eagle3", 5))
    cells += ladder("k2", [85.0, 80.0, 39.0], **drafted("eagle3", 2))
    decided, _ = answer(folder, cells, plan({"k2": ("eagle3", 2), "k5": ("eagle3", 5)}))
    (schedule,) = decided.dynamic_k
    assert schedule.schedule == [(1, 1, 5), (2, 4, 2), (5, 1024, 0)]


@pytest.mark.parametrize("flaw", ["lossy", "partial", "missing"])
def test_m18_b6_lossy_partial_and_missing_are_never_adopted(folder: Write, flaw: str) -> None:
    name = "lossy" if flaw == "lossy" else "eagle3"
    mode = ladder(name, [90.0, 80.0, 60.0], lossy=flaw == "lossy", **drafted())
    if flaw == "partial":
        for made in mode:
            made.over = {"summary": {"requests": 20, "failed": 0, "completed": False}}
    if flaw == "missing":
        mode = [made for made in mode if made.replicate == 1]
    decided, _ = answer(folder, ladder("baseline", BASE) + mode, plan({name: ("eagle3", 3)}))
    assert not decided.workloads[0].speculative
    assert decided.workloads[0].mode == "baseline"


def test_off_is_an_answer_and_says_why(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("draft", [30.0, 25.0, 12.0], **drafted("draft_model", 5))
    decided, _ = answer(folder, cells)
    assert decided.workloads[0].sentence == "Keep chat plain: every other mode is slower."


def test_m35_short_answers_are_said(folder: Write) -> None:
    slow_start = {"ttfts": [3.0] * 20}
    cells = ladder("baseline", BASE, **slow_start) + ladder("eagle3", [90.0, 80.0, 60.0], **slow_start, **drafted())
    decided, comparison = answer(folder, cells)
    assert "Decoding is only 40% of a request's time" in decided.workloads[0].why
    row = next(row for row in comparison.cells if row.mode == "eagle3")
    assert "short_answers" in {found.code for found in row.findings}


def test_two_workloads_make_one_headline(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 80.0, 60.0], **drafted())
    cells += ladder("baseline", BASE, kind="json") + ladder("eagle3", BASE, kind="json", **drafted())
    results = folder(cells)
    tables.write(compare(results), results)
    decision.write(results)
    assert "**Deploy eagle3 for chat up to concurrency 16, keep json plain.**" in (results / "decision.md").read_text()


def test_m32_deploy_holds_a_command_a_compose_file_and_routes(folder: Write) -> None:
    server = ServerSpec(
        engine="vllm",
        launcher="docker",
        image="vllm/vllm-openai:v0.33.0",
        image_digest="sha256:" + "a" * 64,
        args={"max-model-len": 8192},
        speculative={"method": "eagle3", "num_speculative_tokens": 3, "model": "head"},
    )
    checkpoints = {"target": CheckpointSpec(hub="meta-llama/Llama-3.1-8B-Instruct"), "head": CheckpointSpec(hub="o/h")}
    mode = SessionSpec(server=server, checkpoints=checkpoints, against="baseline")
    plain = SessionSpec(
        server=server.model_copy(update={"speculative": None}),
        checkpoints={"target": checkpoints["target"]},
        against=None,
    )
    cells = ladder("baseline", BASE, over={"session": plain.model_dump()})
    cells += ladder("eagle3", [90.0, 80.0, 38.0], **{**drafted(), "over": {"session": mode.model_dump()}})
    results = folder(cells)
    tables.write(compare(results), results)
    decided = decision.write(results)
    assert "--speculative-config" in decided.serve["eagle3"]
    script = (results / "deploy" / "eagle3.sh").read_text()
    assert "meta-llama/Llama-3.1-8B-Instruct" in script
    assert '"num_speculative_tokens"' in script
    compose = (results / "deploy" / "eagle3.compose.yaml").read_text()
    assert "vllm/vllm-openai:v0.33.0@sha256:aaaa" in compose
    assert "127.0.0.1:8000:8000" in compose
    routes = json.loads((results / "deploy" / "routes.json").read_text())
    assert routes["default"] == "baseline"
    assert (results / "deploy" / "baseline.sh").exists()


def test_a_request_rate_alone_is_decided_too(folder: Write) -> None:
    cells = starts("baseline", [50, 50.2], rate=2.5) + starts("eagle3", [90, 91], rate=2.5, **drafted())
    decided, comparison = answer(folder, cells)
    assert decided.workloads[0].sentence == "Deploy eagle3 for chat at 2.5 requests/s."
    assert decided.routes == []
    assert {row.load for row in comparison.cells} == {"r2.5"}


def test_the_request_rate_at_which_a_mode_pays_is_the_one_that_is_named(folder: Write) -> None:
    cells = starts("baseline", [50, 50.2], rate=1.0) + starts("eagle3", [50.1, 50.3], rate=1.0, **drafted())
    cells += starts("baseline", [50, 50.2], rate=2.5) + starts("eagle3", [90, 91], rate=2.5, **drafted())
    decided, _ = answer(folder, cells)
    assert decided.workloads[0].sentence == "Deploy eagle3 for chat at 2.5 requests/s."
    assert decided.workloads[0].why.endswith(" At request rates: r1 1.00x, no difference shown.")


def test_a_loss_at_a_request_rate_is_told_where_concurrency_decides(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 75.0, 62.0], **drafted())
    cells += starts("baseline", [50, 50.2], rate=2.5) + starts("eagle3", [30, 30.1], rate=2.5, **drafted())
    decided, _ = answer(folder, cells)
    assert decided.workloads[0].sentence.startswith("Deploy eagle3 for chat up to concurrency 16")
    assert decided.workloads[0].why.endswith(" At request rates: r2.5 0.60x, slower.")


def test_a_concurrency_that_is_run_and_was_not_measured_is_told(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 75.0, 62.0], **drafted())
    decided, _ = answer(folder, cells, plan({"eagle3": ("eagle3", 3)}, at=8))
    assert "Concurrency 8 was not measured; decided at 16." in decided.workloads[0].why


def test_m15_m34_curves_over_request_rates(folder: Write) -> None:
    cells = []
    for rate, speed in ((1.0, 90.0), (4.0, 70.0)):
        cells += starts("baseline", [50, 50.2], rate=rate) + starts(
            "eagle3", [speed, speed * 1.003], rate=rate, **drafted()
        )
    given = Plan(
        name="made",
        modes=[
            PlannedMode(name="baseline", against=None),
            PlannedMode(name="eagle3", against="baseline", method="eagle3"),
        ],
        cells=[CellSpec(kind="chat", load=Load(rate=rate), warmup=4) for rate in (1.0, 4.0)],
        sweeps=[Sweep(axis="rate", method="rate", points={"r1": 1.0, "r4": 4.0})],
    )
    _, comparison = answer(folder, cells, given)
    curve = next(one for one in comparison.curves if one.method == "eagle3")
    assert [point.x for point in curve.points] == [1.0, 4.0]
    assert curve.load is None


def test_an_open_question_is_not_told_as_an_answer(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [x * 1.08 for x in BASE], **drafted())
    results = folder(cells)
    tables.write(compare(results), results)
    decided = decision.write(results)
    assert decided.workloads[0].verdict.word == "undecided"
    assert "plain for now (not settled yet)" in (results / "decision.md").read_text()
    assert decided.workloads[0].next_step.startswith("Set replicates to ")


def test_a_load_whose_cell_is_missing_ends_the_range_and_is_no_crossover(folder: Write) -> None:
    mode = [one for one in ladder("eagle3", [90.0, 75.0, 62.0], **drafted()) if one.concurrency != 4]
    decided, _ = answer(folder, ladder("baseline", BASE) + mode)
    (one,) = decided.workloads
    assert (one.from_concurrency, one.up_to, one.crossover) == (1, 1, None)
    assert one.sentence == "Deploy eagle3 for chat at concurrency 1; 4 cannot be told."
    assert one.next_step == "Run the workflow again; it measures what is missing."
    assert spans(decided) == [(1, 1, "eagle3"), (2, None, "baseline")]


def test_a_baseline_that_is_missing_below_is_no_reason_to_keep_it_plain_there(folder: Write) -> None:
    base = [one for one in ladder("baseline", BASE) if one.concurrency != 1]
    decided, _ = answer(folder, base + ladder("eagle3", [90.0, 75.0, 62.0], **drafted()))
    assert decided.workloads[0].sentence == (
        "Deploy eagle3 for chat from concurrency 2 to 16, the highest that was measured; 1 cannot be told."
    )


def test_a_throughput_that_is_not_known_is_not_taken_for_one_that_does_not_fall(folder: Write) -> None:
    mode = ladder("eagle3", [90.0, 75.0, 62.0], **drafted())
    for made in mode:
        made.tokens = [None, *[101] * (len(made.rates) - 1)]
        made.over = {"summary": {"requests": len(made.rates), "failed": 0, "completed": True}}
    decided, _ = answer(folder, ladder("baseline", BASE) + mode)
    (one,) = decided.workloads
    assert not one.speculative
    assert "throughput_unknown" in {reason.code for reason in one.candidates[0].reasons}
    assert "its throughput is not known" in one.sentence
    assert one.batch_mode is None


def test_dynamic_k_begins_where_the_answer_does(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("eagle3", [90.0, 48.0, 62.0], **drafted())
    decided, _ = answer(folder, cells, plan({"eagle3": ("eagle3", 3)}, at=16))
    assert decided.workloads[0].sentence == "Deploy eagle3 for chat from concurrency 5 to 16, keep it plain below."
    assert [one.schedule for one in decided.dynamic_k] == [[(1, 4, 0), (5, 16, 3), (17, 1024, 0)]]


def test_dynamic_k_carries_the_options_of_the_mode_that_is_deployed(folder: Write) -> None:
    cells = ladder("baseline", BASE) + ladder("baseline", BASE, kind="json")
    for name, lookup, here, there in (("ngram-a", 4, 90.0, 55.0), ("ngram-b", 8, 55.0, 90.0)):
        with_k = drafted("ngram", 5)
        with_k["speculative"] = {**with_k["speculative"], "prompt_lookup_max": lookup}
        cells += ladder(name, [here, here, here], **with_k) + ladder(name, [there, there, there], kind="json", **with_k)
    decided, comparison = answer(folder, cells)
    assert [(one.kind, one.mode) for one in decided.workloads] == [("chat", "ngram-a"), ("json", "ngram-b")]
    found = {one["kind"]: one["speculative_config"] for one in dynamic(decided, comparison)}
    assert {kind: options["prompt_lookup_max"] for kind, options in found.items()} == {"chat": 4, "json": 8}
