"""The report in a real browser: no complaint, charts drawn, links and filters work, no overflow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pictures
import pytest
from devtools import Page, browser, program

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(program() is None, reason="no Chromium here; apt-get install chromium"),
]

SIZES = {
    "desktop": (1280, 900, False),
    "dark": (1280, 900, True),
    "tablet": (820, 1100, False),
    "phone": (390, 844, False),
}

SCROLL = """(async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 700) {
    scrollTo(0, y); await new Promise(r => setTimeout(r, 40)); }
  scrollTo(0, 0);
})()"""
DRAWN = "[...document.querySelectorAll('.panel')].every(p => p.dataset.drawn)"
OVERFLOW = """[...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .filter(e => !e.closest('.scroll, nav, .plot svg, #vg-tooltip-element'))
  .map(e => e.tagName + ' ' + e.id + ' ' + e.className)"""
CONTRAST = """(() => {
  const luminance = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(Number).map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126*v[0] + 0.7152*v[1] + 0.0722*v[2]; };
  const behind = (e) => { for (; e; e = e.parentElement) { const b = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$|transparent/.test(b)) return b; } return 'rgb(255,255,255)'; };
  return [...document.querySelectorAll('p, td, th, .badge, a, summary, h2, h3, h4, label, code')]
    .filter(e => e.offsetParent)
    .map(e => { const a = luminance(getComputedStyle(e).color), b = luminance(behind(e));
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + ' ' + e.className]; })
    .filter(([ratio]) => ratio < 4.5).slice(0, 5);
})()"""


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    with browser() as page:
        yield page


@pytest.mark.parametrize("size", SIZES)
def test_the_page_opens_without_complaint_draws_every_chart_and_fits(
    tab: Page, page: Path, tmp_path: Path, size: str
) -> None:
    width, height, dark = SIZES[size]
    tab.problems.clear()
    tab.requests.clear()
    tab.open(page, width=width, height=height, dark=dark)
    tab.run(SCROLL)
    tab.until(DRAWN)
    assert tab.problems == []
    assert [url for url in tab.requests if not url.startswith(("file:", "data:"))] == []
    assert tab.run("document.querySelectorAll('.panel').length") >= 12
    assert tab.run("[...document.querySelectorAll('.panel')].filter(p => p.dataset.drawn !== 'live').length") == 0
    assert tab.run(
        "[...document.querySelectorAll('.plot svg')].every(s => s.querySelectorAll('path, line').length > 5)"
    )
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(OVERFLOW) == []
    assert tab.run(CONTRAST) == []
    tab.screenshot(tmp_path / f"{size}.png")
    assert (tmp_path / f"{size}.png").stat().st_size > 50_000


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_a_report_of_a_run_that_went_wrong_opens_as_well(tab: Page, poor_page: Path, size: str) -> None:
    width, height, dark = SIZES[size]
    tab.problems.clear()
    tab.open(poor_page, width=width, height=height, dark=dark)
    tab.run(SCROLL)
    tab.until(DRAWN)
    assert tab.problems == []
    assert tab.run("document.documentElement.scrollWidth") <= width
    assert tab.run(OVERFLOW) == []


REAL = sorted((Path(__file__).parents[2] / "results").glob("*/report.html"))


@pytest.mark.skipif(not REAL, reason="no real run here yet; `make demo` writes results/demo/report.html")
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_the_report_of_a_real_run_opens_as_well(tab: Page, size: str) -> None:
    width, height, dark = SIZES[size]
    for report in REAL:
        tab.problems.clear()
        tab.open(report, width=width, height=height, dark=dark)
        tab.run(SCROLL)
        tab.until(DRAWN)
        assert tab.problems == [], report
        assert tab.run(OVERFLOW) == [], report
        assert tab.run("document.querySelectorAll('#results tbody tr').length") > 0, report


def test_links_lead_to_their_rows_even_when_a_filter_hides_them(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    tab.run("""(() => { const s = document.querySelector('[data-filter=mode]'); s.value = 'baseline';
        s.dispatchEvent(new Event('change', {bubbles: true})); })()""")
    assert tab.run("document.querySelectorAll('#results tbody tr:not([hidden])').length") == 6
    assert tab.run("document.getElementById('shown').textContent") == "6 of 24 rows"
    tab.run("document.querySelector('#answer-code .links a[href=\"#row-code-c4-ngram\"]').click()")
    tab.until("location.hash === '#row-code-c4-ngram' && !document.querySelector('#row-code-c4-ngram').hidden")
    tab.until(
        "(r => r.top >= 0 && r.bottom <= innerHeight)"
        "(document.getElementById('row-code-c4-ngram').getBoundingClientRect())"
    )


def test_a_mode_can_be_hidden_in_the_charts(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    tab.run("document.getElementById('figure-throughput-per-user').scrollIntoView()")
    panel = "document.querySelector('#figure-throughput-per-user .panel')"
    tab.until(f"{panel}.dataset.drawn === 'live'")
    marks = f"{panel}.querySelectorAll('.mark-symbol path').length"
    before = tab.run(marks)
    tab.run("document.querySelector('.legend [data-mode=ngram]').click()")
    tab.until(f"{marks} === {before - 3}")
    assert tab.run("document.querySelector('.legend [data-mode=ngram]').getAttribute('aria-pressed')") == "false"
    tab.run("document.querySelector('.legend [data-mode=ngram]').click()")
    tab.until(f"{marks} === {before}")


def test_filters_combine(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    tab.run("""for (const [key, value] of [['kind', 'chat'], ['load', '4']]) {
        const s = document.querySelector(`[data-filter=${key}]`); s.value = value;
        s.dispatchEvent(new Event('change', {bubbles: true})); }""")
    assert tab.run("[...document.querySelectorAll('#results tbody tr:not([hidden])')].map(r => r.id)") == [
        "row-chat-c4-baseline",
        "row-chat-c4-ngram",
        "row-chat-c4-draft-k2",
        "row-chat-c4-draft-k4",
    ]


def test_m33_the_side_by_side_view_marks_the_first_difference(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    assert tab.run("[document.getElementById('b-mode').value, document.getElementById('b-prompt').value]") == [
        "draft_k4",
        "p3",
    ]
    left = tab.run("document.querySelector('#b-left .same').textContent")
    assert left == tab.run("document.querySelector('#b-right .same').textContent")
    assert len(left) == 400  # counted in characters, as the analysis counts, not in UTF-16 units
    assert tab.run("document.querySelector('#b-right mark').textContent") == "~"
    assert "at character 400" in tab.run("document.getElementById('b-said').textContent")
    tab.run("document.getElementById('b-next').click()")
    assert tab.run("document.getElementById('b-said').textContent") == "The texts are identical."
    assert "日本 🙂" in tab.run("document.getElementById('b-left').textContent")
    assert tab.run("document.querySelectorAll('#b-left b').length") == 0


def test_m33_the_baselines_own_differences_can_be_seen(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    tab.run("""(() => { const s = document.getElementById('b-mode'); s.value = 'baseline, another start';
        s.dispatchEvent(new Event('change')); })()""")
    assert tab.run(
        "[...document.getElementById('b-prompt').options].filter(o => o.text.includes('differs')).map(o => o.value)"
    ) == ["p5"]


def test_the_theme_can_be_switched(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    before = tab.run("getComputedStyle(document.body).backgroundColor")
    tab.run("document.getElementById('theme').click()")
    assert tab.run("getComputedStyle(document.body).backgroundColor") != before
    assert tab.run(CONTRAST) == []


def test_a_reader_with_a_keyboard_or_a_screen_reader_finds_everything(tab: Page, page: Path) -> None:
    tab.open(page, width=1280, height=900)
    assert tab.run("document.documentElement.lang") == "en"
    assert tab.run(
        "[...document.querySelectorAll('.plot')].every(p => p.getAttribute('role') === 'img' && p.ariaLabel)"
    )
    assert tab.run("[...document.querySelectorAll('select')].every(s => s.closest('label'))")
    assert tab.run("[...document.querySelectorAll('table th')].every(h => h.scope)")
    assert tab.run("[...document.querySelectorAll('.scroll')].every(s => s.tabIndex === 0)")
    labels = "[...document.querySelectorAll('.scroll')].map(s => s.getAttribute('aria-labelledby'))"
    assert tab.run(f"{labels}.every(id => document.getElementById(id))")
    levels = tab.run("[...document.querySelectorAll('h1, h2, h3, h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))


def test_the_page_prints_within_the_paper_and_dark_on_white(tab: Page, page: Path, tmp_path: Path) -> None:
    tab.open(page, width=718, height=1000)  # A4 less its margins
    tab.run("document.documentElement.dataset.theme = 'dark'")
    tab.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert tab.run("document.documentElement.scrollWidth") <= 718
        assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.run(CONTRAST) == []
    finally:
        tab.call("Emulation.setEmulatedMedia", media="")
    tab.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_without_scripts_the_charts_and_the_table_are_there(tab: Page, page: Path) -> None:
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(page, width=1280, height=900)
        drawn = tab.run("document.querySelectorAll('.plot > svg').length")
    finally:
        tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert drawn >= 12


def test_the_pictures_of_the_docs_can_be_taken(page: Path, tmp_path: Path) -> None:
    pictures.main(page, tmp_path)
    sizes = {path.stem: int.from_bytes(path.read_bytes()[16:20], "big") for path in tmp_path.glob("*.png")}
    assert sizes == {
        "report": 1280,
        "report-dark": 1280,
        "report-phone": 390,
        "report-charts": 1280,
        "report-text": 1280,
    }
    docs = Path(__file__).resolve().parents[2] / "docs" / "pictures"
    assert {path.stem for path in docs.glob("*.png")} == set(sizes)
