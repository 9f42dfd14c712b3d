"""A cap of a long kind is its own; without one it has that of the plain kind (M15)."""

from __future__ import annotations

from pathlib import Path

from specdec_lab.config.load import load_config
from specdec_lab.config.resolve import resolve
from specdec_lab.prompts.need import needs

CONFIG = """name: x
engine: {software: llama_cpp, launcher: process, gpus: 0}
checkpoints: {target: {bundled: smollm2-135m-q4_1}}
modes: {baseline: {}}
load: {concurrency: [1]}
workload:
  context_tokens: [2000, 8000]
  max_tokens: {chat: 128, chat_ctx8000: 64}
"""
KINDS = ["chat", "chat_ctx2000", "chat_ctx8000"]


def test_the_exact_name_wins(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(CONFIG, encoding="utf-8")
    cells = resolve(load_config([path]), kinds=KINDS, known=KINDS).cells
    assert {cell.kind: cell.max_tokens for cell in cells} == {"chat": 128, "chat_ctx2000": 128, "chat_ctx8000": 64}


def test_what_fits_is_reckoned_with_the_same_caps() -> None:
    found = needs(
        prompts=None,
        seed=7,
        kinds=["chat"],
        context_tokens=[2000, 8000],
        requests=4,
        max_tokens={"chat": 12, "chat_ctx8000": 6},
    )
    assert {kind: need.answer for kind, need in found.items()} == {
        "chat": 12,
        "chat_ctx2000": 12,
        "chat_ctx8000": 6,
    }
