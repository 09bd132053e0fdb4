from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.readable import (
    Number,
    enclosed_number,
    exact_number,
    float_number,
    least_number,
    printable,
    seconds,
)


@pytest.mark.parametrize(
    ("value", "short", "full"),
    [
        (Fraction(0), "0", "0"),
        (Fraction(-1, 2048), "-0.000488281", "-0.00048828125"),
        (Fraction(120), "120", "120"),
        (Fraction(1, 10**7), "1e-07", "1e-07"),
        (Fraction(-123456789, 10**20), "-1.23457e-12", "-1.23456789e-12"),
        (Fraction(10**20), "1e+20", "1e+20"),
        (Fraction(1, 3), "0.333333", "0." + "3" * 400 + "…"),
        (Fraction(-2, 3), "-0.666667", "-0." + "6" * 400 + "…"),
    ],
)
def test_an_exact_number_is_rounded_and_spelt_in_full(value: Fraction, short: str, full: str) -> None:
    assert exact_number(value) == Number(short=short, full=full)


def test_a_number_of_ten_thousand_digits_is_cut_and_not_refused() -> None:
    number = exact_number(Fraction(3, 2**40000))
    assert number.full.endswith("…")
    assert number.short.endswith("e-12041")


def test_a_number_that_is_not_zero_never_looks_like_zero() -> None:
    assert exact_number(Fraction(-1, 2**400)).short.startswith("-3.87259e-121")


@settings(deadline=None, max_examples=75)
@given(st.fractions(max_denominator=10**12))
def test_the_full_spelling_is_the_number_or_a_cut_of_it(value: Fraction) -> None:
    number = exact_number(value)
    with localcontext(prec=1000):
        written = Fraction(Decimal(number.full.removesuffix("…")))
    if number.full.endswith("…"):
        assert abs(written) < abs(value) < abs(written) * (1 + Fraction(1, 10**398))
    else:
        assert written == value
    assert abs(Fraction(Decimal(number.short)) - value) <= abs(value) / 10**5


def test_floats_keep_nan_and_infinities() -> None:
    assert (float_number(float("nan")).short, float_number(float("-inf")).short) == ("nan", "-inf")
    assert float_number(0.3333333432674408).full == "0.3333333432674408"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.000"),
        (0.0004, "<0.001"),
        (0.25, "0.250"),
        (3.14159, "3.14"),
        (10.02, "10.0"),
        (1234.5, "1234"),
    ],
)
def test_seconds_have_about_three_digits(value: float, text: str) -> None:
    assert seconds(value) == text


def test_text_that_no_page_can_show_is_replaced() -> None:
    assert printable("\x1b[31mred\x1b[0m\r\nbell\x07 \udcff ok\t") == "red\nbell� � ok\t"


@pytest.mark.parametrize(
    ("value", "error", "short", "full"),
    [
        (Fraction(1, 3), Fraction(0), "0.333333", "0." + 400 * "3" + "…"),
        (Fraction(1, 3), Fraction(1, 10**12), "0.333333", "0.33333333333333333 ± 1e-12"),
        (Fraction(-5), Fraction(1, 81), "-5 ± 0.013", "-5 ± 0.013"),
        (Fraction(0), Fraction(1, 10**9), "0 ± 1e-09", "0 ± 1e-09"),
    ],
)
def test_a_number_says_how_far_it_is_known(value: Fraction, error: Fraction, short: str, full: str) -> None:
    assert enclosed_number(value, error) == Number(short=short, full=full)


def test_a_lower_bound_is_rounded_down() -> None:
    assert least_number(Fraction(2, 3)) == Number("0.666667", "at least 0.66666666666666666")
    assert least_number(Fraction(-2, 3)) == Number("-0.666667", "at least -0.66666666666666667")
