"""Attacks that start where a relaxation is least."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dokimos.core.errors import InputError
from dokimos.engine.attacks.base import Attack, Budget, inside, uniform_starts
from dokimos.engine.attacks.target import Points, Target
from dokimos.engine.attacks.units import bring_down, draw_units
from dokimos.engine.differentiable import one_thread
from dokimos.engine.float_bounds import LinearBounds, rectifiers, without_linear_bound
from dokimos.engine.relu_relaxation import Relaxation, ReluBounds, SparseRow
from dokimos.networks.graph import Node
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.piecewise_linear import AffineExpression, piecewise_linear
from dokimos.suites.vnnlib.margins import float_ends

# The linear relaxation of one case under attack: the points at which its margin is least


#: Larger networks would keep the solver busy beyond any budget.
MOST_MULTIPLICATIONS = 3_000_000
#: With more unstable units than this, interval bounds must suffice.
MOST_TIGHTENED = 3000


def require_linear_bounds(target: Target) -> None:
    """Raise InputError if the network has no linear relaxation, or one that is too large."""
    reason = without_linear_bound(target.network)
    if reason is None and target.network.multiplications > MOST_MULTIPLICATIONS:
        reason = f"it needs more than {MOST_MULTIPLICATIONS:,} multiplications"
    if reason is not None:
        raise InputError(f"This attack cannot use the linear relaxation of the network: {reason}.")


def bounds_of(target: Target, how: type[LinearBounds] = LinearBounds) -> LinearBounds:
    """Linear bounds of the network on the box, with the units' bounds improved layer by layer."""
    require_linear_bounds(target)
    network = target.network
    found = how(network, enclose(network, target.box.lower, target.box.upper), *float_ends(target.box))
    left = MOST_TIGHTENED
    with one_thread(), torch.no_grad():
        for place, node in rectifiers(network):
            units = found.unstable(node.inputs[0])
            left -= len(units)
            if left < 0 or target.seconds_left() <= 0:
                break
            found.tighten(node.inputs[0], place, units)
    return found


class RandomLines(LinearBounds):
    """The same with lower lines of random slopes, redrawn by `redraw`: any slope in [α, 1] is sound."""

    rng: np.random.Generator | None = None

    def lines(self, node: Node) -> tuple[Tensor, Tensor, Tensor]:
        """The usual chords, with the random lower lines."""
        line, chord, height = super().lines(node)
        if self.rng is None:
            return line, chord, height
        least = node.real("alpha") if node.op == "LeakyRelu" else 0.0
        drawn = torch.from_numpy(self.rng.uniform(least, 1.0, size=tuple(line.shape)))
        return torch.where(height != 0, drawn, line), chord, height


def lowest_corners(target: Target, bounds: LinearBounds) -> Points:
    """For each constraint of the case, the corner of the box at which its linear bound is least."""
    network, form = target.network, target.form
    with one_thread(), torch.no_grad():
        slopes, _ = bounds.lower_lines(
            network.output,
            torch.from_numpy(form.outputs).reshape(-1, *network.output_shape),
            len(network.nodes),
            torch.from_numpy(form.inputs),
        )
    corners = np.where(slopes.numpy() > 0, target.lower, target.upper)
    return inside(target, np.where(slopes.numpy() == 0, (target.lower + target.upper) / 2, corners))


class RelaxedCase:
    """The triangle relaxation of a ReLU network on the box, one program for each conjunction."""

    def __init__(self, target: Target) -> None:
        bounds = bounds_of(target)
        network, case = target.network, target.form
        form = piecewise_linear(network)
        self._inputs, self._target = network.input_size, target
        self._arguments = [_row(inside) for inside in form.relus.values()]
        ends = [bounds.unit_ends(node.inputs[0]) for _, node in rectifiers(network)]
        low = np.concatenate([np.zeros(0), *(low for low, _ in ends)])
        high = np.concatenate([np.zeros(0), *(high for _, high in ends)])
        if len(low) != len(self._arguments):
            raise InputError("This attack cannot use the linear relaxation of the network: its ReLUs vary.")
        self.unstable = np.flatnonzero((low < 0) & (high > 0))
        slopes = np.divide(high, high - low, out=np.zeros_like(high), where=(low < 0) & (high > 0))
        self._bounds = ReluBounds(low, high, slopes)
        size = self._inputs + len(low)
        outputs = np.stack([_dense(_row(output), size) for output in form.outputs])
        rows = case.outputs @ outputs
        rows[:, : self._inputs] += case.inputs
        rows[:, -1] -= case.bounds
        self._objectives = [_sparse(row) for row in rows]
        self._programs: dict[int, Relaxation] = {}

    def best_point(
        self, conjunction: int, phases: dict[int, bool] | None = None
    ) -> NDArray[np.float64] | None:
        """The inputs at which the relaxation has the least margin; None if there are none, or no time."""
        seconds = self._target.seconds_left()
        if seconds <= 0:
            return None
        if conjunction not in self._programs:
            members = dict.fromkeys(self._target.form.members[conjunction].tolist())
            self._programs[conjunction] = Relaxation(
                Interval(*float_ends(self._target.box)),
                self._arguments,
                self._bounds,
                [self._objectives[k] for k in members],
                self.unstable.tolist(),
                seconds=min(seconds, 1e6) if seconds < inf else inf,
            )
        solved = self._programs[conjunction].solve(phases or {})
        return None if solved is None else solved.inputs


