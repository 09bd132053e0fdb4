from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import InputError
from dokimos.suites.vnnlib.text import parse_decimal
from dokimos.suites.vnnlib.writer import exact_decimal


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0.0"),
        (Fraction(3), "3.0"),
        (Fraction(-1, 2), "-0.5"),
        (Fraction(1, 40), "0.025"),
        (Fraction(-101, 100), "-1.01"),
        (Fraction(10**20), "100000000000000000000.0"),
    ],
)
def test_expansions(value: Fraction, text: str) -> None:
    assert exact_decimal(value) == text
    assert parse_decimal(text) == value


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive_exactly(value: float) -> None:
    text = exact_decimal(Fraction(value))
    assert "e" not in text.lower() and "." in text
    assert parse_decimal(text) == Fraction(value)
    assert float(text) == value


def test_smallest_float32_is_spelt_in_full() -> None:
    tiny = float(np.finfo(np.float32).smallest_subnormal)
    text = exact_decimal(Fraction(tiny))
    assert len(text) == 2 + 149 and Fraction(text) == Fraction(tiny)


@settings(deadline=None)
@given(
    st.from_regex(
        r"[-+]?(\d{1,9}(\.\d{0,9})?|\.\d{1,9})([eE][-+]?\d{1,2})?",
        fullmatch=True,
        alphabet="0123456789.eE+-",
    )
)
def test_reads_what_decimal_reads(text: str) -> None:
    assert parse_decimal(text) == Fraction(Decimal(text))


@pytest.mark.parametrize(
    "text", ["", ".", "-", "e5", "nan", "inf", "1e", "0x1", "1_0", " 1", "1 ", "1\n", "٣", "1/2", "--1"]
)
def test_refuses_what_is_no_number(text: str) -> None:
    with pytest.raises(InputError, match="is not a decimal number"):
        parse_decimal(text)


def test_refuses_exponents_where_told_to() -> None:
    with pytest.raises(InputError, match="has an exponent"):
        parse_decimal("1e3", exponent=False)


@pytest.mark.parametrize(
    "text", ["1e999", "1e-401", "1e99999999999", "9" * 320, "1e309", "1" * 5000, "0." + "1" * 5000]
)
def test_refuses_numbers_beyond_floating_point(text: str) -> None:
    with pytest.raises(InputError, match=r"out of range|larger than every|more than 4000 digits"):
        parse_decimal(text)


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(-7, 30)])
def test_refuses_infinite_expansions(value: Fraction) -> None:
    with pytest.raises(InputError, match=f"{value} has no finite decimal expansion"):
        exact_decimal(value)


@pytest.mark.parametrize("value", [Fraction(1, 2**5000), Fraction(2**1024), Fraction(1, 3**5000)])
def test_refuses_what_is_too_long(value: Fraction) -> None:
    with pytest.raises(InputError, match=r"too many digits|no finite"):
        exact_decimal(value)
