"""llama.cpp: flags, checks before a start, facts from the log, and the real embedded server with each kind of draft."""

import json
import re
import socket
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

import httpx
import pytest

from specdec_lab import checkpoints, engines, launchers
from specdec_lab.engines import embedded_llama, http
from specdec_lab.engines.base import Named
from specdec_lab.engines.llama_flags import SERVER_FLAGS, WORDS
from specdec_lab.launchers.base import LaunchPlan
from specdec_lab.records.spec import CheckpointSpec, ServerSpec

ENGINE = engines.get("llama_cpp")
CHECKPOINTS = {"target": PurePosixPath("/m/t.gguf"), "draft": PurePosixPath("/m/my draft.gguf")}


def server(speculative=None, **more) -> ServerSpec:
    return ServerSpec(engine="llama_cpp", launcher="process", speculative=speculative, **{"gpus": 0, **more})


def argv(spec: ServerSpec) -> list[str]:
    return ENGINE.argv(spec, CHECKPOINTS, host="127.0.0.1", port=8123)


def test_m26_caches_are_off_and_metrics_on_unless_the_config_says_otherwise():
    plain = argv(server())
    assert "--no-cache-prompt" in plain
    assert "--metrics" in plain
    assert plain[plain.index("--cache-ram") + 1] == "0"
    assert "--cache-prompt" in argv(server(args={"cache-prompt": True}))


def test_all_modes_share_their_flags_apart_from_the_speculation():
    args = {"c": 4096, "np": 4, "kv_unified": True, "fit": False}
    plain = argv(server(args=args))
    ngram = argv(server({"method": "ngram-simple", "ngram-simple-size-n": 8}, args=args))
    assert ngram[: len(plain)] == plain
    assert ngram[len(plain) :] == ["--spec-type", "ngram-simple", "--spec-ngram-simple-size-n", "8"]
    assert plain[plain.index("--fit") + 1] == "off"
    assert plain[plain.index("--ctx-size") + 1] == "4096"


def test_c9_a_draft_path_with_spaces_stays_one_argument():
    words = argv(server({"method": "draft-simple", "model": "draft", "draft-n-max": 5}))
    assert words[-5:] == ["draft-simple", "--spec-draft-model", "/m/my draft.gguf", "--spec-draft-n-max", "5"]


@pytest.mark.parametrize(
    ("block", "text", "hint"),
    [
        ({"method": "ngram-simpel"}, "no method 'ngram-simpel'", "ngram-simple"),
        ({}, "`method` is missing", "ngram-simple"),
        ({"method": "ngram-simple", "ngram-simple-size": 3}, "unknown option", "ngram-simple-size-"),
        ({"method": "ngram-simple", "draft-n-max": 3}, "does nothing", "draft-simple"),
        ({"method": "draft-simple", "model": "head"}, "no checkpoint has the role", "draft"),
        ({"method": "draft-simple", "draft-n-max": 0}, "must be positive", ""),
        ({"method": "draft-simple", "draft-n-max": "many"}, "must be a whole number", ""),
        ({"method": "draft-simple", "draft-n-max": 4.0}, "must be a whole number", "write 4"),
        ({"method": "draft-simple", "draft-p-min": "much"}, "must be a number", ""),
        ({"method": "draft-simple", "draft-max": 4}, "removed", "draft-n-max"),
    ],
)
def test_m18_a_bad_mode_is_refused_before_any_start(block, text, hint):
    found = ENGINE.problems(server(block), ["target", "draft"])
    assert [f.code for f in found] == ["bad_speculation"]
    assert text in found[0].message
    assert hint in found[0].hint
    assert found[0].hint, "every fault says how to mend it"


def test_a_flag_whose_old_name_was_removed_is_taken_under_its_new_one():
    block = {"method": "draft-simple", "draft-p-min": 0.5}
    assert ENGINE.problems(server(block), ["target", "draft"]) == []
    words = argv(server(block))
    assert words[words.index("--spec-draft-p-min") + 1] == "0.5"


def test_a_flag_the_embedded_server_lacks_is_refused_but_not_for_a_full_llama_server():
    assert "no flag `--lora`" in ENGINE.problems(server(args={"lora": "x"}), [])[0].message
    assert ENGINE.problems(server(args={"lora": "x"}, command=["llama-server"]), []) == []
    assert ENGINE.problems(server(args={"spec-type": "ngram-mod"}), [])[0].code == "bad_args"


@pytest.mark.parametrize(
    ("args", "text", "hint"),
    [
        ({"cache-type-k": "q9_0"}, "cannot be 'q9_0'", "q8_0"),
        ({"cache-type-v": True}, "cannot be", ""),
        ({"flash-attn": "of"}, "cannot be 'of'", "off"),
        ({"threads": "many"}, "must be a whole number", ""),
        ({"threads": "0x10"}, "must be a whole number", "write 16"),
        ({"threads": "1_0"}, "must be a whole number", "write 10"),
        ({"threads": True}, "must be a whole number", ""),
        ({"ctx-size": 4096.5}, "must be a whole number", ""),
        ({"ctx-size": 4096.0}, "must be a whole number, not '4096.0'", "write 4096"),
        ({"kv-unified": "yes"}, "must be true or false", ""),
    ],
)
def test_a_value_that_a_flag_cannot_have_is_refused_before_any_start(args, text, hint):
    found = ENGINE.problems(server(args=args), [])
    assert [f.code for f in found] == ["bad_args"]
    assert text in found[0].message
    assert hint in found[0].hint
    assert found[0].hint, "every fault says how to mend it"


