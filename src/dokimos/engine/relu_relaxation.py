"""The linear relaxation of a ReLU network, solved by HiGHS in floats: a guide that proves nothing."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from math import inf
from typing import Any, Generic, TypeVar

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


def least(goal: Floats, box: Interval, rows: Floats, limits: Floats) -> tuple[Floats, Floats] | None:
    """Where goal·x is least in a box with rows·x >= limits, and the duals of the rows; None if nowhere."""
    solver = quiet_solver()
    solver.addVars(len(goal), box.lower, box.upper)
    solver.changeColsCost(len(goal), np.arange(len(goal), dtype=np.int32), goal)
    every = np.arange(len(goal), dtype=np.int32)
    for row, limit in zip(rows, limits, strict=True):
        solver.addRow(float(limit), INFINITE, len(goal), every, row)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found = solver.getSolution()
    return np.array(found.col_value), np.array(found.row_dual)


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
    """What the solver found: the least value of the largest objective, and what shows it.

    `inputs` are those of the optimal point, `gaps` by how much each ReLU is missed there: |v − max(0, e)|.
    The duals are, in the order of the objectives, their weights, and in that of the ReLUs those of the
    rows described at `Relaxation`. If the program has no solution, `bound` is infinite, `inputs` is None,
    and the duals are those of a proof of that: a combination of the rows that no point satisfies.
    """

    bound: float
    inputs: Floats | None
    gaps: Floats
    weights: Floats
    definitions: Floats
    below: Floats
    above: Floats
    decided: Floats


class Relaxation:
    """min over a box of the largest objective, each undecided unstable ReLU relaxed to its triangle.

    Columns: the inputs; for each ReLU its argument e, then for each its value v >= 0; for each ReLU that
    may be decided two penalties p, q >= 0; and t, if there are several objectives (one is the cost itself).

    Rows: for each ReLU the definition of e. Then, for each that may be decided, three rows: *below*,
    v − e >= 0; *above*, v − k·e <= −k·l; *decided*, e + p − q. Their bounds say which phase holds:

                    v          below     above      decided
        undecided   [0, ∞)     >= 0      <= −k·l    none
        on          free       = 0       none       >= 0
        off         [0, 0]     none      none       <= 0

    The *below* row of a ReLU that is always on is v − e = 0. Last, each of several objectives is <= t.

    Through p and q a decided phase may be violated at a price, so that the program always has a solution
    and the solver can continue from its last basis. With `is_strict` they are 0, so that a phase that no
    input has makes the program infeasible; and the range of each v is added as its column's bounds, which
    follow from the rows but make proofs shorter.
    """

    def __init__(
        self,
        box: Interval,
        arguments: Sequence[SparseRow],
        bounds: ReluBounds,
        objectives: Sequence[SparseRow],
        decidable: Iterable[int],
        *,
        is_strict: bool = False,
        seconds: float = inf,
    ) -> None:
        self._bounds, self._objectives = bounds, objectives
        self._floors, self._caps = np.zeros(len(bounds.low)), np.where(bounds.high > 0, INFINITE, 0.0)
        if is_strict:
            self._floors, self._caps = np.maximum(bounds.low, 0.0), np.maximum(bounds.high, 0.0)
        self._inputs, self._relus = len(box.lower), len(arguments)
        self.decidable = list(decidable)
        self._row_of = {relu: self._relus + 3 * n for n, relu in enumerate(self.decidable)}
        self._always_on = [k for k in np.flatnonzero(bounds.low >= 0).tolist() if k not in self._row_of]
        self._solver = quiet_solver(seconds)
        #: Whether HiGHS took all columns and rows: it refuses those with numbers that are too large for it.
        self._is_whole = True
        self._add_columns(box, is_strict=is_strict)
        self._add_rows(arguments)

    def _e(self, relu: int) -> int:
        return self._inputs + relu

    def _v(self, relu: int) -> int:
        return self._inputs + self._relus + relu

    def _columns(self, row: SparseRow) -> NDArray[np.int64]:
        """The columns of a row's variables: between inputs and values of ReLUs come their arguments."""
        return row.variables + self._relus * (row.variables >= self._inputs)

    def _add_columns(self, box: Interval, *, is_strict: bool) -> None:
        inputs, values, penalties = self._inputs, self._v(0), self._v(0) + self._relus
        last = penalties + 2 * len(self.decidable)
        count = last + (len(self._objectives) > 1)
        cost, lower, upper = np.zeros(count), np.full(count, -INFINITE), np.full(count, INFINITE)
        lower[:inputs], upper[:inputs] = box.lower, box.upper
        lower[values:penalties], upper[values:penalties] = self._floors, self._caps
        lower[penalties:last], cost[penalties:last] = 0.0, PENALTY
        if is_strict:
            upper[penalties:last] = 0.0
        if len(self._objectives) == 1:
            cost[self._columns(self._objectives[0])] = self._objectives[0].values
        else:
            cost[last:] = 1.0
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
        if len(self._objectives) > 1:
            for row in self._objectives:
                self._add(-INFINITE, -row.constant, [*self._columns(row), penalty], [*row.values, -1.0])

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
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            solution = self._solver.getSolution()
            values = np.array(solution.col_value)
            bound = float(self._solver.getInfo().objective_function_value)
            if len(self._objectives) == 1:
                bound += self._objectives[0].constant
            e, v = np.split(values[self._inputs : self._v(self._relus)], 2)
            gaps = np.abs(v - np.maximum(e, 0.0))
            return self._relaxed(bound, values[: self._inputs], gaps, np.array(solution.row_dual))
        if status == highspy.HighsModelStatus.kInfeasible:
            _, exists, ray = self._solver.getDualRay()
            duals = np.array(ray) if exists else np.zeros(self._solver.getNumRow())
            return self._relaxed(inf, None, np.zeros(self._relus), duals)
        return None

    def _decide(self, relu: int, phase: bool | None) -> None:
        row, solver = self._row_of[relu], self._solver
        on, off = phase is True, phase is False
        cap = self._caps[relu]
        solver.changeColBounds(self._v(relu), -cap if on else 0.0, 0.0 if off else cap)
        solver.changeRowBounds(row, -INFINITE if off else 0.0, 0.0 if on else INFINITE)
        line = -self._bounds.slopes[relu] * self._bounds.low[relu]
        solver.changeRowBounds(row + 1, -INFINITE, INFINITE if on or off else line)
        solver.changeRowBounds(row + 2, 0.0 if on else -INFINITE, 0.0 if off else INFINITE)

    def _relaxed(self, bound: float, inputs: Floats | None, gaps: Floats, duals: Floats) -> Relaxed:
        by_row = np.zeros((3, self._relus))
        rows = self._relus + 3 * np.arange(len(self.decidable))
        for n, part in enumerate(by_row):
            part[self.decidable] = duals[rows + n]
        after = self._relus + 3 * len(self.decidable)
        by_row[0, self._always_on] = duals[after : after + len(self._always_on)]
        weights = -duals[after + len(self._always_on) :]
        if len(self._objectives) == 1:
            weights = np.array([float(inputs is not None)])
        return Relaxed(bound, inputs, gaps, weights, duals[: self._relus], *by_row)


