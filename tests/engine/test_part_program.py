"""Programs of parts: their duals are choices that give the bound that the solver found."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.engine.part_program import AffineUnits, solve
from dokimos.networks.semantics.outward import Interval


def drawn(seed: int, goals: int, relus: int = 9, inputs: int = 4) -> tuple[AffineUnits, Interval]:
    rng = np.random.default_rng(seed)
    box = Interval(-np.ones(inputs), rng.uniform(0.1, 1.0, inputs))
    factors, constants = rng.normal(size=(relus, inputs)), rng.normal(size=relus) / 4
    above, below = np.maximum(factors, 0.0), np.minimum(factors, 0.0)
    low = above @ box.lower + below @ box.upper + constants
    high = above @ box.upper + below @ box.lower + constants
    order = np.arange(relus, dtype=np.int64)
    rest = (rng.normal(size=(goals, inputs)), rng.normal(size=(goals, relus)), rng.normal(size=goals))
    return AffineUnits(order, order + inputs, factors, constants, (low, high), *rest), box


@pytest.mark.parametrize("goals", [1, 2, 3])
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_the_duals_give_the_bound_and_the_point_shows_that_none_is_better(goals: int, cut: int) -> None:
    for seed in range(8):
        units, box = drawn(seed, goals)
        rng = np.random.default_rng(seed)
        cuts = rng.choice(units.entries, cut, replace=False)
        left, halves = units.decided(cuts, np.where(rng.random(cut) < 0.5, -1, 1).astype(np.float32))
        assert len(left.units) == len(units.units) - cut
        found = solve(left.program(box, halves), 10.0)
        assert found is not None
        x, total = found.point, found.weights.sum()
        if ((halves[0] @ x + halves[1]) < -1e-9).any():  # an empty part is bounded by any number
            continue
        written = np.maximum(left.factors @ x + left.constants, 0.0) + found.gaps
        largest = (left.own @ x + left.weigh @ written + left.rest).max()
        assert total == pytest.approx(1.0)
        bound = left.bound(box, found.weights, found.lines, found.multipliers, halves)
        assert bound == pytest.approx(largest, abs=1e-6)


def test_a_bound_holds_at_every_point_of_a_part() -> None:
    """By any lines, weights and multipliers."""
    for seed in range(40):
        units, box = drawn(seed, 2)
        rng = np.random.default_rng(seed)
        cuts, signs = units.entries[:2], np.array([1.0, -1.0], np.float32)
        left, halves = units.decided(cuts, signs)
        weights = rng.dirichlet([1.0, 1.0])
        bound = left.bound(box, weights, rng.random(len(left.units)), rng.random(2), halves)
        points = rng.uniform(box.lower, box.upper, size=(400, 4))
        arguments = points @ units.factors.T + units.constants
        inside = (arguments[:, :2] * signs >= 0).all(1)
        values = points @ units.own.T + np.maximum(arguments, 0.0) @ units.weigh.T + units.rest
        assert (values[inside] @ weights >= bound - 1e-9).all()


def test_a_cut_that_no_unit_reads_says_nothing() -> None:
    units, _ = drawn(0, 1)
    left, (rows, constants) = units.decided(np.array([10**6]), np.array([1.0], np.float32))
    assert len(left.units) == len(units.units)
    assert not rows.any() and not constants.any()