def fill(points: list[Any], target: Target, count: int, rng: np.random.Generator) -> Points:
    """`count` points: the given ones, then others close to them; uniform ones if none is given."""
    size = len(target.lower)
    if not points:
        points = [target.lower + rng.random(size) * (target.upper - target.lower)]
    given = np.stack(points)[:count]
    rows = np.arange(count) % len(given)
    spread = np.where(np.arange(count) < len(given), 0.0, 10.0 ** rng.uniform(-3, -0.5, size=count))
    moved = given[rows] + spread[:, None] * target.radius * rng.uniform(-1, 1, size=(count, size))
    return inside(target, moved)


def _row(expression: AffineExpression) -> SparseRow:
    variables = np.fromiter(expression.terms, dtype=np.int64, count=len(expression.terms))
    values = np.array([float(value) for value in expression.terms.values()], dtype=np.float64)
    return SparseRow(float(expression.constant), variables, values)


def _dense(row: SparseRow, size: int) -> NDArray[np.float64]:
    """The factors of all variables, then the constant."""
    found = np.zeros(size + 1)
    found[row.variables] = row.values
    found[-1] = row.constant
    return found


def _sparse(row: NDArray[np.float64]) -> SparseRow:
    used = np.flatnonzero(row[:-1])
    return SparseRow(float(row[-1]), used, row[:-1][used])


# Starts at the corners of the box at which linear bounds are least


@dataclass(frozen=True, kw_only=True)
class CrownVertex(Attack):
    """A linear bound of the margin (CROWN) is least at a corner of the box: restarts begin there.

    The first rows take the corners of the usual bounds, one for each constraint; further rows take those of
    bounds with random lower lines, up to `most`, and the rest begin close to one of these. All of them then
    descend the margin. Raises InputError if an operator has no linear relaxation.
    """

    name: ClassVar[str] = "crown-vertex"

    most: int = 24

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Look at the corners, and descend from there."""

        bounds = bounds_of(target, RandomLines)
        assert isinstance(bounds, RandomLines)
        corners = list(lowest_corners(target, bounds))
        bounds.rng = rng
        while len(corners) < min(self.most, budget.restarts) and target.seconds_left() > 0:
            corners += list(lowest_corners(target, bounds))
        bring_down(target, fill(corners, target, budget.restarts, rng), budget.steps)


# Starts at points where the linear relaxation of a ReLU network has its least margin


#: A search for units takes one look.
_LOOKS_FOR_UNITS = 1


@dataclass(frozen=True, kw_only=True)
class LPPrimal(Attack):
    """Restarts begin at the optimal inputs of the triangle relaxation, one for each conjunction.

    Further restarts begin close to one of them, and all descend the margin. Raises InputError if the
    network has operators other than affine ones and ReLUs, or is too large.
    """

    name: ClassVar[str] = "lp-primal"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Solve the programs, and descend from their optima."""

        points = _optima(target, RelaxedCase(target), budget)
        bring_down(target, fill(points, target, budget.restarts, rng), budget.steps)


@dataclass(frozen=True, kw_only=True)
class LPSplit(Attack):
    """The same with one unit fixed on or off, in turn for the units that may matter most.

    One split of the right unit can find a needle that no other attack comes close to.
    """

    name: ClassVar[str] = "lp-split"

    def search(self, target: Target, budget: Budget, rng: np.random.Generator) -> None:
        """Solve up to one program for each restart, in at most half of the time, and descend."""

        relaxed = RelaxedCase(target)
        looks = budget.steps + 1
        points = _optima(target, relaxed, budget)
        if len(relaxed.unstable) and looks > _LOOKS_FOR_UNITS:
            points += self._split(target, relaxed, budget, rng)
            looks -= _LOOKS_FOR_UNITS
        bring_down(target, fill(points, target, budget.restarts, rng), looks - 1)

    def _split(
        self, target: Target, relaxed: RelaxedCase, budget: Budget, rng: np.random.Generator
    ) -> list[Any]:
        effects = target.weigh_units(uniform_starts(target, budget.restarts, rng)).effects
        drawn = target.units.numbers[draw_units(target, effects, budget.restarts, rng)].tolist()
        undecided = set(relaxed.unstable.tolist())
        until = target.seconds_left() / 2
        points: list[Any] = []
        for number, unit in enumerate(drawn):
            if target.seconds_left() < until:
                break
            if unit in undecided:
                phases = {unit: bool(rng.integers(2))}
                point = relaxed.best_point(number % target.conjunctions, phases)
                points += [] if point is None else [point]
        return points


def _optima(target: Target, relaxed: RelaxedCase, budget: Budget) -> list[Any]:
    """The optimum of each conjunction, at most one for each restart."""
    found = [relaxed.best_point(c) for c in range(min(target.conjunctions, budget.restarts))]
    return [point for point in found if point is not None]
