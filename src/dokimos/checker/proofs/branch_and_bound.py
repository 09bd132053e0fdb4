"""Case distinctions on ReLUs, each case bounded with multipliers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dokimos.checker.base import CertificateKind, Problem, Proven, if_provable, refute
from dokimos.checker.data import PLACE, expect_keys, rational
from dokimos.checker.lemmas.minorants import box_floats, outward
from dokimos.checker.lemmas.relu_layers import BoundedLayers, Cases, bounded, relu_layers
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.outward import Interval
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.properties.model import Box, Linear, Property
from dokimos.suites.instance import Label

MOST_LEAVES = 20_000
#: Leaves bounded at once.
BATCH = 1024
LEAF = -1
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True)
class Leaf:
    """A case: what it decided on the way, and its choices, by ReLU."""

    phases: Mapping[int, int]
    slopes: Mapping[int, float]
    multipliers: Mapping[int, float]


class BranchAndBound(CertificateKind):
    """`unsat` for ReLU networks.

    Theorem. For every input, the argument e of a ReLU is >= 0 or <= 0. So the leaves of a binary tree
    that asks this of one ReLU at each node cover all inputs, and the smallest of lower bounds that hold
    at the leaves is a lower bound everywhere. A leaf is bounded by weak duality, as
    `BoundedLayers.lower_bounds` states: any slopes in [0, 1] and any multipliers >= 0 give a valid
    bound; those of an optimal linear program give the best.

    The data has one tree for each constraint, in the order in which the property names them: the ReLUs
    asked, in preorder (e >= 0 first), -1 for a leaf; and for each leaf its slopes and multipliers by
    ReLU, where they are not the usual ones. ReLUs are numbered from 0, layer after layer. The arithmetic is
    float64 intervals rounded outward. In float32 each affine layer adds its rounding as noise.
    """

    name: ClassVar[str] = "branch-and-bound"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every constraint at the leaves of its tree."""
        expect_keys(data, "trees")
        named = _constraints(problem.property)
        if not isinstance(data["trees"], list) or len(data["trees"]) != len(named):
            raise UnreadableFile(PLACE, f"'trees' must be a list of {len(named)}, one for each constraint")
        trees = dict(zip(named, (read_tree(each) for each in data["trees"]), strict=True))
        if sum(len(leaves) for leaves in trees.values()) > MOST_LEAVES:
            raise InvalidProof(f"the proof has more than {MOST_LEAVES} leaves")
        network = problem.network
        known: dict[tuple[Box, bool], BoundedLayers] = {}

        def layers_over(box: Box, *, in_float32: bool) -> BoundedLayers:
            if (box, in_float32) not in known:
                rounding = None
                if in_float32:
                    rounding = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
                known[box, in_float32] = bounded(relu_layers(network, rounding), Interval(*box_floats(box)))
            return known[box, in_float32]

        def real(constraint: Linear, box: Box) -> Fraction:
            return lowest(layers_over(box, in_float32=False), trees[constraint], constraint)

        def float32(constraint: Linear, box: Box) -> Fraction:
            return lowest(layers_over(box, in_float32=True), trees[constraint], constraint)

        return Proven(
            real=refute(problem.property, real),
            float32=if_provable(lambda: refute(problem.property, float32)),
        )


def _constraints(property: Property) -> list[Linear]:
    """The different constraints, in the order of the property."""
    named = (c for case in property.cases for conjunction in case.any_of for c in conjunction)
    return list(dict.fromkeys(named))


def read_tree(data: Any) -> list[Leaf]:
    """The leaves of a tree. Raises UnreadableFile where it has the wrong shape."""
    if not isinstance(data, dict):
        raise UnreadableFile(PLACE, "a tree must be an object")
    expect_keys(data, "splits", "leaves")
    splits, leaves = data["splits"], data["leaves"]
    if not isinstance(splits, list) or not isinstance(leaves, list):
        raise UnreadableFile(PLACE, "'splits' and 'leaves' must be lists")
    if any(not isinstance(i, int) or isinstance(i, bool) or i < LEAF for i in splits):
        raise UnreadableFile(PLACE, "'splits' must be numbers of ReLUs, -1 for a leaf")
    paths = _paths(splits)
    if len(paths) != len(leaves):
        raise UnreadableFile(PLACE, f"a tree has {len(paths)} leaves, but {len(leaves)} are given")
    return [_leaf(path, leaf) for path, leaf in zip(paths, leaves, strict=True)]


