"""Every fault of a config is said at once, with file, line, key and mend (cases E1, E2, C9, M17, M18)."""

from pathlib import Path

import pytest

from specdec_lab.config.load import load_config
from specdec_lab.config.problems import ConfigError

GOOD = """
name: x
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints:
  target: {bundled: smollm2-135m-q4_1}
modes:
  baseline: {}
  ngram:
    speculative: {method: ngram-simple}
"""


@pytest.fixture
def faults(tmp_path: Path):
    def of(text: str) -> dict[str, tuple[str, str, int]]:
        path = tmp_path / "c.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            load_config([path])
        document = caught.value
        from specdec_lab.config.strict_yaml import key_path, load

        places = load(path)
        return {key_path(p.path): (p.cause, p.fix, places.place(p.path).line) for p in document.problems}

    return of


def test_the_shipped_configs_are_valid():
    assert load_config([Path("config/config.yaml")]).config.modes.keys() == {"baseline", "ngram", "draft", "eagle3"}
    assert load_config([Path("config/demo.yaml")]).config.name == "demo"


def test_e1_misspelt_and_misplaced_keys_all_show_at_once(faults):
    found = faults(
        GOOD.replace("software: llama_cpp", "sofware: llama_cpp")
        + "warmpu: 2\nmax_tokens: {code: 5}\nonly: [ngrm]\nworkload: {reqests: 3}\n"
    )
    assert found["engine.sofware"][1] == "Did you mean `software`?"
    assert "workload.warmup" in found["warmpu"][1]
    assert found["warmpu"][2] == 10
    assert found["max_tokens"][1] == "It belongs to `workload.max_tokens`."
    assert found["workload.reqests"][1] == "Did you mean `requests`?"


def test_e1_a_mode_that_is_not_defined(faults):
    found = faults(GOOD + "only: [ngrm]\nclaims: [{mode: nope, speedup: 3, source: somebody}]\n")
    assert found["only[0]"][1] == "Did you mean `ngram`?"
    assert "Defined are: baseline, ngram" in found["claims[0].mode"][1]


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        (("name: x", "name: a/b"), "name", "cannot be used as a name"),
        (("name: x", "name: ' '"), "name", "cannot be used as a name"),
        (("name: x", "name: ../x"), "name", "cannot be used as a name"),
        (("name: x", "name: 3"), "name", "not text"),
        (("gpus: 0", "gpus: -1"), "engine.gpus", "at least 0"),
        (("gpus: 0", "gpus: '1'"), "engine.gpus", "whole number"),
        (("gpus: 0", "gpus: 0, version: 0.33"), "engine.version", "not text"),
        (("gpus: 0", "gpus: 0, image: x:1"), "engine.image", "launcher: docker"),
        (("gpus: 0", "gpus: 0, env: {HF_TOKEN: abc}"), "engine.env.HF_TOKEN", "looks like a secret"),
        (("bundled: smollm2-135m-q4_1", "bundled: a, path: b"), "checkpoints.target", "exactly one"),
        (("bundled: smollm2-135m-q4_1", "hub: a/b, revision: main"), "checkpoints.target.revision", "no commit"),
        (("bundled: smollm2-135m-q4_1", "hub: ab"), "checkpoints.target.hub", "no repository"),
        (("  target:", "  other:"), "checkpoints", "`target` is missing"),
        (("  baseline: {}\n", ""), "modes", "no mode is a baseline"),
        (("  baseline: {}", "  baseline: {against: ngram}"), "modes.baseline.against", "compared with nothing"),
        (("  baseline: {}", "  baseline: {sweep: {a: [1]}}"), "modes.baseline.sweep", "nothing to sweep"),
        (("  ngram:", "  ngram:\n    target: big"), "modes.ngram.target", "not defined"),
        (("  ngram:", "  n gram:"), "modes", "cannot be used as a name"),
    ],
)
def test_what_cannot_be_meant_is_refused(faults, change, key, said):
    found = faults(GOOD.replace(*change))
    assert any(path.startswith(key) and said in cause for path, (cause, _, _) in found.items()), found


