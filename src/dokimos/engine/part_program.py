"""The linear program of one part of a cover: the best lines, multipliers and weights there are for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from dokimos.engine.relu_relaxation import INFINITE, quiet_solver
from dokimos.networks.semantics.outward import Floats, Interval

#: What leaving a cut by 1 costs, in the size of the goals: so large are multipliers at most.
PENALTY = 1e4


@dataclass(frozen=True)
class PartProgram:
    """A part on which every argument of an open ReLU is affine in the input.

    `goals` are functionals of the input and of what the open ReLUs write, as (factors of the input, factors
    of ReLUs, constant); all of them are to be positive. `arguments` are (factors, constant) of each ReLU,
    with `ends`. On the part, `cuts` are factors·x + constant >= 0.
    """

    box: Interval
    goals: tuple[Floats, Floats, Floats]
    arguments: tuple[Floats, Floats]
    ends: tuple[Floats, Floats]
    cuts: tuple[Floats, Floats]

    def worth(self, gaps: Floats) -> Floats:
        """What a cut of each ReLU is worth: how much it is missed at a point, and may be, times its reach.

        Only those count that a goal wants to be large. The reach is what the inputs of a ReLU weigh in all
        of them: a bound says nothing of a cut that decides nothing by itself.
        """
        lower, upper = self.ends
        weigh = np.abs(self.goals[1]).max(0, initial=0.0)
        widths = self.box.upper - self.box.lower
        chord = upper / np.maximum(upper - lower, 1e-30)
        factors = self.arguments[0] * widths
        reach = np.sqrt(np.square((weigh * chord)[:, None] * factors).sum(0))
        reach = np.abs(factors) @ reach / np.maximum(np.abs(factors).sum(1), 1e-30)
        wanted = np.maximum(-self.goals[1].min(0, initial=0.0), 0.0)
        return np.asarray(wanted * reach**4 * (gaps - chord * lower))


@dataclass(frozen=True)
class PartSolution:
    """Where the largest goal is least, and the duals that show it.

    `lines` are the slopes of the ReLUs, `gaps` by how much each of them is missed at the point.
    """

    point: Floats
    weights: Floats
    lines: Floats
    multipliers: Floats
    gaps: Floats


def solve(part: PartProgram, seconds: float) -> PartSolution | None:
    """Solve the program; None if the solver fails.

    Variables are the input, what the ReLUs write, the largest goal, and for each cut by how much it is
    left: a part that holds no point has multipliers too.
    """
    inputs, relus, cuts = part.box.lower.size, len(part.ends[0]), len(part.cuts[0])
    lower, upper = part.ends
    slope = upper / np.maximum(upper - lower, 1e-30)
    factors, constants = part.arguments
    of_input, of_relus, constant = part.goals
    eye, some = np.eye(relus), len(constant)
    scale = max(1.0, float(np.abs(of_input).max(initial=0)), float(np.abs(of_relus).max(initial=0)))
    left = np.zeros((relus, 1 + cuts))
    rows = np.block(
        [
            [-of_input, -of_relus, np.ones((some, 1)), np.zeros((some, cuts))],
            [-factors, eye, left],
            [slope[:, None] * factors, -eye, left],
            [part.cuts[0], np.zeros((cuts, relus + 1)), np.eye(cuts)],
        ]
    )
    least = np.concatenate([constant, constants, slope * (lower - constants), -part.cuts[1]])
    columns = rows.shape[1]
    cost = np.zeros(columns)
    cost[inputs + relus], cost[inputs + relus + 1 :] = 1.0, PENALTY * scale
    low = np.concatenate([part.box.lower, np.zeros(relus), [-INFINITE], np.zeros(cuts)])
    high = np.concatenate([part.box.upper, np.maximum(upper, 0.0), np.full(1 + cuts, INFINITE)])
    solution = _solved(cost, low, high, rows, least, seconds)
    if solution is None:
        return None
    values, duals, reduced = solution
    weights, above, _, own = np.split(np.maximum(duals, 0.0), np.cumsum([some, relus, relus]))
    written = values[inputs : inputs + relus]
    from_zero = np.maximum(reduced[inputs : inputs + relus], 0.0)
    lines = np.divide(above, above + from_zero, out=np.zeros(relus), where=above + from_zero > 1e-12)
    gaps = written - np.maximum(factors @ values[:inputs] + constants, 0.0)
    return PartSolution(values[:inputs], weights, lines, own, np.abs(gaps))


def _solved(
    cost: Floats, low: Floats, high: Floats, rows: Floats, least: Floats, seconds: float
) -> tuple[Floats, Floats, Floats] | None:
    """Least cost with rows·x >= least and low <= x <= high: the point, duals of rows, reduced costs."""
    solver: Any = quiet_solver(seconds)
    program: Any = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.shape
    program.col_cost_, program.col_lower_, program.col_upper_ = cost, low, high
    program.row_lower_, program.row_upper_ = least, np.full(len(least), INFINITE)
    where: NDArray[np.bool_] = rows != 0.0
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(where.sum(1))]).astype(np.int32)
    program.a_matrix_.index_ = np.nonzero(where)[1].astype(np.int32)
    program.a_matrix_.value_ = rows[where]
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found = solver.getSolution()
    return np.array(found.col_value), np.array(found.row_dual), np.array(found.col_dual)
