"""Every results file has a schema that follows from its record, and every version ever written stays readable (M36)."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from specdec_lab.formats import FORMATS, SCHEMAS, Format, format_of

EXAMPLES = Path(__file__).with_name("examples")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_the_schema_in_the_package_is_what_the_record_says(form: Format) -> None:
    written = (SCHEMAS / form.schema_file).read_text(encoding="utf-8")
    assert written == form.schema(), "run `make generated`; if old files no longer fit, raise the version instead"


@pytest.mark.parametrize("schema", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_each_schema_of_each_version_has_an_example_that_fits_it(schema: Path) -> None:
    example = json.loads((EXAMPLES / schema.name).read_text(encoding="utf-8"))
    jsonschema.validate(example, json.loads(schema.read_text(encoding="utf-8")), jsonschema.Draft202012Validator)


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_an_example_of_any_version_is_still_read(example: Path) -> None:
    name = example.name.split(".")[0]
    form = next(one for one in FORMATS if one.name == name)
    content = json.loads(example.read_text(encoding="utf-8"))
    text = json.dumps([content] if form.many else content)
    form.check(text.encode())


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_an_unknown_key_and_nan_are_refused(form: Format) -> None:
    content = json.loads((EXAMPLES / form.schema_file).read_text(encoding="utf-8"))
    for wrong in ({**content, "surprise": 1}, {**content, "size_bytes": float("nan")}):
        text = json.dumps([wrong] if form.many else wrong)
        with pytest.raises(ValueError):
            form.check(text.encode())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("results/demo/sessions/ngram/r2/code_c4.json", "cell"),
        ("results/demo/sessions/ngram/r2/partial/code_c4.json", "cell"),
        ("results/demo/sessions/ngram/r2/session.json", "session"),
        ("results/demo/sessions/ngram/r2/failure.json", "failure"),
        ("cells/measured/ab/abcdef.json", "cell"),
        ("results/demo/prompts.jsonl", "prompt"),
        ("results/demo/report.html", None),
        ("workflow/specdec_lab/config/schema.json", None),
    ],
)
def test_a_file_is_known_by_its_place(path: str, name: str | None) -> None:
    found = format_of(path)
    assert (found.name if found else None) == name


def test_a_bad_line_of_prompts_is_named() -> None:
    form = next(one for one in FORMATS if one.name == "prompt")
    good = json.dumps(json.loads((EXAMPLES / form.schema_file).read_text(encoding="utf-8")))
    with pytest.raises(ValueError, match="line 2"):
        form.check(f'{good}\n{{"id": 1}}\n'.encode())
