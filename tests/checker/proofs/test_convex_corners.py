"""The corners of a box, in numbers of any length."""

from __future__ import annotations

from fractions import Fraction

from dokimos.checker.check import prove
from dokimos.suites.instance import Certificate, Label
from tests.checker.files import instance_of, model, question


def test_hinges_that_stay_shut_may_have_factors_too_long_for_floats() -> None:
    """Over a common denominator the factors of Y_0 and Y_1 here differ by 10^331; the hinges are 0."""
    layers = [("Gemm", ["X", "W", "b"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "V", "c"], "Y")]
    weights = {"W": [[1, 1]], "b": [-4, -5], "V": [[-1, 0], [0, -1]], "c": [5, 5]}
    tiny = "0." + "0" * 330 + "1"
    asked = question([(0, 1)], 2, f"(<= (+ (* {tiny} Y_0) Y_1) 1)")
    network = model(layers, weights, [1, 1], [1, 2])
    proven = prove(instance_of(network, asked), Certificate("convex-corners"), Label.UNSAT, None)
    assert proven.real == 4 + 5 * Fraction(tiny)
