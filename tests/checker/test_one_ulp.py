"""Instances whose margin is one unit in the last place: the next float32 makes the label false."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dokimos.checker import check, prove
from dokimos.core.errors import InvalidProof
from dokimos.suites.instance import Certificate, Instance, Label
from dokimos.testing import relu_oracle as oracle
from tests.checker.files import instance_of, lines, model, question, stated

ULP = np.float32(2.0**-23)
ONE_AND = np.float32(1) + ULP
SMALLEST = np.float32(2.0**-149)


def exclusive(score: Any) -> Instance:
    """Class 0 scores max(z₁⁺, z₂⁺) >= 1 with z = 1 ± x, class 1 scores `score`."""
    network = model(
        [
            ("Gemm", ["X", "w", "b"], "z"),
            ("Relu", ["z"], "h"),
            ("Gemm", ["h", "m"], "a"),
            ("Relu", ["a"], "c"),
            ("Gemm", ["c", "v", "s"], "Y"),
        ],
        {"w": [[1, -1]], "b": [1, 1], "m": [[0, 1], [1, -1]], "v": [[1, 0], [1, 0]], "s": [0, score]},
        [1, 1],
        [1, 2],
    )
    return instance_of(network, question([(-2, 2)], 2, "(<= Y_0 Y_1)"))


SLOPES = lines(1, 1, 1, 0.5)


def corners(threshold: Any) -> Instance:
    """Class 1 scores (x₀ − x₁)⁺ − threshold, at most 1 − threshold; class 0 scores 0."""
    network = model(
        [("Gemm", ["X", "w"], "z"), ("Relu", ["z"], "h"), ("Gemm", ["h", "v", "s"], "Y")],
        {"w": [[1], [-1]], "v": [[0, 1]], "s": [0, -threshold]},
        [1, 2],
        [1, 2],
    )
    return instance_of(network, question([(0, 0.5), (-0.5, 0)], 2, "(<= Y_0 Y_1)"))


def pairs(lift: Any, *, first: Any = 1.0, second: Any = 1.0) -> Instance:
    """Class 0 scores `lift` + p − q with p, q of one filter and biases `first` and `second`; class 1: 1."""
    network = model(
        [
            ("Conv", ["X", "w", "b"], "c"),
            ("Relu", ["c"], "r"),
            ("Flatten", ["r"], "f"),
            ("Gemm", ["f", "v", "s"], "Y"),
        ],
        {"w": np.ones((2, 1, 1, 1)), "b": [first, second], "v": [[1, 0], [-1, 0]], "s": [lift, 1]},
        [1, 1, 1, 1],
        [1, 2],
    )
    return instance_of(network, question([(-1, 1)], 2, "(<= Y_0 Y_1)"))


PAIRS = {"convolution": "c", "pairs": [[0, 1]]}


@pytest.mark.parametrize(
    ("kind", "data", "true", "false", "margin"),
    [
        ("linear", SLOPES, exclusive(np.float32(1) - ULP / 2), exclusive(1), ULP / 2),
        ("convex-corners", {}, corners(ONE_AND), corners(1), ULP),
        ("ordered-pairs", PAIRS, pairs(ONE_AND), pairs(1), ULP),
        # The tie 1 − 1 between the biases becomes −2^-23 or −2^-24, as large as the lift or larger.
        ("ordered-pairs", PAIRS, pairs(ONE_AND), pairs(ONE_AND, second=ONE_AND), ULP),
    ],
)
def test_unsat_by_one_ulp(
    kind: str, data: dict[str, Any], true: Instance, false: Instance, margin: Any
) -> None:
    exact = Fraction(float(margin))
    near = exact * (1 - Fraction(1, 2**20)) if kind == "linear" else exact
    assert near <= check(true, stated(true, kind, data, real=near)).real <= exact
    assert not oracle.is_sat(true.network_file, true.property_file, margin=exact)
    assert oracle.is_sat(false.network_file, false.property_file)
    with pytest.raises(InvalidProof, match="sha256"):
        check(false, stated(true, kind, data))
    with pytest.raises(InvalidProof):
        check(false, stated(false, kind, data))
    with pytest.raises(InvalidProof, match="larger"):
        check(true, stated(true, kind, data, real=exact * (1 + Fraction(1, 10**30))))


def sat(threshold: Any) -> Instance:
    return corners(threshold)


@pytest.mark.parametrize("margin", [ULP / 2, np.float32(0)])
def test_sat_by_one_ulp_or_by_a_tie(margin: Any) -> None:
    exact, witness = Fraction(float(margin)), (Fraction(1, 2), Fraction(-1, 2))
    true, false = sat(np.float32(1) - margin), sat(ONE_AND)
    said: dict[str, Any] = {"label": Label.SAT, "witness": witness}
    assert check(true, stated(true, "witness", real=exact, **said)).real == exact
    assert oracle.is_sat(true.network_file, true.property_file)
    assert not oracle.is_sat(false.network_file, false.property_file)
    with pytest.raises(InvalidProof, match="sha256"):
        check(false, stated(true, "witness", **said))
    with pytest.raises(InvalidProof, match="not unsafe"):
        check(false, stated(false, "witness", **said))


def test_a_witness_one_ulp_out_of_the_box() -> None:
    instance = sat(0.5)
    beyond = Fraction(float(np.nextafter(np.float32(0.5), np.float32(1))))
    check(instance, stated(instance, "witness", label=Label.SAT, witness=(Fraction(1, 2), Fraction(0))))
    with pytest.raises(InvalidProof, match="outside"):
        check(instance, stated(instance, "witness", label=Label.SAT, witness=(beyond, Fraction(0))))


def test_the_smallest_float32_counts() -> None:
    """Class 0 stays above 0 by 2^-149, and 0 itself does not suffice."""
    for lift, holds in ((SMALLEST, True), (np.float32(0), False)):
        network = model(
            [
                ("Conv", ["X", "w", "b"], "c"),
                ("Relu", ["c"], "r"),
                ("Flatten", ["r"], "f"),
                ("Gemm", ["f", "v", "s"], "Y"),
            ],
            {"w": np.ones((2, 1, 1, 1)), "b": [1, 1], "v": [[1], [-1]], "s": [lift]},
            [1, 1, 1, 1],
            [1, 1],
        )
        instance = instance_of(network, question([(-1, 1)], 1, "(<= Y_0 0)"))
        assert oracle.is_sat(network, instance.property_file) is not holds
        if holds:
            check(instance, stated(instance, "ordered-pairs", PAIRS, real=Fraction(1, 2**149)))
            proven = prove(instance, Certificate("ordered-pairs", PAIRS), Label.UNSAT, None)
            assert proven.floats is None
        else:
            with pytest.raises(InvalidProof):
                check(instance, stated(instance, "ordered-pairs", PAIRS))
