"""Affine layers with ReLUs between them, in floats: proofs that an output is positive, and nearby zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

import highspy
import numpy as np

from dokimos.checker.lemmas.constraints import Leaf, box_floats
from dokimos.checker.lemmas.relu_layers import BoundedLayers, ReluLayer, bounded, relu_layers
from dokimos.engine.outcome import NoProof, ReachedLimit, SearchEffort
from dokimos.engine.relu_relaxation import (
    INFINITE,
    CaseFinding,
    Relaxation,
    Relaxed,
    ReluBounds,
    SparseRow,
    Tree,
    grow,
    quiet_solver,
)
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval, point
from dokimos.suites.vnnlib.model import Box, Conjunction, Linear, Point, Property, nearest_point

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
    return grow(search.look, depth_first=True), search.programs


class _RowSearch:
    """Examines cases with one relaxation: depth first, each program starts near the last one's optimum."""

    def __init__(
        self, layers: BoundedLayers, row: Floats, most_programs: int, effort: SearchEffort
    ) -> None:
        self._layers, self._row, self._most, self._effort = layers, row, most_programs, effort
        self._relaxation = _relaxation(layers, row)
        self.programs = 0

    def look(self, phases: Mapping[int, bool]) -> CaseFinding[Floats]:
        """Close the case, or find a counterexample, or else split where the relaxation is worst."""
        layers, row = self._layers, self._row
        self.programs += 1
        self._effort.steps += 1
        if self.programs > self._most or self._effort.end is ReachedLimit.STEPS:
            raise NoProof(f"branch and bound takes more than {self.programs - 1} linear programs")
        if self._effort.end is ReachedLimit.TIME:
            raise NoProof("branch and bound ran out of time")
        solved = self._relaxation.solve(phases)
        if solved is not None and solved.inputs is not None:
            if solved.bound > 0:
                leaf = self._leaf(phases, solved)
                if layers.lower_bounds(point(row[None, :]), layers.cases([leaf]))[0] > 0:
                    return CaseFinding(leaf=leaf)
            inside = np.clip(solved.inputs, layers.box.lower, layers.box.upper)
            if float(row @ forward(layers.layers, inside)[0]) <= 0:
                return CaseFinding(counterexample=inside)
        undecided = [relu for relu in self._relaxation.decidable if relu not in phases]
        if not undecided:
            raise NoProof("a leaf cannot be decided in float64")
        return CaseFinding(
            split=max(undecided, key=lambda k: 0.0 if solved is None else float(solved.gaps[k]))
        )

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
        return Leaf(dict(phases), (Fraction(1),), {"slopes": slopes, "multipliers": multipliers})


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
    return Relaxation(layers.box, arguments, bounds, [objective], np.flatnonzero(unstable).tolist())


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


# Linear bounds with splits on affine layers and ReLUs: proofs `relu-tree`, in outward floats


_MOST_PROGRAMS = 50_000


@dataclass(frozen=True)
class OutwardTrees:
    """The data of a `relu-tree` if every conjunction is refuted, else None.

    `bound` is a lower bound of the margin, from linear bounds without splits. `candidates` are inputs at
    which a conjunction of one constraint seems to hold. `end` is what ended the search, if anything did.
    """

    data: dict[str, Any] | None
    bound: float
    candidates: tuple[Point, ...] = ()
    end: ReachedLimit | None = None


def prove_by_linear_bounds(
    network: Network, asked: Property, *, seconds: float, most_programs: float = inf
) -> OutwardTrees:
    """Refute every conjunction by one of its constraints, in CPU seconds and linear programs for them all.

    Raises InvalidProof if the network is not affine layers with ReLUs between them.
    """
    effort = SearchEffort(seconds, most_programs)
    layers = relu_layers(network)
    trees: list[dict[str, Any]] = []
    bounds: list[float] = []
    candidates: list[Point] = []
    known: dict[Box, BoundedLayers] = {}
    is_whole = True
    for box, conjunction in asked.questions():
        if box not in known:
            known[box] = bounded(layers, Interval(*box_floats(box)))
        ranked = _ranked(known[box], conjunction)
        bounds.append(ranked[0][0] if ranked else -np.inf)
        found = _refute(known[box], conjunction, ranked, effort) if is_whole else None
        if isinstance(found, Tree):
            trees.append(found.as_data())
            continue
        is_whole = False
        if found is not None:
            candidates.append(nearest_point(found.tolist(), box))
    data = {"arithmetic": "outward", "trees": trees} if is_whole and trees else None
    end = None if is_whole else effort.end
    return OutwardTrees(data, min(bounds, default=-np.inf), tuple(candidates), end)


def _ranked(layers: BoundedLayers, conjunction: Conjunction) -> list[tuple[float, int, BoundedLayers]]:
    """The constraints on outputs alone, the most promising first: a lower bound, which one, its layers."""
    found = []
    for number, constraint in enumerate(conjunction):
        if not constraint.inputs:
            own = _of_constraint(layers, constraint)
            bound = float(own.lower_bounds(point(np.ones((1, 1))), own.silent(1))[0])
            found.append((bound, number, own))
    return sorted(found, key=lambda each: -each[0])


def _of_constraint(layers: BoundedLayers, constraint: Linear) -> BoundedLayers:
    """The network whose one output is left side − bound, in floats: a guide that proves nothing."""
    last = layers.layers[-1]
    row = np.zeros(len(last.biases))
    for index, factor in constraint.outputs:
        row[index] = float(factor)
    only = ReluLayer(
        (row @ last.weights)[None, :], np.array([row @ last.biases - float(constraint.bound)]), np.zeros(1)
    )
    return BoundedLayers((*layers.layers[:-1], only), layers.box, layers.arguments)


def _refute(
    layers: BoundedLayers,
    conjunction: Conjunction,
    ranked: list[tuple[float, int, BoundedLayers]],
    effort: SearchEffort,
) -> Tree | Floats | None:
    """A tree by one constraint; else, where the conjunction has just one, a point at which it may hold."""
    for _, number, own in ranked:
        try:
            found, _ = prove_positive(own, np.ones(1), most_programs=_MOST_PROGRAMS, effort=effort)
        except NoProof:
            continue
        if isinstance(found, Tree):
            weights = tuple(Fraction(int(k == number)) for k in range(len(conjunction)))
            leaves = {path: replace(leaf, constraints=weights) for path, leaf in found.leaves.items()}
            return Tree(found.splits, leaves, found.left_open)
        if len(conjunction) == 1:
            return found
    return None
