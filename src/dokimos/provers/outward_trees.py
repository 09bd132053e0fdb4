"""Linear bounds with splits on affine layers and ReLUs: proofs `relu-tree`, in outward floats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from dokimos.checker.lemmas.float_ends import box_floats
from dokimos.checker.lemmas.relu_layers import BoundedLayers, ReluLayer, bounded, relu_layers
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import Floats, Interval, point
from dokimos.properties.model import Box, Conjunction, Linear, Point, Property
from dokimos.properties.nearest import nearest_point
from dokimos.provers.base import NoProof
from dokimos.provers.effort import ReachedLimit, SearchEffort
from dokimos.provers.layered_networks import prove_positive
from dokimos.provers.relu_search import Tree

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
