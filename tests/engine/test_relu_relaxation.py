"""The linear relaxation: below the network, exact where all is decided, infeasible where nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from dokimos.engine.relu_relaxation import Relaxation, ReluBounds, SparseRow
from dokimos.networks.semantics.outward import Interval


def row(constant: float, *terms: tuple[int, float]) -> SparseRow:
    variables = np.array([v for v, _ in terms], dtype=np.int64)
    return SparseRow(constant, variables, np.array([c for _, c in terms]))


def hat(*objectives: SparseRow, is_strict: bool = False) -> Relaxation:
    """On [−1, 1]: v1 = max(0, x) and v2 = max(0, −x), variables 1 and 2."""
    ends = np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    box = Interval(np.array([-1.0]), np.array([1.0]))
    bounds = ReluBounds(*ends, np.array([0.5, 0.5]))
    arguments = [row(0.0, (0, 1.0)), row(0.0, (0, -1.0))]
    return Relaxation(box, arguments, bounds, objectives, [0, 1], is_strict=is_strict)


def least(relaxation: Relaxation, phases: dict[int, bool]) -> float:
    found = relaxation.solve(phases)
    assert found is not None
    return found.bound


@pytest.mark.parametrize("is_strict", [False, True])
def test_undecided_it_is_below_the_network_and_decided_it_is_the_network(is_strict: bool) -> None:
    """The larger of 1/2 − |x| and |x| is at least 1/4; relaxed, |x| may be 1 in the former at x = 0."""
    objectives = row(0.5, (1, -1.0), (2, -1.0)), row(0.0, (0, 1.0)), row(0.0, (0, -1.0))
    relaxation = hat(*objectives, is_strict=is_strict)
    assert least(relaxation, {}) == pytest.approx(0.0)
    for on in (False, True):
        assert least(relaxation, {0: on, 1: not on}) == pytest.approx(0.25)


@pytest.mark.parametrize("is_strict", [False, True])
def test_of_several_objectives_the_largest_counts(is_strict: bool) -> None:
    """The larger of x and −x is least at 0, where both weigh the same."""
    relaxation = hat(row(0.0, (1, 1.0), (2, -1.0)), row(0.0, (1, -1.0), (2, 1.0)), is_strict=is_strict)
    found = relaxation.solve({0: True, 1: False})
    assert found is not None
    assert found.bound == pytest.approx(0.0)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.gaps == pytest.approx([0.0, 0.0])


def test_phases_that_no_input_has() -> None:
    """Off where x >= 1/4: a price where a phase may be left, no solution where it may not."""
    box = Interval(np.array([0.25]), np.array([1.0]))
    bounds = ReluBounds(np.array([0.25]), np.array([1.0]), np.array([1.0]))
    for is_strict in (False, True):
        parts = (box, [row(0.0, (0, 1.0))], bounds, [row(0.0, (1, 1.0))], [0])
        found = Relaxation(*parts, is_strict=is_strict).solve({0: False})
        assert found is not None
        if is_strict:
            assert found.inputs is None
            assert found.bound == np.inf
            # x <= 0 is what cannot be met: the dual of its row is negative, as that of an optimum would be.
            assert found.decided[0] < 0
        else:
            assert found.bound == pytest.approx(0.25 * 1e4)


def test_numbers_that_are_too_large_for_the_solver() -> None:
    assert hat(row(0.0, (1, 1e30)), row(0.0, (2, 1.0))).solve({}) is None
