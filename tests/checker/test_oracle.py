"""The oracle itself: its two opinions agree, on random networks and on instances of every family."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dokimos.testing import relu_oracle as oracle
from dokimos.testing.statements import statement_of
from tests.checker.files import model, question
from tests.checker.statements import TINY, drafts


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    """Integer weights make ties common; samples that are unsafe force the answer."""
    rng = np.random.default_rng(seed)
    inputs, hidden = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    weights = {
        "a": rng.integers(-2, 3, (inputs, hidden)),
        "b": rng.integers(-2, 3, hidden),
        "c": rng.integers(-2, 3, (hidden, 2)),
        "d": rng.integers(-2, 3, 2),
    }
    chain = [("Gemm", ["X", "a", "b"], "g"), ("Relu", ["g"], "r"), ("Gemm", ["r", "c", "d"], "Y")]
    network = model(chain, weights, [1, inputs], [1, 2])
    for unsafe in ("(<= Y_0 Y_1)", "(< Y_0 Y_1)", "(<= Y_0 -3)", "(or (and (> Y_0 5)) (and (<= Y_1 X_0)))"):
        asked = question([(-1, 1)] * inputs, 2, unsafe)
        for margin in (Fraction(0), Fraction(1), Fraction(1, 3)):
            answer = oracle.sat_by_patterns(network, asked, margin=margin)
            assert answer == oracle.sat_by_z3(network, asked, margin=margin)
        grid = np.array(np.meshgrid(*[[-1, 0, 1]] * inputs)).reshape(inputs, -1).T
        found = [oracle.unsafe_by(network, asked, [Fraction(int(x)) for x in point]) for point in grid]
        if any(f is not None for f in found):
            assert oracle.sat_by_patterns(network, asked)


@pytest.mark.parametrize("kind", sorted(TINY))
def test_families(kind: str) -> None:
    family, knobs = TINY[kind][0]
    for draft, expected in zip(drafts(family, 5, **knobs), (False, True), strict=True):
        instance = statement_of(draft, margin=False).instance
        for opinion in (oracle.sat_by_patterns, oracle.sat_by_z3):
            assert opinion(instance.network_file, instance.property_file) is expected


def test_the_simplex_method_meets_strict_bounds() -> None:
    box = [(Fraction(0), Fraction(1))] * 2
    corner = ([Fraction(-1), Fraction(-1)], Fraction(-2), False)
    assert oracle.feasible(box, [corner]) == [1, 1]
    assert oracle.feasible(box, [(corner[0], corner[1], True)]) is None
    edge = oracle.feasible(box, [([Fraction(-1), Fraction(1)], Fraction(-1, 2), True)])
    assert edge is not None
    assert edge[0] - edge[1] > Fraction(1, 2)


def test_padding_and_strides_are_unrolled() -> None:
    weights = {"w": np.arange(4).reshape(1, 1, 2, 2), "b": [1.0]}
    chain = [
        ("Conv", ["X", "w", "b"], "c", {"pads": [1, 0, 0, 1], "strides": [2, 1]}),
        ("Flatten", ["c"], "Y"),
    ]
    network = model(chain, weights, [1, 1, 2, 2], [1, 2])
    # Rows −1 and 0 of the padded image, columns (0, 1) and (1, 2): taps 2·x₀ + 3·x₁ and 2·x₁.
    point = [Fraction(n) for n in (1, 10, 100, 1000)]
    assert oracle.outputs_at(oracle.layers_of(network), point) == [33, 21]
