"""Real logs of failed starts give the right cause; healthy ones give none; the first error counts (C2)."""

from pathlib import Path

import pytest

from specdec_lab.failures import FAILURES, diagnose, known
from specdec_lab.launchers.base import Exit

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
EXPECTED = {
    "vllm_bad_json": ("speculation_json", 3),
    "vllm_ctx_too_long": ("context_too_long", 6),
    "vllm_draft_no_model": ("speculation_incomplete", 4),
    "vllm_eagle3_wrong_ckpt": ("wrong_head", 4),
    "vllm_medusa_head": ("wrong_head", 4),
    "vllm_missing_draft": ("model_not_found", 1),
    "vllm_missing_model": ("model_not_found", 1),
    "vllm_missing_model_hub": ("model_not_found", 1),
    "vllm_mlp_speculator": ("unknown_method", 4),
    "vllm_mtp_no_heads": ("no_mtp_heads", 4),
    "vllm_ngram_no_k": ("speculation_incomplete", 4),
    "vllm_port_in_use": ("port_taken", 11),
    "vllm_suffix_no_arctic": ("suffix_dependency", 4),
    "vllm_unknown_flag": ("unknown_option", 4),
    "vllm_unknown_key": ("unknown_option", 4),
    "vllm_unknown_method": ("unknown_method", 4),
    "vllm_vocab_mismatch": ("vocabulary_mismatch", 5),
    "llama_missing_model": ("model_not_found", 1),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_log_of_a_failed_start_names_its_cause_place_and_fix(name):
    found = diagnose((LOGS / f"{name}.log").read_text(encoding="utf-8"), Exit(code=1), name.split("_")[0])
    assert (found.code, found.number) == EXPECTED[name]
    assert found.cause
    assert found.fix
    assert "line" in found.place
    assert "exit code 1" in found.place
    assert found.excerpt


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("OSError: You are trying to access a gated repo.", "gated_repo"),
        ("huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: x)", "gated_repo"),
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12080).", "driver_too_old"),
        (
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=13.0, please update your driver",
            "driver_too_old",
        ),
        (
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]]',
            "no_gpu_runtime",
        ),
        ("Failed to initialize NVML: Unknown Error", "no_gpu_runtime"),
        ("Failed to initialize NVML: Driver/library version mismatch", "driver_mismatch"),
        ("nvidia-container-cli: initialization error: nvml error: driver/library version mismatch", "driver_mismatch"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out_of_memory"),
        (
            "ValueError: Free memory on device cuda:0 (1/8 GiB) is less than desired GPU memory utilization",
            "out_of_memory",
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
            "out_of_memory",
        ),
        ("ValueError: Unknown speculative algorithm name: MEDUSA", "unknown_method"),
        (
            "ValueError: STANDALONE has different token-to-id mappings even though their vocab sizes match.",
            "vocabulary_mismatch",
        ),
        ("error: invalid argument: --draft-maxx", "unknown_option"),
        ("RuntimeError: Model does not support EAGLE3 interface", "no_eagle3_support"),
    ],
)
def test_texts_of_engines_that_were_not_run_here_are_known_too(line, code):
    log = f"starting\n{line}\nRuntimeError: Engine core initialization failed. See root cause above."
    assert diagnose(log, Exit(code=1)).code == code


def test_c2_the_first_error_counts_and_the_umbrella_never():
    lines = [f"loading layer {n}" for n in range(119)] + ["ValueError: bad draft vocab"]
    lines += ["more"] * 279 + ["RuntimeError: Engine core initialization failed. See root cause above."]
    found = diagnose("\n".join(lines), Exit(code=1))
    assert (found.code, "bad draft vocab" in found.cause) == ("unknown", True)
    assert found.place == "line 120 of its log; exit code 1"


def test_errors_that_a_warning_only_quotes_are_no_cause():
    log = (
        "(APIServer pid=1) WARNING 11-29 17:49:56 [u.py:1] limit errors like `OSError: [Errno 24] Too many open files`"
    )
    assert diagnose(log, None) is None
    assert diagnose(log, Exit(code=1)).code == "ended"


@pytest.mark.parametrize("name", ["vllm_ok_033_draft", "vllm_ok_024_draft", "vllm_ok_033_ngram"])
def test_a_healthy_log_states_no_failure(name):
    assert diagnose((LOGS / f"{name}.log").read_text(encoding="utf-8"), None) is None


def test_an_oom_kill_is_said_even_when_the_log_is_silent():
    found = diagnose("loading weights\n", Exit(code=137, oom_killed=True))
    assert (found.code, found.number) == ("out_of_memory", 6)


def test_colours_and_carriage_returns_do_not_hide_an_error():
    assert diagnose("\x1b[31mValueError: x\x1b[0m\r\n", Exit(code=1)).cause.endswith("ValueError: x")


def test_each_of_the_twelve_has_an_entry_with_a_fix():
    assert {failure.number for failure in FAILURES} >= set(range(1, 13))
    assert all(failure.cause and failure.fix for failure in FAILURES)
    assert len({failure.code for failure in FAILURES}) == len(FAILURES)
    assert known("eagle3_zero").number == 10
