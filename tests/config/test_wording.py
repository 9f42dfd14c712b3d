"""A value of the wrong kind is told in plain words, with the right form to copy (E1)."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from specdec_lab.config import models, strict_yaml
from specdec_lab.config.load import load_config
from specdec_lab.config.problems import ConfigError
from specdec_lab.config.wording import BLOCK_EXAMPLES, flow

GOOD = """name: x
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints: {target: {bundled: smollm2-135m-q4_1}}
modes: {baseline: {}, ngram: {speculative: {method: ngram-simple}}}
"""
PYDANTIC = ("Input should", "valid dictionary", "Mend the value", "String should", "instance of")


def refused(folder: Path, text: str) -> ConfigError:
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config([path])
    assert not any(words in str(caught.value) for words in PYDANTIC), caught.value
    return caught.value


@pytest.mark.parametrize(
    ("written", "cause", "fix"),
    [
        ("load: {concurrency: 1}", "must be a list, not 1", "Write `concurrency: [1]`."),
        ("load: {rates: 2.5}", "must be a list, not 2.5", "Write `rates: [2.5]`."),
        ("load: {concurrency: 1-4}", "must be a list, not", "Write a list of whole numbers, such as `concurrency: [1,"),
        ("load: {concurrency: '1, 4,16'}", "must be a list", "Write `concurrency: [1, 4, 16]`."),
        ("load: {concurrency: '4'}", "must be a list", "Write `concurrency: [4]`."),
        ("load: {concurrency: all}", "must be a list, not all", "Write a list of whole numbers"),
        ("load: {concurrency: true}", "must be a list, not true", "Write a list of whole numbers"),
        ("load: {rates: 1..4}", "must be a list", "Write a list of numbers, such as `rates: [2.0]`."),
        ("load: {concurrency: {a: 1}}", "must be a list", "Write for example `concurrency: [1, 4, 16]`."),
        ("only: ngram", "must be a list, not ngram", "Write `only: [ngram]`."),
        ("workload: {kinds: 'code, chat'}", "must be a list", "Write `kinds: [code, chat]`."),
        ("workload: {max_tokens: 16}", "a mapping of names", "Write `max_tokens: {code: 16, chat: 16, json: 16}`."),
        ("workload: {max_tokens: [1]}", "a mapping of names", "Write for example `max_tokens: {code: 128,"),
        ("workload: {max_tokens: {code: many}}", 'a whole number, not "many"', "Write a whole number."),
        ("workload: {max_tokens: {code: 1.5}}", "a whole number, not 1.5", "such as 2"),
        ("workload: {requests: '5'}", 'a whole number, not "5"', "Write 5, without quotes."),
        ("workload: {requests: 6.0}", "a whole number, not 6.0", "Write 6."),
        ("workload: {requests: true}", "a whole number, not true", "Write a whole number."),
        ("workload: {temperature: hot}", 'must be a number, not "hot"', "Write a number."),
        ("workload: {temperature: 3}", "at most 2, not 3", "at most 2"),
        ("workload: {ignore_eos: 1}", "true or false, not 1", "`ignore_eos: true` or `ignore_eos: false`"),
        ("workload: {prompts: [a]}", "must be text, not [a]", "Your own traffic"),
        ("load: {concurrency: null}", "no value here", "or leave `concurrency` out"),
        ("load: 4", "a block of keys, not 4", "`load: {concurrency: [1, 4, 16]}`"),
        ("claims: [3]", "a block of keys, not 3", "`- {mode: ngram,"),
        ("claims: {mode: ngram, speedup: 3, source: x}", "must be a list", "Write `claims: [{mode: ngram, speedup: 3,"),
        ("claims: [{mode: ngram, speedup: 3, source: ''}]", "text is empty", "Who says so"),
    ],
)
def test_the_fix_is_the_line_to_write(tmp_path, written, cause, fix):
    (problem,) = refused(tmp_path, GOOD + written + "\n").problems
    assert cause in problem.cause
    assert fix in problem.fix


@pytest.mark.parametrize(
    "written",
    ["0.30", "1e3", "+5", "yes", "111111111111111111111111e12", "1" * 40, "1" * 37 + "e12", "0000000000e5"],
)
@pytest.mark.parametrize("where", ["checkpoints: {target: {hub: a/b, revision: HERE}}", "claims: [{source: HERE}]"])
def test_what_yaml_reads_as_a_number_is_quoted_as_it_stands_in_the_file(tmp_path, written, where):
    text = GOOD.replace("checkpoints: {target: {bundled: smollm2-135m-q4_1}}\n", "")
    problems = refused(tmp_path, text + where.replace("HERE", written) + "\n").problems
    assert f'Quote it: "{written}".' in [problem.fix for problem in problems]


def test_what_a_second_file_says_is_quoted_as_it_stands_there(tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD.replace("gpus: 0", "gpus: 0, version: 0.50"), encoding="utf-8")
    (tmp_path / "b.yaml").write_text("engine: {version: 0.60}\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config([tmp_path / "a.yaml", tmp_path / "b.yaml"])
    assert [problem.fix for problem in caught.value.problems] == ['Quote it: "0.60".']


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("gpus: 0", "gpus: 0, command: llama-server -c 5", 'Write `command: [llama-server, -c, "5"]`.'),
        ("gpus: 0", "gpus: 0, args: --ctx-size 5", "`args: {max-model-len: 8192}`"),
        ("llama_cpp", "vlm", "Did you mean `vllm`?"),
        ("name: x", "name:", "Write one. Results go to"),
        ("name: x", f"name: {'x' * 90}", "Write a shorter one."),
        ("{target: {bundled: smollm2-135m-q4_1}}", "{target: owner/name}", "`target: {hub: owner/name}`"),
        ("{method: ngram-simple}", "ngram-simple", "`speculative: {method: ngram, num_speculative_tokens: 5}`"),
        ("{method: ngram-simple}}", "{method: ngram-simple}, sweep: [2, 3]}", "{num_speculative_tokens: [2, 3]}"),
        ("{method: ngram-simple}}", "{method: ngram-simple}, sweep: {a: 3}}", "Write `a: [3]`."),
    ],
)
def test_the_same_for_engine_checkpoints_and_modes(tmp_path, old, new, fix):
    assert GOOD.count(old) == 1
    (problem,) = refused(tmp_path, GOOD.replace(old, new)).problems
    assert fix in problem.fix


def test_what_a_fix_tells_to_write_for_a_list_is_accepted(tmp_path):
    for written in ("load: {concurrency: [1]}", "workload: {max_tokens: {code: 16, chat: 16, json: 16}}"):
        path = tmp_path / "c.yaml"
        path.write_text(f"{GOOD}{written}\n", encoding="utf-8")
        assert load_config([path]).config.load.concurrency


def blocks() -> list[type[models.Block]]:
    kinds = [value for value in vars(models).values() if isinstance(value, type) and issubclass(value, models.Block)]
    return [kind for kind in kinds if kind not in (models.Block, models.LabConfig)]


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.__name__)
def test_every_block_has_an_example_that_is_right(tmp_path, block):
    path = tmp_path / "e.yaml"
    path.write_text(f"a: {BLOCK_EXAMPLES[block]}\n", encoding="utf-8")
    assert block.model_validate(strict_yaml.load(path).data["a"])


@pytest.mark.parametrize("block", [*blocks(), models.LabConfig], ids=lambda block: block.__name__)
def test_every_example_of_a_field_is_right(block):
    for name, field in block.model_fields.items():
        for example in field.examples or []:
            assert TypeAdapter(field.annotation).validate_python(example, strict=True), name


def test_a_value_on_one_line_is_read_back_as_what_it_is(tmp_path):
    for value in ("-c", "5", "true", "a: b", "*.json", "", "x y", "- a", "1_000", {"a": [1, "b"]}, [None, False, 0.5]):
        path = tmp_path / "v.yaml"
        path.write_text(f"a: {{b: {flow(value)}}}\n", encoding="utf-8")
        assert strict_yaml.load(path).data["a"]["b"] == value
