"""What the config alone can tell is refused before any job, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specdec_lab.dag import Lab
from specdec_lab.records.errors import UserError

CONFIG = """name: mine
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints: {target: {bundled: smollm2-135m-q8_0}}
modes: {baseline: {}, ngram: {speculative: {method: ngram-simple}}}
"""


def load(folder: Path, more: str = "") -> Lab:
    path = folder / "mine.yaml"
    path.write_text(CONFIG + more, encoding="utf-8")
    return Lab.load([path], root=folder)


def test_fields_that_the_client_sets_are_refused_all_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load(tmp_path, "workload: {body: {stream: false, max_tokens: 5, model: x, top_k: 1}}\n")
    told = str(refused.value)
    assert all(f"workload.body.{name}" in told for name in ("stream", "max_tokens", "model"))
    assert "top_k" not in told
    assert "mine.yaml:5" in told


@pytest.mark.parametrize("requests", ["", ", requests: null", ", requests: 5"])
def test_a_concurrency_that_a_kinds_prompts_can_never_reach_is_refused(tmp_path: Path, requests: str) -> None:
    rows = [("chat", f"c{i}") for i in range(5)] + [("sql", "s0")]
    (tmp_path / "own.jsonl").write_text(
        "".join(
            json.dumps({"id": one, "kind": kind, "messages": [{"role": "user", "content": one}], "max_tokens": 9})
            + "\n"
            for kind, one in rows
        )
    )
    more = f"workload: {{prompts: {tmp_path / 'own.jsonl'}{requests}}}\nload: {{concurrency: [1, 2]}}\n"
    with pytest.raises(UserError) as refused:
        load(tmp_path, more)
    assert "prompts of kind `sql` are 1 and can never be 2 in flight" in str(refused.value)
    assert "load.concurrency[1]" in str(refused.value)
    assert load(tmp_path, more.replace("[1, 2]", "[1]")).cell_names() == ["chat_c1", "sql_c1"]


SWEEP = "  m: {speculative: {method: ngram-simple}, sweep: {ngram-simple-size-n: VALUES}}\n"


def test_a_mode_called_placebo_beside_the_real_one_is_refused(tmp_path: Path) -> None:
    text = f"{THREE}  placebo: {{speculative: {{method: ngram-mod}}}}\n"
    told = refusal(tmp_path, f"{text}protocol: {{placebo: true}}\n")
    assert told.startswith("modes.placebo: the mode that `protocol.placebo` adds is called `placebo` too")
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    assert "placebo" in Lab.load([path], root=tmp_path).modes


@pytest.mark.parametrize("first", [True, False])
def test_a_mode_called_as_a_point_of_a_sweep_is_refused(tmp_path: Path, first: bool) -> None:
    own = "  m-ngram-simple-size-n-4: {speculative: {method: ngram-mod}}\n"
    sweep = SWEEP.replace("VALUES", "[3, 4]")
    told = refusal(tmp_path, THREE + (own + sweep if first else sweep + own))
    assert told.startswith("modes.m.sweep.ngram-simple-size-n[1]: ")
    assert "Rename `m-ngram-simple-size-n-4` or `m`" in told


@pytest.mark.parametrize(("values", "at"), [("[3, 4, 3]", 2), ('[3, "3"]', 1), ("[a b, a-b]", 1)])
def test_two_values_of_a_sweep_with_one_name_are_refused(tmp_path: Path, values: str, at: int) -> None:
    told = refusal(tmp_path, THREE + SWEEP.replace("VALUES", values))
    assert told.startswith(f"modes.m.sweep.ngram-simple-size-n[{at}]: two values make the one mode `m-ngram-")


def test_a_bundled_model_that_does_not_exist_is_told_with_those_that_do(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(CONFIG.replace("smollm2-135m-q8_0", "smollm2-360m"), encoding="utf-8")
    with pytest.raises(UserError, match=r"no bundled model `smollm2-360m`") as refused:
        Lab.load([path], root=tmp_path)
    assert "smollm2-135m-q4_1" in str(refused.value)
    assert "checkpoints.target.bundled" in str(refused.value)


def test_a_file_in_the_place_of_the_results_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    load(tmp_path)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "mine").write_text("x", encoding="utf-8")
    with pytest.raises(UserError, match=r"A file stands where"):
        load(tmp_path)


def refusal(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        Lab.load([path], root=folder)
    return str(caught.value)


THREE = """name: mine
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints: {target: {bundled: smollm2-135m-q8_0}}
modes:
  baseline: {}
  ngram: {speculative: {method: ngram-simple}}
  long: {speculative: {method: ngram-simple, ngram-simple-size-n: 6}}