def _paths(splits: list[int]) -> list[dict[int, int]]:
    """What was decided on the way to each leaf of the tree in preorder."""
    pending: list[dict[int, int]] = [{}]
    paths = []
    for choice in splits:
        if not pending:
            raise UnreadableFile(PLACE, "a tree goes on after its last leaf")
        path = pending.pop()
        if choice == LEAF:
            paths.append(path)
        elif choice in path:
            raise UnreadableFile(PLACE, f"a tree asks ReLU {choice} twice on one path")
        else:
            pending += [{**path, choice: -1}, {**path, choice: 1}]
    if pending:
        raise UnreadableFile(PLACE, "a tree ends before its last leaf")
    return paths


def _leaf(path: dict[int, int], data: Any) -> Leaf:
    if not isinstance(data, dict):
        raise UnreadableFile(PLACE, "a leaf must be an object")
    expect_keys(data, "slopes", "multipliers")
    slopes, multipliers = (_choices(data[key], key) for key in ("slopes", "multipliers"))
    if any(not 0 <= s <= 1 for s in slopes.values()):
        raise InvalidProof("a slope lies outside [0, 1]")
    if any(not 0 <= m <= 2.0**100 for m in multipliers.values()):
        raise InvalidProof("a multiplier is negative or too large")
    return Leaf(path, slopes, multipliers)


def _choices(data: Any, key: str) -> dict[int, float]:
    """Numbers by ReLU; since any number will do, rounding to float64 changes no proof."""
    if not isinstance(data, dict) or not all(_NUMBER.fullmatch(str(i)) for i in data):
        raise UnreadableFile(PLACE, f"{key!r} must be an object with a number for each ReLU named")
    try:
        return {int(i): float(rational(value, f"an entry of {key!r}")) for i, value in data.items()}
    except OverflowError:
        raise UnreadableFile(PLACE, f"an entry of {key!r} is too large") from None


def lowest(layers: BoundedLayers, leaves: list[Leaf], constraint: Linear) -> Fraction:
    """A lower bound on left side − bound over the box, by the theorem of `BranchAndBound`."""
    if constraint.inputs:
        raise InvalidProof("the constraint speaks of inputs")
    last = np.zeros(len(layers.layers[-1].biases))
    row = [Fraction(0)] * len(last)
    for j, d in constraint.outputs:
        row[j] = d
    exact = outward(row)
    smallest = np.inf
    for start in range(0, len(leaves), BATCH):
        cases = cases_of(layers, leaves[start : start + BATCH])
        count = len(cases.phases)
        rows = Interval(*(np.broadcast_to(end, (count, len(row))) for end in (exact.lower, exact.upper)))
        with np.errstate(all="ignore"):
            smallest = min(smallest, float(layers.lower_bounds(rows, cases).min()))
    if not np.isfinite(smallest):
        raise InvalidProof("a leaf is not bounded by a finite number")
    return Fraction(smallest) - constraint.bound


def cases_of(layers: BoundedLayers, leaves: list[Leaf]) -> Cases:
    """The leaves as rows."""
    shape = (len(leaves), layers.relus)
    phases = np.zeros(shape, dtype=np.int8)
    slopes = np.broadcast_to(layers.usual_slopes(), shape).copy()
    multipliers = np.zeros(shape)
    for number, leaf in enumerate(leaves):
        for target, chosen in (
            (phases, leaf.phases),
            (slopes, leaf.slopes),
            (multipliers, leaf.multipliers),
        ):
            for relu, value in chosen.items():
                if relu >= layers.relus:
                    raise InvalidProof(f"there is no ReLU {relu}")
                target[number, relu] = value
    return Cases(phases, slopes, multipliers)
