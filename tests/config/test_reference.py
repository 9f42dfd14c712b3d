"""The schema and the reference page say what the models say."""

import json
from pathlib import Path

from specdec_lab.config import reference


def test_the_schema_is_in_step_with_the_models():
    assert reference.SCHEMA.read_text(encoding="utf-8") == reference.schema(), "run `make generated`"


def test_the_reference_page_is_in_step_with_the_models():
    assert Path("docs/config.md").read_text(encoding="utf-8") == reference.page(), "run `make generated`"


def test_the_schema_refuses_unknown_keys_everywhere():
    made = json.loads(reference.schema())
    blocks = [made, *(block for name, block in made["$defs"].items() if name != "JsonValue")]
    assert len(blocks) > 8
    assert all(block["additionalProperties"] is False for block in blocks)


def test_every_key_is_described():
    for name in ("workload", "load", "protocol", "decision", "engine"):
        assert f"## `{name}`" in reference.page()
    assert "| `temperature` | number |" in reference.page()
