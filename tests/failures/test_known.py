"""Texts of real failures that are near to a known one, and what they are (case C2's kind)."""

from __future__ import annotations

import pytest

from specdec_lab.failures import diagnose
from specdec_lab.launchers.base import Exit


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("RuntimeError: CUDA error: out of memory", "out_of_memory"),
        ("torch.AcceleratorError: CUDA error: out of memory", "out_of_memory"),
        ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "out_of_memory"),
        ("0.01 E load: error loading model: unable to allocate CUDA0 buffer", "out_of_memory"),
        (
            "HTTPError: 401 Client Error: Unauthorized for url: https://hub/x\n\nRepository Not Found for url: https://hub/x.",
            "model_not_found",
        ),
        ("HTTPError: 403 Client Error: Forbidden for url: https://hub/x", "gated_repo"),
        ("2026-01-01T10:00:00.1Z INFO 401 Client Error, ignored\nCUDA out of memory", "out_of_memory"),
        ("[2026-01-01 10:00:00 TP0] WARNING: 401 Client Error, retrying\nCUDA out of memory", "out_of_memory"),
    ],
)
def test_the_text_that_names_the_cause_wins(log: str, code: str) -> None:
    found = diagnose(log, Exit(code=1), "vllm")
    assert found is not None
    assert found.code == code


@pytest.mark.parametrize("why", ["unknown model architecture: 'qwen9'", "tensor 'output.weight' not found"])
def test_a_model_that_was_found_and_cannot_be_read_is_not_called_missing(why: str) -> None:
    found = diagnose(f"0.01 E llama_model_load: error loading model: {why}", Exit(code=1), "llama_cpp")
    assert found is not None
    assert found.code != "model_not_found"
    assert why in f"{found.cause} {found.excerpt}"
