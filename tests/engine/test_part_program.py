"""The linear program of a part: its duals prove what it says, and parts without points have duals too."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.engine.part_program import AffineUnits, PartProgram, solve
from dokimos.networks.semantics.outward import Floats, Interval


def program(rng: np.random.Generator, cuts: tuple[Floats, Floats] | None = None) -> PartProgram:
    """Five ReLUs of random rows of three inputs in [−1, 1], and two goals."""
    factors, constants = rng.normal(size=(5, 3)), 0.3 * rng.normal(size=5)
    spread = np.abs(factors).sum(1)
    goals = (rng.normal(size=(2, 3)), rng.normal(size=(2, 5)), rng.normal(size=2))
    none = (np.zeros((0, 3)), np.zeros(0))
    box = Interval(-np.ones(3), np.ones(3))
    ends = (constants - spread, constants + spread)
    return PartProgram(box, goals, (factors, constants), ends, none if cuts is None else cuts)


def proven(part: PartProgram, lines: Floats, weights: Floats, multipliers: Floats) -> float:
    """What these choices prove of the weighted goal, by one walk backwards."""
    of_input, of_relus, constant = (weights @ each for each in part.goals)
    (lower, upper), (factors, constants) = part.ends, part.arguments
    slope = upper / (upper - lower)
    turned = np.where(of_relus > 0, of_relus * lines, of_relus * slope)
    found = constant + turned @ constants - np.minimum(of_relus, 0.0) @ (slope * lower)
    row = of_input + turned @ factors - multipliers @ part.cuts[0]
    found -= multipliers @ part.cuts[1]
    return float(found + np.minimum(row * part.box.lower, row * part.box.upper).sum())


@pytest.mark.parametrize("seed", range(8))
def test_the_duals_prove_the_value_of_the_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    part = program(rng)
    found = solve(part, 10.0)
    assert found is not None
    assert found.weights.sum() == pytest.approx(1.0)
    bound = proven(part, found.lines, found.weights, found.multipliers)
    points = rng.uniform(-1, 1, size=(2000, 3))
    written = np.maximum(points @ part.arguments[0].T + part.arguments[1], 0.0)
    values = points @ part.goals[0].T + written @ part.goals[1].T + part.goals[2]
    assert bound <= values.max(1).min() + 1e-6
    even = proven(part, np.zeros(5), np.full(2, 0.5), np.zeros(0))
    assert bound >= even - 1e-6
    assert (found.gaps >= 0).all() and (part.worth(found.gaps) >= 0).all()


def test_a_part_without_points_is_proven_to_have_none() -> None:
    """x₀ >= ½ and x₀ <= −½: multipliers outweigh any goal."""
    row = np.array([1.0, 0.0, 0.0])
    part = program(np.random.default_rng(1), (np.stack([row, -row]), np.array([-0.5, -0.5])))
    found = solve(part, 10.0)
    assert found is not None
    assert proven(part, found.lines, found.weights, found.multipliers) > 1.0


def test_what_no_goal_wants_large_is_not_cut() -> None:
    part = program(np.random.default_rng(2))
    harmless = PartProgram(
        part.box,
        (part.goals[0], np.abs(part.goals[1]), part.goals[2]),
        part.arguments,
        part.ends,
        part.cuts,
    )
    assert not harmless.worth(np.ones(5)).any()
    assert part.worth(np.ones(5)).any()


# What the programs of parts are made of


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
