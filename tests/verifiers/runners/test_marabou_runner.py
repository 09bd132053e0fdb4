"""A witness is written as the very numbers that a verifier computes with, not as decimals near them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dokimos.verifiers.result_file import read_point
from dokimos.verifiers.runners.marabou_runner import exact_decimals


def test_every_double_is_written_exactly() -> None:
    doubles = [-2.031267961060421, 0.1, 5e-324, 1.7976931348623157e308, -0.0, 2.0**-1074 * 3]
    words = exact_decimals(dict(enumerate(doubles)), [np.arange(3), np.arange(3, 6)])
    assert read_point(words) == tuple(Fraction(x) for x in doubles)
    assert Fraction(repr(doubles[0])) != Fraction(doubles[0])
