"""How numbers are written for people."""

from __future__ import annotations

from specdec_lab.report import numbers


def test_e8_a_missing_number_is_na_and_never_zero() -> None:
    for write in (numbers.ratio, numbers.share, numbers.rate, numbers.milliseconds, numbers.plain, numbers.gibibytes):
        assert write(None) == "n/a"
    assert numbers.interval(None, 1.0) == "n/a"
    assert numbers.count(None, 3) == "n/a"


def test_numbers_use_a_point_and_spaces_that_do_not_break() -> None:
    assert numbers.ratio(1.236) == "1.24×"
    assert numbers.share(0.0421, digits=1) == "4.2\u00a0%"
    assert numbers.rate(12345.6) == "12\u202f346"
    assert numbers.rate(99.94) == "99.9"
    assert numbers.milliseconds(0.0021) == "2.1\u00a0ms"
    assert numbers.milliseconds(1.5) == "1500\u00a0ms"
