"""Profiles of instances whose difficulty is known from how they are made."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.difficulty.components import CANONICAL
from dokimos.difficulty.inspection import Inspection
from dokimos.suites.vnnlib.violation import violation_at
from tests.constructions.siblings import draw
from tests.difficulty.inspections import observe_labelled


def value(name: str, seen: Inspection) -> float:
    found = CANONICAL[name](seen).value
    assert found is not None
    return found


@pytest.mark.parametrize("knobs", [{}, {"inputs": 40, "depth": 2}, {"inputs": 100, "depth": 8}])
def test_constant_on_a_box_has_no_regions_and_no_direction(knobs: dict[str, int]) -> None:
    robust, _ = CONSTRUCTIONS["constant-on-box"](seed=1, **knobs)
    seen = observe_labelled(robust)
    assert value("regions", seen) == 0
    assert value("gradient_dimension", seen) == 0
    assert np.ptp(seen.sampled.margins) == 0


def exact_rows(values: np.ndarray) -> list[list[Fraction]]:
    return [[Fraction(float(v)) for v in row] for row in values]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("half", [0, 1])
def test_convex_corners_by_hand(seed: int, half: int) -> None:
    """Every hinge is off at the centre and reaches ±ε·‖v‖₁ around it, farther than that: all are unstable.

    A hinge's interval is [0, v·x₀ + b + ε·‖v‖₁] and all its coefficients in a margin, a_j + c_kj, are
    subtracted: L_IBP = min over k of β_k − Σ_j (a_j + c_kj)·(v_j·x₀ + b_j + ε‖v_j‖₁).
    """
    seen = observe_labelled(draw("convex-corners", seed, inputs=12, block=4, hinges=3)[half])
    constants = {name: np.array(array) for name, array in seen.network.constants.items()}
    first, second = (node for node in seen.network.nodes if node.op == "Gemm")
    (box,) = seen.boxes
    tops = []
    for row, bias in zip(
        exact_rows(constants[first.inputs[1]]), constants[first.inputs[2]].flat, strict=True
    ):
        middle = sum((w * x for w, x in zip(row, box.centre, strict=True)), Fraction(float(bias)))
        reach = sum((abs(w) for w in row), Fraction(0)) * (box.upper[0] - box.centre[0])
        assert middle - reach < 0 < middle + reach
        tops.append(middle + reach)
    head = exact_rows(constants[second.inputs[1]])
    offsets = [Fraction(float(b)) for b in constants[second.inputs[2]].flat]
    bound = min(
        offsets[0]
        - offset
        - sum(((c - a) * top for c, a, top in zip(row, head[0], tops, strict=True)), Fraction(0))
        for row, offset in zip(head[1:], offsets[1:], strict=True)
    )
    assert value("unstable", seen) == 1
    assert seen.ibp_bound == pytest.approx(float(bound), rel=1e-9)
    least = Fraction(value("margin", seen))
    assert value("ibp_gap", seen) == pytest.approx(float((least - bound) / abs(least)), rel=1e-6)


def test_the_margin_of_a_violated_instance_is_negative_at_its_witness() -> None:
    _, violated = CONSTRUCTIONS["convex-corners"](seed=0)
    assert violated.truth is not None
    assert violated.truth.witness is not None
    seen = observe_labelled(violated)
    exact = violation_at(seen.network, seen.property, violated.truth.witness)
    assert exact.margin_lower is not None
    assert Fraction(seen.ibp_bound) <= -exact.margin_lower < 0
