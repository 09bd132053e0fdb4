"""The linear program of a part: its duals prove what it says, and parts without points have duals too."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.engine.part_program import PartProgram, solve
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
