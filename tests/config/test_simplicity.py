"""The order of modes: simple ones first, whatever the order of keys. It settles ties and is the order of the table."""

import json
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.dag import Lab

MODES: dict[str, Any] = {
    "z-draft": {"speculative": {"method": "draft_model", "model": "draft", "num_speculative_tokens": 3}},
    "head": {"speculative": {"method": "eagle3", "model": "head", "num_speculative_tokens": 3}},
    "lookup-8": {"speculative": {"method": "ngram", "num_speculative_tokens": 8, "prompt_lookup_max": 4}},
    "lookup-2": {"speculative": {"method": "ngram", "num_speculative_tokens": 2, "prompt_lookup_max": 4}},
    "async-off": {"differs": {"why": "to see", "args": {"max-num-seqs": 32}}},
    "baseline": {},
}


def lab(folder: Path, names: list[str], modes: dict[str, Any] = MODES) -> Lab:
    config = {
        "name": "order",
        "engine": {"software": "vllm", "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0"},
        "checkpoints": {
            name: {"hub": f"owner/{name}", "revision": str(number) * 40}
            for number, name in enumerate(["target", "draft", "head"])
        },
        "modes": {name: modes[name] for name in names},
    }
    path = folder / "order.yaml"
    path.write_text(json.dumps(config), encoding="utf-8")
    return Lab.load([path], root=folder)


@pytest.mark.parametrize("turn", [list, lambda names: names[::-1], sorted], ids=["as-is", "reversed", "sorted"])
def test_modes_stand_from_simple_to_demanding_whatever_the_order_of_keys(tmp_path: Path, turn: Any) -> None:
    made = lab(tmp_path, turn(list(MODES)))
    assert list(made.matrix.sessions) == ["baseline", "async-off", "lookup-2", "lookup-8", "head", "z-draft"]
    plan = json.loads(made.resolved())["plan"]
    assert [mode["name"] for mode in plan["modes"]] == list(made.matrix.sessions)


def test_of_two_plain_servers_the_one_called_baseline_is_compared_with(tmp_path: Path) -> None:
    sessions = lab(tmp_path, ["async-off", "lookup-2", "baseline"]).matrix.sessions
    assert sessions["lookup-2"].against == "baseline"


def sweeps(folder: Path, modes: dict[str, Any]) -> list[dict[str, float]]:
    made = lab(folder, ["baseline", *modes], {"baseline": {}, **modes})
    return [one["points"] for one in json.loads(made.resolved())["plan"]["sweeps"]]


def ngram(k: int, longest: int) -> dict[str, Any]:
    return {"speculative": {"method": "ngram", "num_speculative_tokens": k, "prompt_lookup_max": longest}}


def test_m34_a_sweep_over_k_holds_modes_that_differ_in_nothing_else(tmp_path: Path) -> None:
    assert sweeps(tmp_path, {"n2": ngram(2, 4), "n8": ngram(8, 4)}) == [{"n2": 2.0, "n8": 8.0}]
    assert sweeps(tmp_path, {"n2": ngram(2, 4), "n8": ngram(8, 6)}) == []
    two = {"n2": ngram(2, 4), "n8": ngram(8, 4), "m2": ngram(2, 6), "m8": ngram(8, 6)}
    assert sorted(map(sorted, sweeps(tmp_path, two))) == [["m2", "m8"], ["n2", "n8"]]
