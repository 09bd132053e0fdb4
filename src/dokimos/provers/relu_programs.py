"""Linear programs over ReLU layers, solved by HiGHS, and branch and bound on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import highspy
import numpy as np

from dokimos.checker.lemmas.affine import Matrix
from dokimos.checker.lemmas.relu_layers import BoundedLayers, ReluLayer
from dokimos.checker.proofs.branch_and_bound import LEAF, Leaf, cases_of
from dokimos.networks.semantics.outward import Floats, point
from dokimos.provers.base import NoProof

#: What leaving a decided phase costs in a program: an upper bound on the multipliers.
PENALTY = 1e4
TOLERANCE = 1e-9
INFINITE = highspy.kHighsInf


def forward(layers: tuple[ReluLayer, ...], x: Floats) -> tuple[Floats, list[Floats]]:
    """The outputs in floats, and the arguments of each layer's ReLUs."""
    arguments = []
    for layer in layers[:-1]:
        arguments.append(layer.weights @ x + layer.biases)
        x = np.maximum(arguments[-1], 0.0)
    return layers[-1].weights @ x + layers[-1].biases, arguments


def quiet_solver() -> Any:
    """A HiGHS instance that is silent, deterministic and as precise as it can be."""
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("solver", "simplex"),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
    ):
        solver.setOptionValue(name, value)
    return solver


@dataclass(frozen=True)
class Tree:
    """A tree of splits in preorder with its leaves: the data of a proof, or a counterexample instead."""

    splits: list[int] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    counterexample: Floats | None = None


class Relaxation:
    """min row·outputs over a box, each undecided unstable ReLU relaxed to its triangle.

    Columns: inputs, then for each ReLU its argument e and its value v, then for each unstable ReLU the
    two penalties. For each ReLU the row that defines e; for each unstable one the rows v − e,
    v − k·e and e + p − q, whose bounds say what is decided.
    """

    def __init__(self, layers: BoundedLayers, row: Matrix) -> None:
        self._layers, self._row = layers, row
        self._inputs: int = layers.layers[0].weights.shape[1]
        self._relus = layers.relus
        self._low: Floats = np.concatenate([a.lower for a in layers.arguments])
        self._high: Floats = np.concatenate([a.upper for a in layers.arguments])
        self.unstable = [int(i) for i in np.flatnonzero(layers.unstable())]
        self._row_of = {relu: self._relus + 3 * k for k, relu in enumerate(self.unstable)}
        self._solver = quiet_solver()
        self._build()

    def _e(self, relu: int) -> int:
        return self._inputs + relu

    def _v(self, relu: int) -> int:
        return self._inputs + self._relus + relu

    def _build(self) -> None:
        solver, layers = self._solver, self._layers
        inputs, relus = self._inputs, self._relus
        count = inputs + 2 * relus + 2 * len(self.unstable)
        cost, lower, upper = np.zeros(count), np.full(count, -INFINITE), np.full(count, INFINITE)
        lower[:inputs], upper[:inputs] = layers.box.lower, layers.box.upper
        last = layers.columns[-1]
        cost[self._v(0) + last.start : self._v(0) + last.stop] = self._row @ layers.layers[-1].weights
        lower[inputs + relus : inputs + 2 * relus] = 0.0
        off = np.flatnonzero(self._high <= 0)
        upper[inputs + relus + off] = 0.0
        lower[inputs + 2 * relus :], cost[inputs + 2 * relus :] = 0.0, PENALTY
        none = np.zeros(0)
        solver.addCols(count, cost, lower, upper, 0, none.astype(np.int32), none.astype(np.int32), none)
        before = np.arange(inputs)
        for columns, layer in zip(layers.columns, layers.layers[:-1], strict=True):
            for relu, weights, bias in zip(
                range(columns.start, columns.stop), layer.weights, layer.biases, strict=True
            ):
                used = np.flatnonzero(weights)
                self._add(bias, bias, [self._e(relu), *before[used]], [1.0, *-weights[used]])
            before = self._v(0) + np.arange(columns.start, columns.stop)
        for k, relu in enumerate(self.unstable):
            slope = self._slope(relu)
            penalty = inputs + 2 * relus + 2 * k
            self._add(0.0, INFINITE, [self._v(relu), self._e(relu)], [1.0, -1.0])
            self._add(-INFINITE, -slope * self._low[relu], [self._v(relu), self._e(relu)], [1.0, -slope])
            self._add(-INFINITE, INFINITE, [self._e(relu), penalty, penalty + 1], [1.0, 1.0, -1.0])
        for on in np.flatnonzero(self._low >= 0).tolist():
            self._add(0.0, 0.0, [self._v(on), self._e(on)], [1.0, -1.0])

    def _slope(self, relu: int) -> float:
        return float(self._high[relu] / (self._high[relu] - self._low[relu]))

    def _add(self, low: float, high: float, columns: list[int], values: list[float]) -> None:
        self._solver.addRow(
            low, high, len(columns), np.array(columns, dtype=np.int32), np.array(values, dtype=np.float64)
        )

    def solve(self, phases: dict[int, int]) -> tuple[float, Floats, Leaf, Floats] | None:
        """The optimum, the inputs there, the leaf with its multipliers, and each ReLU's |v − max(0, e)|.

        None where the program has no solution.
        """
        for relu in self.unstable:
            self._decide(relu, phases.get(relu, 0))
        self._solver.run()
        if self._solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._solver.getSolution()
        values, duals = np.array(solution.col_value), np.array(solution.row_dual)
        e = values[self._inputs : self._inputs + self._relus]
        v = values[self._inputs + self._relus : self._inputs + 2 * self._relus]
        offset = float(self._row @ self._layers.layers[-1].biases)
        bound = float(self._solver.getInfo().objective_function_value) + offset
        leaf = self._leaf(phases, duals)
        return bound, values[: self._inputs], leaf, np.abs(v - np.maximum(e, 0.0))

    def _decide(self, relu: int, phase: int) -> None:
        row, solver = self._row_of[relu], self._solver
        solver.changeColBounds(
            self._v(relu), 0.0 if phase <= 0 else -INFINITE, 0.0 if phase < 0 else INFINITE
        )
        solver.changeRowBounds(row, -INFINITE if phase < 0 else 0.0, 0.0 if phase > 0 else INFINITE)
        solver.changeRowBounds(
            row + 1, -INFINITE, INFINITE if phase else -self._slope(relu) * self._low[relu]
        )
        solver.changeRowBounds(row + 2, 0.0 if phase > 0 else -INFINITE, 0.0 if phase < 0 else INFINITE)

    def _leaf(self, phases: dict[int, int], duals: Floats) -> Leaf:
        """Slopes and multipliers from the duals: what `BoundedLayers.lower_bounds` reads."""
        weights = [self._row, *(duals[c] for c in self._layers.columns[:0:-1])]
        factors = np.concatenate(
            [y @ layer.weights for y, layer in zip(weights, self._layers.layers[:0:-1], strict=True)][::-1]
        )
        slopes, multipliers = {}, {}
        for relu in self.unstable:
            row, phase = self._row_of[relu], phases.get(relu, 0)
            if phase:
                multipliers[relu] = max(0.0, phase * float(duals[row + 2]))
            elif factors[relu] > 1e-12:
                slopes[relu] = min(1.0, max(0.0, float(duals[row]) / float(factors[relu])))
        return Leaf(dict(phases), slopes, multipliers)