"""


def test_a_fault_of_a_shared_setting_is_told_once_with_its_line_and_its_modes(tmp_path: Path) -> None:
    told = refusal(tmp_path, THREE.replace("gpus: 0}", "gpus: 0,\n  args: {threads: 1,\n    paralel: 4}}"))
    assert told.count("no flag `--paralel`") == 1
    assert told.startswith("engine.args.paralel: ")
    assert "mine.yaml:4:" in told
    assert "modes: baseline, ngram, long" in told
    assert "faults in the config" not in told


def test_a_fault_of_one_modes_own_flags_is_placed_there(tmp_path: Path) -> None:
    told = refusal(tmp_path, f"{THREE}  other: {{differs: {{why: tried, args: {{paralel: 4}}}}}}\n")
    assert told.startswith("modes.other.differs.args.paralel: ")
    assert "mine.yaml:8:" in told
    assert "  modes: " not in told


def test_a_fault_of_a_sweep_is_placed_at_the_sweep_and_that_of_an_option_at_the_option(tmp_path: Path) -> None:
    swept = "  swept: {speculative: {method: ngram-simple}, sweep: {ngram-simple-size-n: [4, 0]}}\n"
    assert refusal(tmp_path, THREE + swept).startswith("modes.swept.sweep.ngram-simple-size-n: ")
    told = refusal(tmp_path, THREE.replace("ngram-simple-size-n: 6", "ngram-simple-size-n: six"))
    assert told.startswith("modes.long.speculative.ngram-simple-size-n: ")


def test_an_endpoint_without_a_url_is_told_once_for_all_its_modes(tmp_path: Path) -> None:
    attach = "launcher: attach, served_model: m, gpus: 0"
    text = THREE.replace("launcher: process, gpus: 0", attach)
    assert refusal(tmp_path, text).count("attach needs a URL") == 1
    assert "modes: baseline, ngram, long" in refusal(tmp_path, text)
    told = refusal(tmp_path, text.replace(attach, f"{attach}, base_url: localhost"))
    assert told.count("is no URL") == 1
    assert told.startswith("engine.base_url: ")


def test_what_is_wrong_with_the_engine_itself_is_not_blamed_on_a_flag(tmp_path: Path) -> None:
    told = refusal(tmp_path, THREE.replace("llama_cpp", "nim").replace("gpus: 0}", "gpus: 0, args: {a: 1}}"))
    assert "engine: a NIM runs in its container" in told
    assert told.count("a NIM runs in its container") == 1


def with_context(args: str, more: str = "") -> str:
    return THREE.replace("gpus: 0}", f"gpus: 0,\n  args: {{{args}}}}}") + more


@pytest.mark.parametrize(
    ("args", "more", "enough"),
    [
        ("ctx-size: 64", "workload: {max_tokens: {code: 40, chat: 20, json: 20}}\n", "256"),
        ("ctx-size: 256", "", "768"),
        ("ctx-size: 1024, parallel: 4", "", "3072 or more (it is shared among 4 slots)"),
        ("ctx-size: 4096, parallel: 4, kv-unified: true", "workload: {context_tokens: [9000]}\n", "11776"),
    ],
)
def test_requests_that_cannot_fit_into_the_context_are_refused_with_what_would_do(
    tmp_path: Path, args: str, more: str, enough: str
) -> None:
    told = refusal(tmp_path, with_context(args, more))
    assert "engine.args.ctx-size: a request of kind `code" in told
    assert f"Set `ctx-size` to {enough}" in told
    assert "modes: baseline, long, ngram" in told
    assert "faults in the config" not in told
    assert "mine.yaml:3:" in told


@pytest.mark.parametrize(("caps", "named"), [("code: 50", "`code`"), ("code: 50, code_ctx9000: 40", "`code_ctx9000`")])
def test_the_cap_to_lower_is_the_one_that_holds(tmp_path: Path, caps: str, named: str) -> None:
    more = f"workload: {{kinds: [code], context_tokens: [9000], max_tokens: {{{caps}}}}}\n"
    assert f"lower workload.max_tokens for {named}." in refusal(tmp_path, with_context("ctx-size: 4096", more))


def test_requests_that_may_not_fit_are_remarked_and_those_that_fit_are_not(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    kinds = "workload: {kinds: [code]}\n"
    path.write_text(with_context("ctx-size: 520", kinds), encoding="utf-8")
    (remark,) = [one for one in Lab.load([path], root=tmp_path).remarks if "takes about" in one]
    assert "520 are asked for" in remark
    path.write_text(with_context("ctx-size: 1024", kinds), encoding="utf-8")
    assert not [one for one in Lab.load([path], root=tmp_path).remarks if "takes about" in one]


def test_only_the_prompts_that_are_sent_count_and_a_cap_shortens_answers(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "kind": "k", "messages": [{"role": "user", "content": "word " * words}], "max_tokens": 50}
        for n, words in enumerate((10, 4000))
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    own = f"workload: {{prompts: {tmp_path / 'own.jsonl'}, requests: "
    assert "kind `k` takes about" in refusal(
        tmp_path, with_context("ctx-size: 1024", f"{own}2}}\nload: {{concurrency: [1]}}\n")
    )
    path = tmp_path / "mine.yaml"
    path.write_text(with_context("ctx-size: 1024", f"{own}1}}\nload: {{concurrency: [1]}}\n"), encoding="utf-8")
    assert set(Lab.load([path], root=tmp_path).modes) == {"baseline", "ngram", "long"}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            'engine: {software: llama_cpp, launcher: process, gpus: 0, env: {"A=B": x}}',
            "'A=B' is no name of a variable",
        ),
        ('engine: {software: llama_cpp, launcher: process, gpus: 0, env: {"": x}}', "'' is no name of a variable"),
        ('engine: {software: llama_cpp, launcher: process, gpus: 0, env: {A: "x\\0y"}}', "holds a NUL character"),
        (
            "modes: {baseline: {}, m: {speculative: {method: ngram-simple}, differs: {why: x, env: {MY_TOKEN: t}}}}",
            "secret",
        ),
        ("only: []", "no mode is named"),
        ("modes: {baseline: {}, BASELINE: {speculative: {method: ngram-simple}}}", "in upper and lower case alone"),
    ],
)
def test_what_would_fail_in_every_session_is_refused(tmp_path: Path, more: str, told: str) -> None:
    key = more.split(":")[0]
    kept = "".join(line + "\n" for line in CONFIG.splitlines() if not line.startswith(key))
    path = tmp_path / "mine.yaml"
    path.write_text(f"{kept}{more}\n", encoding="utf-8")
    with pytest.raises(UserError) as refused:
        Lab.load([path], root=tmp_path)
    assert told in str(refused.value)


@pytest.mark.parametrize("place", ["/dev/null", "file", "file/below"])
def test_a_store_that_is_no_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SPECDEC_STORE", str(tmp_path / place))
    with pytest.raises(UserError, match="A file stands where the folder of the measured cells belongs"):
        load(tmp_path)
