"""The page as text: self-contained, complete, linked, honest about what is missing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from specdec_lab.analysis.findings import CODES
from specdec_lab.analysis.sentences import headline
from specdec_lab.records.comparison import Comparison
from specdec_lab.records.errors import UserError
from specdec_lab.report import html, numbers
from specdec_lab.report.glossary import TERMS, WORDS
from specdec_lab.report.sections import anchor, floors, remarks, slug
from specdec_lab.report.source import read

VOID = {"meta", "link", "br", "input", "img", "hr", "path", "rect", "line", "circle"}


class Structure(HTMLParser):
    """Ids, links, outside addresses and the nesting of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.outside: list[str] = []
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.append(value)
            if name == "href" and value and tag == "a":
                self.links.append(value)
            if name in ("src", "href", "xlink:href") and value and value.startswith(("http", "//", "file")):
                self.outside.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def structure(text: str) -> Structure:
    made = Structure()
    made.feed(text)
    return made


def test_the_page_asks_for_nothing_outside_itself(structure: Structure, text: str) -> None:
    assert structure.outside == []
    assert "default-src 'none'" in text
    assert "connect-src" not in text
    assert not re.search(r"@import|url\(['\"]?(?:https?:)?//", text)


def test_the_page_is_well_formed_and_its_ids_are_unique(structure: Structure) -> None:
    assert structure.wrong == []
    assert structure.open == []
    assert len(structure.ids) == len(set(structure.ids))


def test_every_link_leads_to_something_on_the_page(structure: Structure) -> None:
    assert structure.links
    assert [link for link in structure.links if not link.startswith("#") or link[1:] not in structure.ids] == []


def test_sections_come_in_the_order_in_which_a_reader_asks(text: str) -> None:
    names = re.findall(r'<section id="(\w+)"', text)
    assert names == ["deploy", "sure", "table", "charts", "changed", "text", "stack", "glossary"]


def test_every_row_of_the_comparison_is_in_the_table_and_every_verdict_links_to_its_rows(
    results: Path, structure: Structure, text: str
) -> None:
    comparison = Comparison.read(results / "comparison.json")
    ids = {anchor(row.kind, row.load, row.mode) for row in comparison.cells}
    assert len(ids) == len(comparison.cells)
    assert ids <= set(structure.ids)
    for kind in ("code", "chat"):
        card = text[text.index(f'id="answer-{kind}"') :].split("</article>")[0]
        assert {f"#{one}" for one in ids if f"-{kind}-" in one} <= set(re.findall(r'href="([^"]+)"', card))


def test_every_warning_says_what_to_do(results: Path, text: str) -> None:
    found = remarks(read(results))
    assert found
    for remark in found:
        assert remark.hint
    assert text.count("What to do:</strong>") >= len(found)


def test_the_glossary_has_every_formula_and_every_verdict(text: str) -> None:
    for term in TERMS:
        assert f"<dt>{term.word}" in text
    assert set(WORDS) == {
        "faster",
        "slower",
        "no difference shown",
        "not comparable",
        "unreliable",
        "not exercised",
        "text differs",
        "undecided",
    }


def test_e8_text_of_any_language_and_markup_in_answers_survive(text: str) -> None:
    stored = json.loads(re.search(r'id="texts">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    assert any("日本 🙂" in one and "<b>&amp;" in one for one in stored["texts"])
    assert any("</script>" in one for one in stored["prompts"].values())
    assert "NaN" not in json.dumps(stored)


def test_identical_texts_are_stored_once(text: str) -> None:
    stored = json.loads(re.search(r'id="texts">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    assert len(stored["texts"]) == len(set(stored["texts"]))
    assert len(stored["texts"]) < 2 * 12 + 5


def test_a3_tool_calls_are_there_to_be_seen_side_by_side(text: str) -> None:
    stored = json.loads(re.search(r'id="texts">(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    channels = [cell["rows"]["p2"] for cell in stored["cells"] if cell["kind"] == "code"]
    assert channels
    for answer, reasoning, calls in channels:
        assert stored["texts"][answer].startswith("code 2 ")
        assert reasoning is None
        assert stored["texts"][calls] == 'open {"path": "a<b>.py"}'


def test_charts_lie_beside_the_page_as_svg_and_png(page: Path) -> None:
    for name in ("decode_speedup", "throughput_per_user", "acceptance", "k_sweep", "timeline", "first_differences"):
        drawing = (page.parent / "charts" / f"{name}.svg").read_text(encoding="utf-8")
        assert drawing.startswith("<svg")
        assert "var(--" not in drawing
        assert (page.parent / "charts" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_without_a_decision_is_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"comparison\.json") as caught:
        html.write(tmp_path, tmp_path / "report.html")
    assert "specdec compare" in caught.value.fix


def test_after_much_went_wrong_the_page_says_what_failed_why_and_what_to_do(poor_page: Path) -> None:
    text = poor_page.read_text(encoding="utf-8")
    assert "The GPU has too little memory &lt;for this&gt;." in text
    assert "Lower gpu-memory-utilization." in text
    assert "sessions/draft_k4/r1/server.log" in text
    assert "sessions/ngram/r1/code_c1.json" in text
    assert "No interval: one start cannot show its own spread." in text
    assert "No stack on file" in text
    structure = Structure()
    structure.feed(text)
    assert structure.wrong == []
    assert [link for link in structure.links if link[1:] not in structure.ids] == []


def test_m25_noise_floor_and_spread_between_starts_are_two_numbers_under_two_names(results: Path) -> None:
    found = read(results)
    for shown, floor in zip(floors(found), found.comparison.floors, strict=True):
        judged = [row.decode.floor for row in found.rows(floor.kind) if row.load == floor.load and row.decode]
        assert len(set(judged)) == 1
        assert judged[0] is not None
        assert floor.decode is not None
        assert judged[0] < floor.decode  # three starts: what two typically differ by is less than the widest difference
        assert shown[4:6] == [numbers.share(judged[0], digits=1), numbers.share(floor.decode, digits=1)]
    summary = (results / "summary.txt").read_text(encoding="utf-8")
    assert "noise floor" in summary.splitlines()[2]
    assert "spread between starts: P50 decode" in summary
    assert {"Noise floor", "Spread between starts"} <= {term.word for term in TERMS}


def test_m32_each_command_stands_once_and_workloads_link_to_it(results: Path, structure: Structure, text: str) -> None:
    serve = read(results).decision.serve
    assert serve
    deployed = {one.mode for one in read(results).decision.workloads} & set(serve)
    for mode in serve:
        assert text.count(f'aria-label="Command that serves {mode}"') == 1
    assert {link for link in structure.links if link.startswith("#serve-")} == {
        f"#{slug('serve', m)}" for m in deployed
    }


def test_no_number_of_a_requirement_stands_in_what_people_read() -> None:
    told = [text for term in TERMS for text in (term.word, term.formula, term.meaning)]
    told += [meaning.hint for meaning in CODES.values()]
    assert [text for text in told if re.search(r"\b[MB]\d{1,2}\b", text)] == []


def test_m32_the_answer_to_everything_is_the_first_thing_on_the_page(results: Path, text: str) -> None:
    said = headline(read(results).decision)
    assert text.index(said) < text.index('class="card"')
