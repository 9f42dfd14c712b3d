"""The context that a request may take: as asked, and as the engine made it (B3, M18)."""

import re

import pytest

from specdec_lab import engines
from specdec_lab.analysis.comparable import other_contexts
from specdec_lab.engines import context
from specdec_lab.engines.context import changed
from specdec_lab.records.session import ServerLifetime, Session
from specdec_lab.records.spec import ServerSpec, SessionSpec
from specdec_lab.records.stack import Engine, Host, Stack

LOG = "0.00.349.7 I srv load_model: initializing, n_slots = {slots}, n_ctx_slot = {made}, kv_unified = '{unified}'"
STACK = Stack(
    host=Host(cpu="cpu", cores=2, memory_bytes=1, system="Linux", python="3.11"),
    engine=Engine(software="llama_cpp"),
    checkpoints={},
    lab="0",
)


def server(engine: str, launcher: str = "process", **args) -> ServerSpec:
    return ServerSpec(engine=engine, launcher=launcher, args={k.replace("_", "-"): v for k, v in args.items()})


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        (server("llama_cpp", ctx_size=4096), 4096),
        (server("llama_cpp", c=4096, np=4), 1024),
        (server("llama_cpp", ctx_size=4096, parallel=4, kv_unified=True), 4096),
        (server("llama_cpp", ctx_size="4096", parallel=-1), 4096),
        (server("llama_cpp", ctx_size=0), None),
        (server("llama_cpp"), None),
        (server("llama_cpp", "attach", ctx_size=64), None),
        (server("vllm", max_model_len=2048), 2048),
        (server("vllm", max_model_len="8k"), None),
        (server("nim", max_model_len=2048), 2048),
        (server("sglang", context_length=2048), 2048),
        (server("openai"), None),
    ],
)
def test_what_is_asked_for_is_read_from_the_flags(spec, asked):
    assert context.asked(engines.get(spec.engine), spec) == asked


@pytest.mark.parametrize(
    ("args", "log", "told"),
    [
        ({"ctx_size": 64}, {"slots": 1, "made": 256, "unified": "false"}, "256 tokens of context: .* of the 64 asked"),
        (
            {"ctx_size": 4096, "parallel": 3},
            {"slots": 3, "made": 1536, "unified": "false"},
            "1536 .* of the 1365 asked",
        ),
        ({"ctx_size": 4096, "parallel": 4}, {"slots": 4, "made": 1024, "unified": "false"}, None),
        ({"ctx_size": 4096, "kv_unified": True}, {"slots": 4, "made": 4096, "unified": "true"}, None),
        ({}, {"slots": 4, "made": 8192, "unified": "true"}, None),
    ],
)
def test_what_llama_cpp_made_of_it_is_told(args, log, told):
    spec, engine = server("llama_cpp", **args), engines.get("llama_cpp")
    found = changed(engine, spec, engine.facts([LOG.format(**log)]))
    assert (found is None) == (told is None)
    assert told is None or re.search(told, found)
    assert found is None or "`ctx-size`" in found


def test_a_target_that_vllm_shortened_to_its_draft_is_told():
    log = ["Using max model len 4096", "reducing max_model_len to 2048 because of the draft"]
    engine = engines.get("vllm")
    assert "2048 tokens of context" in str(changed(engine, server("vllm", max_model_len=4096), engine.facts(log)))
    assert changed(engine, server("vllm", max_model_len=4096), engine.facts(log[:1])) is None


def test_the_comparison_tells_it_once_with_its_modes():
    def session(mode: str, made: int) -> Session:
        spec = SessionSpec(server=server("llama_cpp", ctx_size=64), checkpoints={}, against=None)
        lifetime = ServerLifetime(id=mode, started_at="2026-01-01", stack=STACK, facts={"slot_context": made})
        return Session(mode=mode, replicate=1, spec=spec, cells={}, lifetimes=[lifetime], measured=0)

    (found,) = other_contexts([session("baseline", 256), session("ngram", 256), session("exact", 64)])
    assert (found.code, found.severity) == ("context_changed", "info")
    assert found.message.endswith("Modes: baseline, ngram.")
    assert other_contexts([session("exact", 64)]) == []
