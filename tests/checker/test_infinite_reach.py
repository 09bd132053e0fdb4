"""Units whose values leave float64: nothing may be concluded from an interval without ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.checker.check import prove
from dokimos.core.errors import InvalidProof
from dokimos.suites.instance import Certificate, Instance, Label
from tests.checker.files import instance_of, lines, model, question

HUGE = "1" + "0" * 300 + ".0"
WHOLE = {"unit": None, "cuts": [], "slopes": [], "halvings": [[-1]]}
HALVED = {**WHOLE, "halvings": [[0, -1, -1]]}
SLICED = {"unit": 0, "cuts": [], "slopes": ["0"], "halvings": [[-1]]}


def odd_power(degree: int, lower: str, upper: str) -> Instance:
    """Y = (2^100·X)^degree + 2^40: far below 0 wherever X is negative and not tiny."""
    network = model(
        [
            ("Gemm", ["X", "W"], "inside"),
            ("Pow", ["inside", "degree"], "power"),
            ("Gemm", ["power", "one", "offset"], "Y"),
        ],
        {"W": [[2.0**100]], "degree": np.array(degree), "one": [[1.0]], "offset": [2.0**40]},
        [1, 1],
        [1, 1],
    )
    return instance_of(network, question([(lower, upper)], 1, "(<= Y_0 0.0)"))


@pytest.mark.no_cover
@pytest.mark.parametrize("plan", [WHOLE, HALVED, SLICED])
@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("ends", [(f"-{HUGE}", HUGE), (f"-{HUGE}", "1.0"), ("-1.0", HUGE)])
def test_a_unit_beyond_float64_proves_nothing(
    plan: dict[str, Any], degree: int, ends: tuple[str, str]
) -> None:
    """The label is false: the output is negative at X = -1, which lies in every box."""
    with pytest.raises(InvalidProof):
        prove(odd_power(degree, *ends), Certificate("pinning", plan), Label.UNSAT, None)


def relu_instance(exponents: tuple[int, int, int]) -> Instance:
    """Y = 2^c·max(0, 2^b·max(0, 2^a·X) − max(0, −X)), which is 0, hence unsafe, wherever X <= 0."""
    a, b, c = (2.0**e for e in exponents)
    network = model(
        [
            ("Gemm", ["X", "W"], "h"),
            ("Relu", ["h"], "r"),
            ("Gemm", ["r", "V"], "g"),
            ("Relu", ["g"], "s"),
            ("Gemm", ["s", "U"], "Y"),
        ],
        {"W": [[a, -1.0]], "V": [[b], [-1.0]], "U": [[c]]},
        [1, 1],
        [1, 1],
    )
    return instance_of(network, question([(f"-{HUGE}", HUGE)], 1, "(<= Y_0 0.0)"))


@pytest.mark.parametrize(
    "exponents", [(0, 0, 0), (100, 0, 0), (10, 120, 0), (10, 10, 120), (120, 120, 120)]
)
def test_relus_beyond_float64_prove_nothing(exponents: tuple[int, int, int]) -> None:
    for data in (lines(), {"questions": [{"own": True, "tree": [0, -1, -1]}]}, lines(tree=[1, -1, -1])):
        with pytest.raises(InvalidProof):
            prove(relu_instance(exponents), Certificate("linear", data), Label.UNSAT, None)
