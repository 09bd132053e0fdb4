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
class AffineUnits:
    """What the programs of parts are made of: the open ReLUs on a box, whose arguments are affine there.

    `units` are their numbers, `entries` those of their arguments, which are `factors`·x + `constants`
    between `ends`. Goals are `own`·x + `weigh`·(what the units write) + `rest`.
    """

    units: NDArray[np.int64]
    entries: NDArray[np.int64]
    factors: Floats
    constants: Floats
    ends: tuple[Floats, Floats]
    own: Floats
    weigh: Floats
    rest: Floats

    def decided(
        self, cuts: NDArray[np.int64], signs: NDArray[np.float32]
    ) -> tuple[AffineUnits, tuple[Floats, Floats]]:
        """The same on a part where these entries have these signs; and the cuts, as functions >= 0.

        A cut of an entry that no unit reads says nothing.
        """
        on = np.isin(self.entries, cuts[signs > 0])
        open_ = ~np.isin(self.entries, cuts)
        place = {entry: k for k, entry in enumerate(self.entries.tolist())}
        known = np.array([entry in place for entry in cuts.tolist()], dtype=np.float64) * signs
        which = np.array([place.get(entry, 0) for entry in cuts.tolist()], dtype=np.int64)
        halves = known[:, None] * self.factors[which], known * self.constants[which]
        left = AffineUnits(
            self.units[open_],
            self.entries[open_],
            self.factors[open_],
            self.constants[open_],
            (self.ends[0][open_], self.ends[1][open_]),
            self.own + self.weigh[:, on] @ self.factors[on],
            self.weigh[:, open_],
            self.rest + self.weigh[:, on] @ self.constants[on],
        )
        return left, halves

    @property
    def chord(self) -> Floats:
        """The slopes of the lines above."""
        lower, upper = self.ends
        return upper / np.maximum(upper - lower, 1e-30)

    def program(self, box: Interval, cuts: tuple[Floats, Floats]) -> PartProgram:
        """The program of a part with these cuts."""
        goals, arguments = (self.own, self.weigh, self.rest), (self.factors, self.constants)
        return PartProgram(box, goals, arguments, self.ends, cuts)

    def bound(
        self,
        box: Interval,
        weights: Floats,
        lines: Floats,
        multipliers: Floats,
        cuts: tuple[Floats, Floats],
    ) -> float:
        """The bound of the weighted goals by these lines and multipliers."""
        weigh = weights @ self.weigh
        through = weigh * np.where(weigh >= 0, lines, self.chord)
        shift = np.minimum(weigh, 0.0) * self.chord @ self.ends[0]
        own = weights @ self.own + through @ self.factors - multipliers @ cuts[0]
        rest = weights @ self.rest + through @ self.constants - shift - multipliers @ cuts[1]
        return float(rest + np.maximum(own, 0.0) @ box.lower + np.minimum(own, 0.0) @ box.upper)


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
    left: a part that holds no point has multipliers too. What no goal wants to be small is its line above,
    and needs no variable; what none wants to be large needs no line above.
    """
    inputs, cuts = part.box.lower.size, len(part.cuts[0])
    of_input, weigh, constant = part.goals
    factors, constants = part.arguments
    lower, upper = part.ends
    slope = upper / np.maximum(upper - lower, 1e-30)
    free: NDArray[np.bool_] = np.any(weigh > 0, axis=0)
    both, relus, some = free & np.any(weigh < 0, axis=0), int(free.sum()), len(constant)
    above = np.where(free, 0.0, weigh) * slope
    of_input, constant = of_input + above @ factors, constant + above @ (constants - lower)
    scale = max(1.0, float(np.abs(of_input).max(initial=0)), float(np.abs(weigh).max(initial=0)))
    goal, first, last = inputs + relus, some + relus, some + relus + int(both.sum())
    rows = np.zeros((last + cuts, goal + 1 + cuts))
    rows[:some, :inputs], rows[:some, inputs:goal], rows[:some, goal] = -of_input, -weigh[:, free], 1.0
    rows[some:first, :inputs], rows[some:first, inputs:goal] = -factors[free], np.eye(relus)
    rows[first:last, :inputs] = slope[both, None] * factors[both]
    rows[first:last, inputs:goal] = -np.eye(relus)[both[free]]
    rows[last:, :inputs], rows[last:, goal + 1 :] = part.cuts[0], np.eye(cuts)
    line = slope[both] * (lower - constants)[both]
    least = np.concatenate([constant, constants[free], line, -part.cuts[1]])
    cost = np.zeros(goal + 1 + cuts)
    cost[goal], cost[goal + 1 :] = 1.0, PENALTY * scale
    low = np.concatenate([part.box.lower, np.zeros(relus), [-INFINITE], np.zeros(cuts)])
    high = np.concatenate([part.box.upper, np.maximum(upper[free], 0.0), np.full(1 + cuts, INFINITE)])
    solution = _solved(cost, low, high, rows, least, seconds)
    if solution is None:
        return None
    values, duals, reduced = solution
    weights, own, _, multipliers = np.split(np.maximum(duals, 0.0), [some, first, last])
    from_zero = np.maximum(reduced[inputs:goal], 0.0)
    lines = np.zeros(len(slope))
    lines[free] = np.divide(own, own + from_zero, out=np.zeros(relus), where=own + from_zero > 1e-12)
    arguments = factors @ values[:inputs] + constants
    written = slope * (arguments - lower)
    written[free] = values[inputs:goal]
    gaps = np.abs(written - np.maximum(arguments, 0.0))
    return PartSolution(values[:inputs], weights, lines, multipliers, gaps)


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
