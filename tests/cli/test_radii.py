"""Numbers on the command line: what is read, what is refused at once, and how radii are shown."""

from __future__ import annotations

import pytest

from dokimos.cli.options import parse_limits, parse_number, parse_numbers, show_radius
from dokimos.core.errors import InputError


def test_numbers_are_read_exactly_and_rounded_once() -> None:
    assert parse_number("2/255") == 2 / 255 and parse_number(" 0.1 / 255 ") == 1 / 2550
    assert parse_numbers("1/3,2/3") == (1 / 3, 2 / 3) and parse_number("-1e-3") == -0.001
    assert parse_limits("0,1") == (0.0, 1.0) and parse_limits("none") is None


@pytest.mark.parametrize(
    "text", ["", "/", "1/0", "x", "nan", "inf", "1e400", "1e9999999999", "1e300/1e-300", "9" * 9000]
)
def test_what_is_not_a_number_is_refused_at_once(text: str) -> None:
    with pytest.raises(InputError, match="write it like 2/255"):
        parse_number(text)


@pytest.mark.parametrize("text", ["1", "1,0", "0,0", "0,1,2"])
def test_what_is_not_a_range_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a range"):
        parse_limits(text)


def test_radii_are_shown_in_steps_of_pixels() -> None:
    assert [show_radius(each) for each in (2 / 255, 0.02)] == ["2/255", "0.02 (5.100/255)"]
    assert show_radius(float("inf")) == "-"
