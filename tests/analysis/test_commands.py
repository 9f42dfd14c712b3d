"""Serve commands outside the lab: a shell runs them, models can be opened, flags are the measured ones (M32)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from specdec_lab.analysis.commands import container, left_out, serve, shell
from specdec_lab.analysis.deploy import compose, script
from specdec_lab.checkpoints import bundled
from specdec_lab.engines import get
from specdec_lab.records.decision import Decision, DecisionRules
from specdec_lab.records.errors import UserError
from specdec_lab.records.spec import CheckpointSpec, ServerSpec, SessionSpec

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = "sha256:" + "a" * 64
HUB = {
    "target": CheckpointSpec(hub="meta-llama/Llama-3.1-8B-Instruct", revision=COMMIT, gated=True),
    "head": CheckpointSpec(hub="o/h", revision="f" * 40),
}
LOCAL = {"target": CheckpointSpec(path="$MODELS/big one.gguf"), "head": CheckpointSpec(path="~/head.gguf")}
BUNDLED = {"target": CheckpointSpec(bundled="smollm2-135m-q8_0")}
EAGLE = {"method": "eagle3", "model": "head", "num_speculative_tokens": 3}


def session(checkpoints: dict[str, CheckpointSpec], **server: Any) -> SessionSpec:
    return SessionSpec(
        server=ServerSpec(**{"launcher": "process", **server}), checkpoints=checkpoints, against="baseline"
    )


def ran(spec: SessionSpec, folder: Path, **environment: str) -> list[str]:
    """What the program gets when a shell runs the command; every program there is a stub that tells its arguments."""
    argv = serve(spec)
    stub = folder / Path(argv[0]).name
    stub.write_text('#!/bin/sh\nprintf "%s\\0" "$OMP_NUM_THREADS" "$@"\n', encoding="utf-8")
    stub.chmod(0o755)
    script = folder / "serve.sh"
    script.write_text("#!/bin/sh\n" + shell(spec, argv), encoding="utf-8")
    done = subprocess.run(
        ["/bin/sh", str(script)],
        env={"PATH": f"{folder}:{os.environ['PATH']}", "HOME": "/home/somebody", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\0")[:-1]


def after(argv: list[str], flag: str) -> str:
    return argv[argv.index(flag) + 1]


def test_a_bundled_model_is_a_file_in_the_cache_wherever_the_cache_is(tmp_path: Path) -> None:
    spec = session(BUNDLED, engine="llama_cpp", args={"ctx-size": 4096, "threads": 2})
    place = str(bundled.place(BUNDLED["target"]))
    assert place.endswith(".gguf")
    assert after(ran(spec, tmp_path), "--model") == f"/home/somebody/.cache/specdec-lab/{place}"
    assert after(ran(spec, tmp_path, XDG_CACHE_HOME="/x"), "--model") == f"/x/specdec-lab/{place}"
    assert after(ran(spec, tmp_path, SPECDEC_CACHE_DIR="/my models"), "--model") == f"/my models/{place}"


@pytest.mark.parametrize("name", bundled.NAMES)
def test_the_place_of_a_bundled_model_is_where_it_is_fetched_to(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECDEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(bundled, "_whole", lambda path: path == tmp_path / "models" / Path(bundled.MEMBER).name)
    place = tmp_path / bundled.place(CheckpointSpec(bundled=name))
    place.mkdir(parents=True)
    assert bundled.locate(CheckpointSpec(bundled=name)).path == place


def test_the_flags_are_the_sessions_without_what_only_a_measurement_needs(tmp_path: Path) -> None:
    block = {"method": "ngram-simple", "ngram-simple-size-n": 4, "ngram-simple-size-m": 8}
    args = {"ctx-size": 4096, "parallel": 4, "kv-unified": True, "cache-type-k": "bf16", "flash-attn": False}
    spec = session(BUNDLED, engine="llama_cpp", args=args, speculative=block, env={"OMP_NUM_THREADS": "2 # 3"})
    model = Path("/m.gguf")
    measured = get("llama_cpp").argv(spec.server, {"target": model}, host="127.0.0.1", port=8080)
    measured[measured.index(str(model))] = "MODEL"
    threads, *given = ran(spec, tmp_path)
    assert threads == "2 # 3"
    given[given.index("--model") + 1] = "MODEL"
    gone = left_out(spec)
    assert gone == ["--no-cache-prompt", "--cache-ram", "0", "--seed", "0"]
    alias = measured.index("--alias")
    assert [*given] == [w for w in measured[:alias] + measured[alias + 2 :] if w not in gone or w == "off"]
    assert after(given, "--fit") == "off"


def test_own_paths_keep_their_variables_and_a_variable_that_is_missing_is_asked_for(tmp_path: Path) -> None:
    block = {"method": "draft-simple", "model": "head", "draft-n-max": 4}
    spec = session(LOCAL, engine="llama_cpp", command=["/opt/llama/llama-server"], speculative=block)
    argv = serve(spec)
    assert argv[0] == "/opt/llama/llama-server"
    spec = spec.model_copy(update={"server": spec.server.model_copy(update={"command": ["llama-server"]})})
    given = ran(spec, tmp_path, MODELS="/m m")
    assert after(given, "--model") == "/m m/big one.gguf"
    assert after(given, "--spec-draft-model") == "/home/somebody/head.gguf"
    with pytest.raises(AssertionError, match="MODELS: set it as it was when the lab ran"):
        ran(spec, tmp_path)


def test_vllm_serves_the_pinned_hub_model_and_json_with_odd_characters_stays_one_word(tmp_path: Path) -> None:
    template = "{{ $HOME `x` \"q\" 'p' }}"
    args = {"max-model-len": 8192, "seed": 0, "chat-template": template, "enable-prefix-caching": False}
    spec = session(HUB, engine="vllm", args=args, speculative=EAGLE)
    given = ran(spec, tmp_path)[1:]
    assert given[:2] == ["serve", "meta-llama/Llama-3.1-8B-Instruct"]
    assert (after(given, "--host"), after(given, "--port")) == ("127.0.0.1", "8000")
    assert after(given, "--revision") == COMMIT
    assert after(given, "--chat-template") == args["chat-template"]
    assert json.loads(after(given, "--speculative-config")) == {**EAGLE, "model": "o/h", "revision": "f" * 40}
    assert not {"--seed", "--no-enable-prefix-caching", "--generation-config"} & set(given)


def test_a_local_draft_is_put_into_the_json_by_the_shell(tmp_path: Path) -> None:
    spec = session(LOCAL, engine="vllm", speculative=EAGLE)
    given = ran(spec, tmp_path, MODELS="/m")
    assert json.loads(after(given, "--speculative-config"))["model"] == "/home/somebody/head.gguf"


def test_what_was_measured_in_a_container_is_served_by_that_image(tmp_path: Path) -> None:
    spec = session(
        HUB, engine="vllm", launcher="docker", image="vllm/vllm-openai:v0.33.0", image_digest=DIGEST, speculative=EAGLE
    )
    given = ran(spec, tmp_path)[1:]
    assert given[:3] == ["run", "--rm", "--gpus"]
    image = given.index(f"vllm/vllm-openai:v0.33.0@{DIGEST}")
    assert given[image + 1] == "meta-llama/Llama-3.1-8B-Instruct"
    assert after(given[image:], "--host") == "0.0.0.0"
    assert after(given, "-p") == "127.0.0.1:8000:8000"
    assert after(given, "-e") == "HF_TOKEN"
    assert after(given, "-v") == "/home/somebody/.cache/huggingface:/root/.cache/huggingface"


def test_a_container_finds_local_models_where_they_are_mounted(tmp_path: Path) -> None:
    spec = session(BUNDLED, engine="llama_cpp", launcher="docker", image="llama:1", gpus=0)
    given = ran(spec, tmp_path)[1:]
    source, inside, rights = after(given, "-v").split(":")
    assert source.startswith("/home/somebody/.cache/specdec-lab/models/")
    assert (after(given, "--model"), rights) == (inside, "ro")
    assert after(given, "-p") == "127.0.0.1:8080:8080"
    assert "--gpus" not in given


@pytest.mark.parametrize(
    ("engine", "program", "port"), [("sglang", ["python3", "-m", "sglang.launch_server"], 30000), ("nim", [], 8000)]
)
def test_other_images_are_run_as_their_makers_say(engine: str, program: list[str], port: int) -> None:
    block = {"method": "EAGLE3", "model": "head", "num-steps": 3} if engine == "sglang" else EAGLE
    spec = session(HUB, engine=engine, launcher="docker", image="image:1", speculative=block)
    one = container(spec)
    assert one.port == port
    assert one.arguments[: len(program)] == program
    assert one.keys == (["NGC_API_KEY", "HF_TOKEN"] if engine == "nim" else ["HF_TOKEN"])
    if engine == "sglang":
        assert after(one.arguments, "--speculative-draft-model-revision") == "f" * 40


def test_the_compose_file_is_the_same_container(tmp_path: Path) -> None:
    from specdec_lab.config.strict_yaml import load

    args = {"chat-template": "{{ $x }}"}
    for checkpoints, engine in ((HUB, "vllm"), (BUNDLED, "llama_cpp"), (HUB, "nim"), (HUB, "sglang")):
        spec = session(checkpoints, engine=engine, launcher="docker", image="image:1", args=args, env={"A": "1"})
        path = tmp_path / "compose.yaml"
        path.write_text(compose("mode", spec), encoding="utf-8")
        service = load(path).data["services"]["mode"]
        one = container(spec)
        assert [word.replace("$$", "$") for word in service["command"]] == one.arguments
        assert service["ports"] == [f"127.0.0.1:{one.port}:{one.port}"]
        assert set(service["environment"]) == {*one.keys, "A"}
        assert [mount.rpartition("}")[2] for mount in service["volumes"]] == [
            mount.replace("$HF_HOME", "").replace("$SPECDEC_CACHE_DIR", "") for mount in one.mounts
        ]
        assert all("$$" not in mount and ":-" in mount for mount in service["volumes"])


def test_a_served_name_of_the_config_is_kept() -> None:
    for engine, flag in (("vllm", "--served-model-name"), ("sglang", "--served-model-name"), ("llama_cpp", "--alias")):
        assert after(serve(session(HUB, engine=engine, served_model="mine")), flag) == "mine"
        assert flag not in serve(session(HUB, engine=engine))


def test_a_relative_path_is_told_where_it_counts_from() -> None:
    spec = session({"target": CheckpointSpec(path="models/x.gguf")}, engine="llama_cpp")
    assert "relative to the folder that the lab ran in" in shell(spec, serve(spec))
    spec = session(BUNDLED, engine="llama_cpp")
    assert "relative" not in shell(spec, serve(spec))


def test_only_a_script_takes_the_place_of_its_shell() -> None:
    spec = session(BUNDLED, engine="llama_cpp")
    argv = serve(spec)
    decision = Decision(name="made", rules=DecisionRules(), workloads=[])
    assert "\nllama-server" in shell(spec, argv)
    assert "exec" not in shell(spec, argv)
    assert "\nexec llama-server" in script("baseline", argv, spec, decision)


def test_no_target_is_a_plain_error() -> None:
    with pytest.raises(UserError, match="target is not named"):
        serve(session({}, engine="vllm"))