def test_values_that_flags_can_have_are_taken():
    args = {"flash-attn": True, "fit": "off", "gpu-layers": -1, "threads": "2", "cache-type-k": "bf16"}
    assert ENGINE.problems(server(args=args), []) == []


def test_synthetic_acceptance_is_lossy_and_nothing_else_is():
    assert ENGINE.lossy(server({"method": "draft-simple", "synth-len": 3.0}))
    assert not ENGINE.lossy(server({"method": "draft-simple"}))
    assert not ENGINE.lossy(server())


def test_the_deploy_command_leaves_out_what_only_a_measurement_needs():
    spec = server({"method": "ngram-mod"}, args={"ctx-size": 8192, "cache-prompt": False})
    argv = ENGINE.deploy_args(spec, {"target": Named("t.gguf")}, host="127.0.0.1", port=8080)
    where = "--model t.gguf --host 127.0.0.1 --port 8080"
    assert " ".join(argv) == f"{where} --metrics --fit off --ctx-size 8192 --spec-type ngram-mod"


def test_lost_speculation_is_a_fact_of_the_log():
    facts = ENGINE.facts(["0.1 E srv load_model: the target and draft vocabs are not compatible"])
    assert "not compatible" in facts["speculation_lost"]


def test_an_unknown_flag_of_the_embedded_server_ends_with_2_and_names_it():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "specdec_lab.engines.embedded_llama",
            "-m",
            "x",
            "--port",
            "1",
            "--spec-ngram-mod-n-mx",
            "3",
        ],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 2
    assert "--spec-ngram-mod-n-mx" in done.stderr


@pytest.mark.parametrize(
    ("name", "text"), [(flag.name, text) for flag in SERVER_FLAGS for text in WORDS.get(flag.kind, ())]
)
def test_every_word_of_a_flag_reaches_llama_cpp_and_is_read_back(name: str, text: str) -> None:
    library = pytest.importorskip("xllamacpp", reason="the embedded engine is not installed (pip install -e '.[demo]')")
    given, types = embedded_llama.wanted(["--model", "x.gguf", f"--{name}", text])
    params = embedded_llama.build_params(library, given, types)
    assert embedded_llama.effective(params, types)[name] == text


@pytest.fixture(scope="module")
def gguf() -> PurePosixPath:
    pytest.importorskip("xllamacpp", reason="the embedded engine is not installed (pip install -e '.[demo]')")
    return PurePosixPath(checkpoints.fetch(CheckpointSpec(bundled="smollm2-135m-q4_1")).path)


@pytest.mark.engine
@pytest.mark.parametrize(
    "block",
    [
        None,
        {"method": "ngram-simple", "ngram-simple-size-n": 6},
        {"method": "draft-simple", "model": "draft", "draft-n-max": 5},
    ],
    ids=["baseline", "ngram", "draft"],
)
def test_the_embedded_server_serves_and_drafts_as_asked(block, gguf, tmp_path, monkeypatch):
    monkeypatch.setenv("SPECDEC_STATE_DIR", str(tmp_path))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    spec = server(block, args={"ctx-size": 4096, "parallel": 2, "threads": 1, "threads-batch": 1, "kv-unified": True})
    spec = spec.model_copy(update={"args": {**spec.args, "flash-attn": "on"}})
    words = ENGINE.argv(spec, {"target": gguf, "draft": gguf}, host="127.0.0.1", port=port)
    log = Path(tmp_path / "server.log")
    running = launchers.get("process").start(
        LaunchPlan(name="test", argv=[*ENGINE.default_command, *words], log=log, port=port)
    )
    try:
        limit = time.monotonic() + 60
        while http.get_text(running.base_url + ENGINE.ready_path) is None:
            assert running.exited() is None, log.read_text()
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert running.owns_port() is True
        body = {
            "messages": [{"role": "user", "content": "Explain how a tide works to a child."}],
            "model": ENGINE.served_model(spec, {"target": gguf}),
            "temperature": 0,
            "max_tokens": 100,
            **ENGINE.body_extra(spec),
        }
        with httpx.Client(trust_env=False, timeout=60) as client:
            reply = client.post(f"{running.base_url}/v1/chat/completions", json=body).json()
        assert reply["usage"]["completion_tokens"] > 5
        metrics = http.get_text(running.base_url + ENGINE.metrics_path)
        drafted = re.search(r"^llamacpp:spec_decode_num_draft_tokens_total (\S+)$", metrics, re.MULTILINE)
        assert (float(drafted[1]) > 0) == (block is not None)
        if block and block["method"] == "draft-simple":
            assert reply["timings"]["draft_n_accepted"] / reply["timings"]["draft_n"] > 0.9
        facts = ENGINE.facts(log.read_text().splitlines())
        assert facts["version"].startswith("b")
        assert facts["args"]["spec-type"] == (block["method"] if block else "none")
        assert facts["args"]["flash-attn"] == "on"
        assert facts["slots"] == 2
        assert json.dumps(facts)
    finally:
        running.stop(10)
    assert http.get_text(f"http://127.0.0.1:{port}/health") is None
