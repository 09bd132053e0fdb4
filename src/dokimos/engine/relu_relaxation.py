"""The linear relaxation of a ReLU network, solved by HiGHS in floats: a guide that proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf
from typing import Any

import highspy
import numpy as np
from numpy.typing import NDArray

from dokimos.networks.semantics.outward import Floats, Interval

#: The cost of violating a decided phase, if that is allowed: an upper bound on the multipliers.
PENALTY = 1e4
TOLERANCE = 1e-9
INFINITE = highspy.kHighsInf


def quiet_solver(seconds: float = inf) -> Any:
    """A HiGHS instance that is silent, deterministic and as precise as it can be."""
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("solver", "simplex"),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
        ("time_limit", max(seconds, 0.01)),
    ):
        solver.setOptionValue(name, value)
    return solver


@dataclass(frozen=True, eq=False)
class SparseRow:
    """constant + Σ values·variables. Variables are the inputs, then the values of the ReLUs, in order."""

    constant: float
    variables: NDArray[np.int64]
    values: Floats


@dataclass(frozen=True, eq=False)
class ReluBounds:
    """For each ReLU v = max(0, e): low <= e <= high, and v <= slope·(e − low) where e changes sign."""

    low: Floats
    high: Floats
    slopes: Floats


@dataclass(frozen=True, eq=False)
class Relaxed:
    """What the solver found: the least value of the objective, and what shows it.

    `inputs` are those of the optimal point, `gaps` by how much each ReLU is missed there: |v − max(0, e)|.
    The duals are, in the order of the ReLUs, those of the rows described at `Relaxation`.
    """

    bound: float
    inputs: Floats
    gaps: Floats
    definitions: Floats
    below: Floats
    decided: Floats


class Relaxation:
    """min over a box of an objective, each undecided unstable ReLU relaxed to its triangle.

    Columns: the inputs; for each ReLU its argument e, then for each its value v >= 0; for each ReLU that
    may be decided two penalties p, q >= 0.

    Rows: for each ReLU the definition of e. Then, for each that may be decided, three rows: *below*,
    v − e >= 0; *above*, v − k·e <= −k·l; *decided*, e + p − q. Their bounds say which phase holds:

                    v          below     above      decided
        undecided   [0, ∞)     >= 0      <= −k·l    none
        on          free       = 0       none       >= 0
        off         [0, 0]     none      none       <= 0

    The *below* row of a ReLU that is always on is v − e = 0.

    Through p and q a decided phase may be violated at a price, so that the program always has a solution
    and the solver can continue from its last basis.
    """

    def __init__(
        self,
        box: Interval,
        arguments: Sequence[SparseRow],
        bounds: ReluBounds,
        objective: SparseRow,
        decidable: Iterable[int],
    ) -> None:
        self._bounds, self._objective = bounds, objective
        self._caps = np.where(bounds.high > 0, INFINITE, 0.0)
        self._inputs, self._relus = len(box.lower), len(arguments)
        self.decidable = list(decidable)
        self._row_of = {relu: self._relus + 3 * n for n, relu in enumerate(self.decidable)}
        self._always_on = [k for k in np.flatnonzero(bounds.low >= 0).tolist() if k not in self._row_of]
        self._solver = quiet_solver()
        #: Whether HiGHS took all columns and rows: it refuses those with numbers that are too large for it.
        self._is_whole = True
        self._add_columns(box)
        self._add_rows(arguments)

    def _e(self, relu: int) -> int:
        return self._inputs + relu

    def _v(self, relu: int) -> int:
        return self._inputs + self._relus + relu

    def _columns(self, row: SparseRow) -> NDArray[np.int64]:
        """The columns of a row's variables: between inputs and values of ReLUs come their arguments."""
        return row.variables + self._relus * (row.variables >= self._inputs)

    def _add_columns(self, box: Interval) -> None:
        inputs, values, penalties = self._inputs, self._v(0), self._v(0) + self._relus
        count = penalties + 2 * len(self.decidable)
        cost, lower, upper = np.zeros(count), np.full(count, -INFINITE), np.full(count, INFINITE)
        lower[:inputs], upper[:inputs] = box.lower, box.upper
        lower[values:], upper[values:penalties] = 0.0, self._caps
        cost[penalties:] = PENALTY
        cost[self._columns(self._objective)] = self._objective.values
        none = np.zeros(0)
        empty = none.astype(np.int32)
        status = self._solver.addCols(count, cost, lower, upper, 0, empty, empty, none)
        self._is_whole &= status != highspy.HighsStatus.kError

    def _add_rows(self, arguments: Sequence[SparseRow]) -> None:
        for relu, row in enumerate(arguments):
            columns = [self._e(relu), *self._columns(row)]
            self._add(row.constant, row.constant, columns, [1.0, *-row.values])
        penalty = self._v(0) + self._relus
        for relu in self.decidable:
            pair, slope = [self._v(relu), self._e(relu)], self._bounds.slopes[relu]
            self._add(0.0, INFINITE, pair, [1.0, -1.0])
            self._add(-INFINITE, -slope * self._bounds.low[relu], pair, [1.0, -slope])
            self._add(-INFINITE, INFINITE, [self._e(relu), penalty, penalty + 1], [1.0, 1.0, -1.0])
            penalty += 2
        for relu in self._always_on:
            self._add(0.0, 0.0, [self._v(relu), self._e(relu)], [1.0, -1.0])

    def _add(self, low: float, high: float, columns: list[int], values: list[float]) -> None:
        index, value = np.array(columns, dtype=np.int32), np.array(values, dtype=np.float64)
        status = self._solver.addRow(low, high, len(columns), index, value)
        self._is_whole &= status != highspy.HighsStatus.kError

    def solve(self, phases: Mapping[int, bool]) -> Relaxed | None:
        """Solve it with these ReLUs decided (True: on). None if the solver gives up."""
        if not self._is_whole:
            return None
        for relu in self.decidable:
            self._decide(relu, phases.get(relu))
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._solver.getSolution()
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        bound = float(self._solver.getInfo().objective_function_value) + self._objective.constant
        e, v = np.split(values[self._inputs : self._v(self._relus)], 2)
        gaps = np.abs(v - np.maximum(e, 0.0))
        rows = self._relus + 3 * np.arange(len(self.decidable))
        below, decided = np.zeros(self._relus), np.zeros(self._relus)
        below[self.decidable], decided[self.decidable] = duals[rows], duals[rows + 2]
        after = self._relus + 3 * len(self.decidable)
        below[self._always_on] = duals[after : after + len(self._always_on)]
        return Relaxed(bound, values[: self._inputs], gaps, duals[: self._relus], below, decided)

    def _decide(self, relu: int, phase: bool | None) -> None:
        row, solver = self._row_of[relu], self._solver
        on, off = phase is True, phase is False
        cap = self._caps[relu]
        solver.changeColBounds(self._v(relu), -cap if on else 0.0, 0.0 if off else cap)
        solver.changeRowBounds(row, -INFINITE if off else 0.0, 0.0 if on else INFINITE)
        line = -self._bounds.slopes[relu] * self._bounds.low[relu]
        solver.changeRowBounds(row + 1, -INFINITE, INFINITE if on or off else line)
        solver.changeRowBounds(row + 2, 0.0 if on else -INFINITE, 0.0 if off else INFINITE)


# The search tree over the phases of ReLUs


#: The ReLUs decided on the way to a case, in order, each with its phase (True: its argument is >= 0).
Path = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Leaf:
    """What closes a case: by ReLU the slopes of lines below and the multipliers of what was decided."""

    slopes: Mapping[int, Fraction]
    multipliers: Mapping[int, Fraction]


@dataclass
class Tree:
    """A split or a leaf for the path to each node."""

    splits: dict[Path, int] = field(default_factory=dict)
    leaves: dict[Path, Leaf] = field(default_factory=dict)
