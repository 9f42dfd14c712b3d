"""Pictures of a report: python tests/browser/pictures.py results/demo/report.html docs/pictures."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from devtools import Page, browser

VIEWS = {"report": (1280, 1000, False), "report-dark": (1280, 1000, True), "report-phone": (390, 844, False)}
SECTIONS = ("charts", "text")
WAIT = """[...document.querySelectorAll('.panel')].every(p => {
  const box = p.getBoundingClientRect();
  return p.dataset.drawn || box.bottom < 0 || box.top > innerHeight;
})"""


def shoot(tab: Page, path: Path) -> None:
    """The window as it is seen, without what lies below."""
    path.write_bytes(base64.b64decode(tab.call("Page.captureScreenshot", format="png")["data"]))


def main(report: Path, folder: Path) -> None:
    """The top of the page at three sizes, and two sections on a desktop."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser() as tab:
        for name, (width, height, dark) in VIEWS.items():
            tab.open(report, width=width, height=height, dark=dark)
            shoot(tab, folder / f"{name}.png")
        for section in SECTIONS:
            tab.open(report, width=1280, height=1000)
            tab.run(f"document.getElementById('{section}').scrollIntoView()")
            tab.until(WAIT)
            shoot(tab, folder / f"report-{section}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
