"""The linear relaxation: below the network, exact where all is decided, infeasible where nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.engine.relu_relaxation import Relaxation, ReluBounds, SparseRow
from dokimos.networks.semantics.outward import Interval


def row(constant: float, *terms: tuple[int, float]) -> SparseRow:
    variables = np.array([v for v, _ in terms], dtype=np.int64)
    return SparseRow(constant, variables, np.array([c for _, c in terms]))


def hat(objective: SparseRow, slope: float = 1.0) -> Relaxation:
    """On [−1, 1]: v1 = max(0, x) and v2 = max(0, −x), variables 1 and 2."""
    ends = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    box = Interval(np.array([-1.0]), np.array([1.0]))
    bounds = ReluBounds(*ends, np.array([0.5, 0.5]))
    arguments = [row(0.0, (0, slope)), row(0.0, (0, -1.0))]
    return Relaxation(box, arguments, bounds, objective, [0, 1])


def least(relaxation: Relaxation, phases: dict[int, bool]) -> float:
    found = relaxation.solve(phases)
    assert found is not None
    return found.bound


def test_undecided_it_is_below_the_network_and_decided_it_is_the_network() -> None:
    """x/2 + max(0, x) − max(0, −x) is 3x/2, which is least at −1."""
    assert least(hat(row(0.5, (1, -1.0), (2, -1.0))), {}) == pytest.approx(-0.5)
    relaxation = hat(row(0.0, (0, 0.5), (1, 1.0), (2, -1.0)))
    assert least(relaxation, {}) == pytest.approx(-1.5)
    assert least(relaxation, {0: True, 1: False}) == pytest.approx(0.0)
    assert least(relaxation, {0: False, 1: True}) == pytest.approx(-1.5)


def test_phases_that_no_input_has() -> None:
    """Off where x >= 1/4: leaving a phase has a price."""
    box = Interval(np.array([0.25]), np.array([1.0]))
    bounds = ReluBounds(np.array([0.25]), np.array([1.0]), np.array([1.0]))
    found = Relaxation(box, [row(0.0, (0, 1.0))], bounds, row(0.0, (1, 1.0)), [0]).solve({0: False})
    assert found is not None
    assert found.bound == pytest.approx(0.25 * 1e4)


def test_numbers_that_are_too_large_for_the_solver() -> None:
    assert hat(row(0.0, (1, 1.0)), 1e30).solve({}) is None
