from fractions import Fraction

import numpy as np
import pytest
import z3

from dokimos.checker.lemmas.relu_layers import BoundedLayers, ReluLayer, bounded
from dokimos.constructions.draft import float32_above
from dokimos.engine.direct import by_cases
from dokimos.engine.layered_networks import forward, nearest_in_region, prove_positive
from dokimos.engine.outcome import NoProof
from dokimos.engine.relu_relaxation import Tree
from dokimos.networks.semantics.outward import Interval
from tests.checker.linear.test_small_networks import attempt, exact_question
from tests.checker.small_networks import SmallReluNetwork

LEAD = np.array([1.0, -1.0])


def over_box(small: SmallReluNetwork) -> BoundedLayers:
    layers = [
        ReluLayer(
            np.array(rows, dtype=np.float64), np.array(biases, dtype=np.float64), np.zeros(len(biases))
        )
        for rows, biases in small.layers
    ]
    side = np.full(2, float(small.radius))
    return bounded(layers, Interval(-side, side))


def lifted(seed: int) -> SmallReluNetwork:
    """A network whose margin is near 0 at its lowest point, above or below."""
    small = SmallReluNetwork.draw(np.random.default_rng(seed))
    change = Fraction(1, 8) if seed % 2 else Fraction(-1, 8)
    return small.lifted(float32_above(-small.grid_minimum() + change))


def test_branch_and_bound_decides_as_z3_does() -> None:
    proven = refuted = hard = 0
    for seed in range(40):
        small = lifted(seed)
        layers = over_box(small)
        found, programs = prove_positive(layers, LEAD, most_programs=500)
        hard += programs > 1
        if isinstance(found, Tree):
            assert exact_question(small).check() == z3.unsat
            assert 0 < attempt(small, by_cases([found], small.sizes())) <= small.grid_minimum()
            proven += 1
        else:
            assert exact_question(small).check() == z3.sat
            assert LEAD @ forward(layers.layers, found)[0] <= 0
            refuted += 1
    assert proven >= 5
    assert refuted >= 20
    assert hard >= 5


def test_a_budget_that_is_too_small_says_so() -> None:
    refused = 0
    for seed in range(20):
        try:
            prove_positive(over_box(lifted(seed)), LEAD, most_programs=1)
        except NoProof as error:
            assert "more than 1 linear programs" in str(error)
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_point_of_a_region_is_no_farther_than_the_start(seed: int) -> None:
    small = lifted(2 * seed)
    layers = over_box(small)
    start, _ = prove_positive(layers, LEAD, most_programs=500)
    assert not isinstance(start, Tree)
    found = nearest_in_region(layers.layers, LEAD, start, 0.0)
    assert found is not None
    assert np.abs(found).max() <= np.abs(start).max() + 1e-9
    assert LEAD @ forward(layers.layers, found)[0] <= 1e-6