@pytest.mark.parametrize(
    ("change", "key", "fix"),
    [
        (
            ("speculative: {method: ngram-simple}", "speculative:"),
            "modes.ngram.speculative",
            "plain server, a baseline",
        ),
        (("    speculative", "    sweep:\n    speculative"), "modes.ngram.sweep", "One option of `speculative`"),
        (("    speculative", "    differs:\n    speculative"), "modes.ngram.differs", "Declared differences"),
        (("name: x", "name: x\nworkload: {prompts: }"), "workload.prompts", "JSONL"),
        (("name: x", "name: x\nworkload: {requests: }"), "workload.requests", "null: all of them"),
        (("name: x", "name: x\nonly:"), "only", "Run only these modes"),
        (("name: x", "name: x\ncost:"), "cost", "What a server hour costs"),
        (("gpus: 0", "gpus: 0, version: "), "engine.version", "version that the server must report"),
        (("gpus: 0", "gpus: "), "engine.gpus", "GPUs per server"),
        (("bundled: smollm2-135m-q4_1", "hub: a/b, revision: "), "checkpoints.target.revision", "first fetch"),
    ],
)
def test_a_key_that_was_left_empty_is_not_taken_for_one_that_is_not_there(faults, change, key, fix):
    assert GOOD.count(change[0]) == 1
    found = faults(GOOD.replace(*change))
    assert found[key][0] == "there is no value here"
    assert f"leave `{key.split('.')[-1]}` out" in found[key][1]
    assert fix in found[key][1]
    assert list(found) == [key]


def test_a_written_null_and_an_empty_block_mean_what_stands_there(tmp_path):
    text = GOOD.replace("  baseline: {}", "  baseline: {speculative: null, sweep: ~}\n  plain:")
    (tmp_path / "c.yaml").write_text(text + "workload: {requests: null, warmup: null}\nload:\n")
    config = load_config([tmp_path / "c.yaml"]).config
    assert config.workload.requests is None
    assert config.modes["plain"] == config.modes["baseline"]


def test_every_key_written_out_is_read_again(tmp_path):
    (tmp_path / "c.yaml").write_text(GOOD)
    config = load_config([tmp_path / "c.yaml"]).config
    (tmp_path / "d.json").write_text(config.model_dump_json())
    assert load_config([tmp_path / "d.json"]).config == config


def test_what_one_file_leaves_empty_another_may_fill(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD + "workload: {prompts: }\n")
    (tmp_path / "b.yaml").write_text("workload: {prompts: own.jsonl}\n")
    assert load_config([tmp_path / "a.yaml", tmp_path / "b.yaml"]).config.workload.prompts == "own.jsonl"


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ("load: {concurrency: [1, 1]}", "stands twice"),
        ("load: {concurrency: [0]}", "more than 0"),
        ("load: {concurrency: []}", "no load"),
        ("load: {rates: [0.12345671, 0.12345672]}", "have one name among the results, r0.123457"),
        ("load: {rates: [1000000, 1000001.5]}", "1000000.0 and 1000001.5 have one name"),
        ("workload: {kinds: [code, code]}", "stands twice"),
        ("workload: {context_tokens: [8000, 8000]}", "stands twice"),
        ("load: {rates: [0]}", "more than 0"),
        ("decision: {concurrency: 7}", "not measured"),
        ("protocol: {baseline_replicates: 1}", "at least 2"),
        ("workload: {temperature: -1}", "at least 0"),
        ("workload: {temperature: hot}", "must be a number"),
        ("decision: {margin: 2}", "less than 1"),
    ],
)
def test_loads_and_rules_out_of_range_are_refused(faults, load, said):
    assert any(said in cause for cause, _, _ in faults(GOOD + load + "\n").values())


def test_a_second_file_is_laid_upon_the_first(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text("name: y\nmodes: {ngram: {speculative: {ngram-simple-size-n: 6}}}\n")
    config = load_config([tmp_path / "a.yaml", tmp_path / "b.yaml"]).config
    assert config.name == "y"
    assert config.modes["ngram"].speculative == {"method": "ngram-simple", "ngram-simple-size-n": 6}


def test_prompts_of_the_second_file_have_kinds_of_their_own(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD + "workload: {requests: 5, kinds: [code], max_tokens: {code: 9}}\n")
    own, same = tmp_path / "own.yaml", tmp_path / "same.yaml"
    own.write_text("workload: {prompts: traffic.jsonl, max_tokens: {support: 7}}\n")
    same.write_text("workload: {requests: 6}\n")
    found = load_config([tmp_path / "a.yaml", own]).config.workload
    assert (found.requests, found.kinds, found.max_tokens) == (5, None, {"support": 7})
    found = load_config([tmp_path / "a.yaml", same, same]).config.workload
    assert (found.requests, found.kinds, found.max_tokens) == (6, ["code"], {"code": 9})


def test_a_fault_of_the_second_file_is_placed_there(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD)
    (tmp_path / "b.yaml").write_text("\nnam: y\n")
    with pytest.raises(ConfigError, match=r"b\.yaml:2:1"):
        load_config([tmp_path / "a.yaml", tmp_path / "b.yaml"])
