"""The family scale: affine on the box, whatever size its units have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dokimos.core.errors import ConstructionFailed
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.constructions.siblings import box_of, differing_weights, draw, margin_of, proven_in_float32

FORMS = [{"form": form, "exponent": k} for form in (0, 1, 2) for k in (0, 24, 45)]


@pytest.mark.parametrize("knobs", FORMS, ids=str)
def test_on_the_box_it_is_two_and_an_affine_function_of_range_epsilon(knobs: dict[str, Any]) -> None:
    robust, twin = draw("scale", **knobs, epsilon=0.5, margin=0.2)
    box = box_of(robust.instance)
    network = read_onnx(robust.instance.network_file)
    rng = np.random.default_rng(3)
    at_centre = evaluate(network, box.centre).lower[0]
    assert at_centre == 2
    for _ in range(5):
        point = tuple(
            low + Fraction(int(k), 64) * (high - low)
            for low, high, k in zip(box.lower, box.upper, rng.integers(0, 65, size=box.size), strict=True)
        )
        mirrored = tuple(2 * c - x for c, x in zip(box.centre, point, strict=True))
        ends = [evaluate(network, each).lower[0] for each in (point, mirrored)]
        assert sum(ends) == 4
        assert abs(ends[0] - 2) <= 2
    assert proven_in_float32(robust)
    assert proven_in_float32(twin)
    assert differing_weights((robust, twin)) == 1


@pytest.mark.parametrize("knobs", FORMS, ids=str)
def test_the_margin_is_what_the_best_corner_leaves(knobs: dict[str, Any]) -> None:
    robust, _ = draw("scale", **knobs)
    box = box_of(robust.instance)
    (case,) = read_vnnlib(robust.instance.property_file, file="p").cases
    bound = -case.any_of[0][0].bound
    corners = []
    network = read_onnx(robust.instance.network_file)
    for i in range(box.size):
        moved = [c if j != i else box.upper[i] for j, c in enumerate(box.centre)]
        corners.append(evaluate(network, tuple(moved)).lower[0] - 2)
    best = tuple(high if s > 0 else low for s, low, high in zip(corners, box.lower, box.upper, strict=True))
    highest = evaluate(network, best).lower[0]
    assert 0 < float(bound - highest) == pytest.approx(margin_of(robust), rel=1e-6)
    # As onnxruntime has it, whatever the size of the units.
    there = replay(robust.instance.network_file, np.array([[float(x) for x in best]], dtype=np.float32))
    assert float(there[0, 0]) == pytest.approx(float(highest), rel=1e-5)


def test_what_takes_too_many_cases_is_refused() -> None:
    with pytest.raises(ConstructionFailed, match="depth = 4 with grid = 4"):
        draw("scale", depth=4, grid=4)