def prove_positive(layers: BoundedLayers, row: Matrix, *, most_programs: int) -> tuple[Tree, int]:
    """A tree whose leaves show that row·outputs > 0 on the box, or a counterexample, and the effort.

    Raises NoProof where neither is found within `most_programs` linear programs.
    """
    relaxation = Relaxation(layers, row)
    pending: list[dict[int, int]] = [{}]
    tree, programs = Tree(), 0
    while pending:
        phases = pending.pop()
        programs += 1
        if programs > most_programs:
            raise NoProof(f"branch and bound takes more than {most_programs} linear programs")
        solved = relaxation.solve(phases)
        open_relus = [r for r in relaxation.unstable if r not in phases]
        gaps = np.zeros(layers.relus)
        if solved is not None:
            bound, x, leaf, gaps = solved
            if bound > 0:
                proven = layers.lower_bounds(point(row[None, :]), cases_of(layers, [leaf]))[0]
                if proven > 0:
                    tree.splits.append(LEAF)
                    tree.leaves.append(leaf)
                    continue
            inside = np.clip(x, layers.box.lower, layers.box.upper)
            if float(row @ forward(layers.layers, inside)[0]) <= 0:
                return Tree(counterexample=inside), programs
        if not open_relus:
            raise NoProof("a leaf cannot be decided in float64")
        choice = max(open_relus, key=lambda r: float(gaps[r]))
        tree.splits.append(choice)
        pending += [{**phases, choice: -1}, {**phases, choice: 1}]
    return tree, programs


def nearest_in_region(layers: tuple[ReluLayer, ...], row: Matrix, x: Floats, level: float) -> Floats | None:
    """The point nearest to 0 (largest coordinate) with row·outputs <= level in the linear region of x."""
    matrix, offset = np.eye(len(x)), np.zeros(len(x))
    solver = quiet_solver()
    size = len(x) + 1
    none = np.zeros(0)
    lower, upper = np.full(size, -INFINITE), np.full(size, INFINITE)
    cost = np.append(np.zeros(len(x)), 1.0)
    solver.addCols(size, cost, lower, upper, 0, none.astype(np.int32), none.astype(np.int32), none)
    columns = np.arange(size, dtype=np.int32)
    for i in range(len(x)):
        for sign in (1.0, -1.0):
            solver.addRow(0.0, INFINITE, 2, np.array([i, len(x)], dtype=np.int32), np.array([sign, 1.0]))
    for layer, e in zip(layers, forward(layers, x)[1], strict=False):
        matrix, offset = layer.weights @ matrix, layer.weights @ offset + layer.biases
        for line, constant, value in zip(matrix, offset, e, strict=True):
            low, high = (-constant, INFINITE) if value > 0 else (-INFINITE, -constant)
            solver.addRow(low, high, size, columns, np.append(line, 0.0))
        matrix, offset = matrix * (e > 0)[:, None], offset * (e > 0)
    slope = row @ layers[-1].weights @ matrix
    rest = level - float(row @ (layers[-1].weights @ offset + layers[-1].biases))
    solver.addRow(-INFINITE, rest, size, columns, np.append(slope, 0.0))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    found: Floats = np.array(solver.getSolution().col_value)[: len(x)]
    return found
