"""The page of failures says what the table says."""

from specdec_lab.failures import FAILURES, page


def test_the_page_is_in_step_with_the_table():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run `make generated`"


def test_every_failure_of_the_twelve_has_its_section_and_entry():
    text = page.page()
    assert all(f"## {number}. " in text for number in range(1, 13))
    assert all(f"`{one.code}`" in text for one in FAILURES if one.number is not None)
