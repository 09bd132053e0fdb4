"""The linear relaxation of one case under attack: the points at which its margin is least.

Importing this module imports torch.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dokimos.attacks.base import Points, Target
from dokimos.attacks.starts import inside
from dokimos.core.errors import InputError
from dokimos.networks.graph import Node
from dokimos.networks.semantics.differentiable import one_thread
from dokimos.networks.semantics.expressions import AffineExpression
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.linear_bounds import LinearBounds, rectifiers, without_linear_bound
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.piecewise_linear import piecewise_linear
from dokimos.properties.margins import float_ends
from dokimos.provers.relu_relaxation import Relaxation, ReluBounds, SparseRow

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
