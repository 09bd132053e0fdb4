"""Units whose values leave float64: nothing may be concluded from an interval without ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.certificates.check import prove
from dokimos.errors import InvalidProof
from dokimos.instances.model import Certificate, Instance, Label
from tests.certificates.files import instance_of, model, question

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


@pytest.mark.parametrize("plan", [WHOLE, HALVED, SLICED])
@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("ends", [(f"-{HUGE}", HUGE), (f"-{HUGE}", "1.0"), ("-1.0", HUGE)])
def test_a_unit_beyond_float64_proves_nothing(
    plan: dict[str, Any], degree: int, ends: tuple[str, str]
) -> None:
    """The label is false: the output is negative at X = -1, which lies in every box."""
    with pytest.raises(InvalidProof):
        prove(odd_power(degree, *ends), Certificate("pinning", plan), Label.UNSAT, None)