# The search tree over the phases of ReLUs


#: The ReLUs decided on the way to a case, in order, each with its phase (True: its argument is >= 0).
Path = tuple[tuple[int, bool], ...]
W = TypeVar("W")


@dataclass(frozen=True)
class Leaf:
    """What closes a case: by ReLU the slopes of lines below and the multipliers of what was decided."""

    slopes: Mapping[int, Fraction]
    multipliers: Mapping[int, Fraction]


@dataclass
class Tree:
    """A growing tree: a split or a leaf for the path to each node; a path with neither is an open case."""

    splits: dict[Path, int] = field(default_factory=dict)
    leaves: dict[Path, Leaf] = field(default_factory=dict)
    left_open: int = 0


@dataclass(frozen=True, eq=False)
class CaseFinding(Generic[W]):
    """The result of examining one case: a counterexample, a leaf that closes it, or a ReLU to split it at.

    With none of them the case is left open. If the search is not depth first, the parts of cases with the
    least `bound` are examined first.
    """

    counterexample: W | None = None
    leaf: Leaf | None = None
    split: int | None = None
    bound: float = 0.0


def grow(look: Callable[[Mapping[int, bool]], CaseFinding[W]], *, depth_first: bool) -> Tree | W:
    """Examine cases, split by split, until each is closed or left open, or a counterexample is found."""
    tree = Tree()
    ties = count()
    pending: list[tuple[float, int, Path]] = [(0.0, next(ties), ())]
    while pending:
        path = heapq.heappop(pending)[-1]
        found = look(dict(path))
        if found.counterexample is not None:
            return found.counterexample
        if found.leaf is not None:
            tree.leaves[path] = found.leaf
        elif found.split is None:
            tree.left_open += 1
        else:
            tree.splits[path] = found.split
            for phase in (True, False):
                at = (-len(path), next(ties)) if depth_first else (found.bound, next(ties))
                heapq.heappush(pending, (*at, (*path, (found.split, phase))))
    return tree
