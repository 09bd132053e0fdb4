"""Affine layers with ReLUs between them, in floats: proofs that an output is positive, and nearby zeros."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import highspy
import numpy as np

from dokimos.checker.lemmas.relu_layers import BoundedLayers, Cases, ReluLayer
from dokimos.engine.outcome import NoProof, ReachedLimit, SearchEffort
from dokimos.engine.relu_relaxation import (
    INFINITE,
    Leaf,
    Path,
    Relaxation,
    Relaxed,
    ReluBounds,
    SparseRow,
    Tree,
    quiet_solver,
)
from dokimos.networks.semantics.outward import Floats, point

#: A ReLU whose factor is smaller than this needs no slope of its own.
_NEGLIGIBLE = 1e-12


def forward(layers: tuple[ReluLayer, ...], x: Floats) -> tuple[Floats, list[Floats]]:
    """The outputs in floats, and the arguments of each layer's ReLUs."""
    arguments = []
    for layer in layers[:-1]:
        arguments.append(layer.weights @ x + layer.biases)
        x = np.maximum(arguments[-1], 0.0)
    return layers[-1].weights @ x + layers[-1].biases, arguments


def prove_positive(
    layers: BoundedLayers, row: Floats, *, most_programs: int, effort: SearchEffort | None = None
) -> tuple[Tree | Floats, int]:
    """A tree whose leaves show that row·outputs > 0 on the box, or a counterexample, and the effort.

    The leaves are those of the arithmetic `outward`, for a conjunction of one constraint. Raises NoProof
    if neither is found within `most_programs` linear programs, and within `effort`, whose steps are linear
    programs too.
    """
    search = _RowSearch(layers, row, most_programs, SearchEffort() if effort is None else effort)
    return search.run(), search.programs


class _RowSearch:
    """Examines cases with one relaxation: depth first, each program starts near the last one's optimum."""

    def __init__(
        self, layers: BoundedLayers, row: Floats, most_programs: int, effort: SearchEffort
    ) -> None:
        self._layers, self._row, self._most, self._effort = layers, row, most_programs, effort
        self._relaxation = _relaxation(layers, row)
        self.programs = 0

    def run(self) -> Tree | Floats:
        """Split until every case is closed, or a counterexample is found."""
        tree = Tree()
        pending: list[Path] = [()]
        while pending:
            path = pending.pop()
            found = self._look(dict(path))
            if isinstance(found, Leaf):
                tree.leaves[path] = found
            elif isinstance(found, int):
                tree.splits[path] = found
                pending += [(*path, (found, phase)) for phase in (False, True)]
            else:
                return found
        return tree

    def _look(self, phases: Mapping[int, bool]) -> Leaf | int | Floats:
        """What closes the case, the ReLU that the relaxation misses most, or a counterexample."""
        layers, row = self._layers, self._row
        self.programs += 1
        self._effort.steps += 1
        if self.programs > self._most or self._effort.end is ReachedLimit.STEPS:
            raise NoProof(f"branch and bound takes more than {self.programs - 1} linear programs")
        if self._effort.end is ReachedLimit.TIME:
            raise NoProof("branch and bound ran out of time")
        solved = self._relaxation.solve(phases)
        if solved is not None:
            if solved.bound > 0:
                leaf = self._leaf(phases, solved)
                if layers.lower_bounds(point(row[None, :]), self._case(phases, leaf))[0] > 0:
                    return leaf
            inside = np.clip(solved.inputs, layers.box.lower, layers.box.upper)
            if float(row @ forward(layers.layers, inside)[0]) <= 0:
                return inside
        undecided = [relu for relu in self._relaxation.decidable if relu not in phases]
        if not undecided:
            raise NoProof("a leaf cannot be decided in float64")
        return max(undecided, key=lambda k: 0.0 if solved is None else float(solved.gaps[k]))

    def _case(self, phases: Mapping[int, bool], leaf: Leaf) -> Cases:
        """What `BoundedLayers.lower_bounds` reads."""
        found = self._layers.silent(1)
        for relu, is_on in phases.items():
            found[0, 0, relu] = 1 if is_on else -1
        for part, numbers in enumerate((leaf.slopes, leaf.multipliers), 1):
            for relu, value in numbers.items():
                found[part, 0, relu] = float(value)
        return found

    def _leaf(self, phases: Mapping[int, bool], solved: Relaxed) -> Leaf:
        """Slopes and multipliers from the duals: what `BoundedLayers.lower_bounds` reads.

        At the optimum the duals y of a layer's definitions are the factors with which the arguments of its
        ReLUs enter the bound, so y·weights are those of the values v of the layer before. A ReLU with a
        factor c > 0 is bounded below by s·e, where c·s is the dual of its row *below*.
        """
        layers = self._layers
        by_layer = np.split(solved.definitions, np.cumsum([len(each.lower) for each in layers.arguments]))
        weights = [self._row, *by_layer[-2:0:-1]]
        factors = np.concatenate(
            [y @ layer.weights for y, layer in zip(weights, layers.layers[:0:-1], strict=True)][::-1]
        )
        slopes, multipliers = {}, {}
        for relu in self._relaxation.decidable:
            if relu in phases:
                sign = 1 if phases[relu] else -1
                if (multiplier := sign * float(solved.decided[relu])) > 0:
                    multipliers[relu] = Fraction(multiplier)
            elif factors[relu] > _NEGLIGIBLE:
                slope = float(solved.below[relu]) / float(factors[relu])
                slopes[relu] = Fraction(min(1.0, max(0.0, slope)))
        return Leaf(slopes, multipliers)


def _relaxation(layers: BoundedLayers, row: Floats) -> Relaxation:
    """The least value of row·outputs over the box."""
    low = np.concatenate([each.lower for each in layers.arguments])
    high = np.concatenate([each.upper for each in layers.arguments])
    unstable = (low < 0) & (high > 0)
    slopes = np.divide(high, high - low, out=np.zeros_like(high), where=unstable)
    arguments = []
    before = np.arange(len(layers.box.lower))
    for layer in layers.layers[:-1]:
        for weights, bias in zip(layer.weights, layer.biases, strict=True):
            used = np.flatnonzero(weights)
            arguments.append(SparseRow(float(bias), before[used], weights[used]))
        before = before[-1] + 1 + np.arange(len(layer.biases))
    last = layers.layers[-1]
    objective = SparseRow(float(row @ last.biases), before, row @ last.weights)
    bounds = ReluBounds(low, high, slopes)
    return Relaxation(layers.box, arguments, bounds, objective, np.flatnonzero(unstable).tolist())


def nearest_in_region(layers: tuple[ReluLayer, ...], row: Floats, x: Floats, level: float) -> Floats | None:
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
