"""A sum of decision trees as a program computes it, and where in a set of cases its leaves are reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import (
    ALWAYS,
    Cut,
    ForbiddenDecisions,
    Formula,
    Number,
    Options,
    Quantity,
    Sign,
    Zone,
    exact,
)
from dokimos.checker.trees.axes import Axes, Mask, Ranks

Ints = NDArray[np.int64]
Floats = NDArray[np.floating]
#: The most numbers that the boxes of joint leaves may take; beyond it, records are looked at one by one.
_MOST_JOINT = 2**24


@dataclass(frozen=True)
class SumOfTrees:
    """The nodes of all trees, one tree behind the other, and how their values are added.

    A record has a number for every feature, or the number of an option, or nothing. At a node it goes to
    `left` where the feature at `place` is at most `last`, a double; where `option` is not −1 and the
    feature is a choice, what counts is 1 for that option and 0 for any other. A missing value goes left if
    `missing_left`. At a leaf `place` is −1. The scores of a record are

        (((base + values[leaf of tree 1]) + values[leaf of tree 2]) + …) / divide,

    each operation rounded to nearest in the type of `values` and `base`, float64 or float32. The decision
    is the first largest score; or, with a `tie` above 0, some class whose score is at most that much below
    each of the others. Where scores are compared with numbers, what is compared is, with a `tie`, a number
    at most that far from the score: by some function of the values of the leaves that falls with none of
    them (so a program may add and weigh them in another order). `roots` are the first nodes of the trees;
    inner nodes have the values 0.
    """

    roots: Ints
    place: Ints
    option: Ints
    last: NDArray[np.float64]
    missing_left: Mask
    left: Ints
    right: Ints
    values: Floats
    base: Floats
    divide: float
    tie: float = 0.0

    def __post_init__(self) -> None:
        with np.errstate(all="ignore"):
            divisor = self.values.dtype.type(self.divide)
        finite = np.isfinite(self.values).all() and np.isfinite(self.base).all() and np.isfinite(divisor)
        if not finite or not divisor > 0 or len(self.base) < 1 or len(self.roots) < 1:
            raise ValueError("a sum of trees needs finite values, a score, and a positive divisor")
        if self.values.dtype != self.base.dtype or self.values.dtype not in (np.float64, np.float32):
            raise ValueError("a sum of trees is computed in float64 or in float32")

    @property
    def divisor(self) -> Fraction:
        """What scores are divided by, in the type that they are computed in."""
        return Fraction(float(self.values.dtype.type(self.divide)))


@dataclass(frozen=True)
class ScoreComparison:
    """Σ factor · score + quantity <= 0, or < 0; `scores` numbers a record and a class, and has a factor."""

    scores: tuple[tuple[int, int, int], ...]
    quantity: Quantity
    sign: Sign


@dataclass(frozen=True)
class ForbiddenScores:
    """Comparisons that violate the law where all of them hold, and in which part of the set they do."""

    parts: tuple[ScoreComparison, ...]
    where: Formula


@dataclass(frozen=True)
class TreeStatement:
    """No case of `zone` that satisfies all `conditions` is `forbidden`, by its decisions or by its scores.

    Each record is the quantity of every feature: a constant, or a variable of the zone, which may be
    missing (`Quantity.gaps`). A forbidden combination of decisions has a class for each record.
    """

    trees: SumOfTrees
    zone: Zone
    conditions: tuple[Formula, ...]
    records: tuple[tuple[Quantity, ...], ...]
    forbidden: tuple[ForbiddenDecisions | ForbiddenScores, ...]

    def axes(self, more: Iterable[Cut] = ()) -> Axes:
        """Axes with a break at every threshold that a record meets, and at `more`."""
        breaks: dict[int, set[Number]] = {}
        for cut in more:
            breaks.setdefault(cut.variable, set()).add(cut.at)
        gaps: set[int] = set()
        known = [np.unique(self.trees.last[self.trees.place == k]) for k in range(len(self.records[0]))]
        for record in self.records:
            for place, quantity in enumerate(record):
                gaps |= quantity.gaps - {ALWAYS}
                variable = _variable(quantity)
                if variable is None or isinstance(self.zone.values[variable], Options):
                    continue
                inside = known[place][np.isfinite(known[place])]
                breaks.setdefault(variable, set()).update(exact(float(each)) for each in inside)
        return Axes(self.zone, breaks, gaps)


def _variable(quantity: Quantity) -> int | None:
    """The variable that a quantity is, missing or not; None for a constant."""
    if quantity.is_constant:
        return None
    if quantity.constant != 0 or len(quantity.terms) != 1 or quantity.terms[0][1] != 1:
        raise ValueError("a feature of a record is neither a constant nor a variable")
    return quantity.terms[0][0]


@dataclass(frozen=True)
class Leaves:
    """Combinations of leaves of one tree that some records reach together, each with the box of cases.

    `nodes` has the leaf of each of `records`, in this order; `tree` says of which tree, in ascending order.
    Every case of the statement that satisfies its conditions is in exactly one box of every tree.
    """

    records: tuple[int, ...]
    tree: Ints
    nodes: Ints
    low: Ranks
    high: Ranks


@dataclass(frozen=True)
class _Reading:
    """How one record meets each node: go left where the rank on `axis` is at most `rank`.

    Where `axis` is −1, all go left if `rank` is 0 and right if it is −1. `gaps` has, by place, the axes
    that are 1 where the feature is missing; −1 stands for none. `is_missing` marks what always is.
    """

    axis: Ints
    rank: Ints
    gaps: Ints
    is_missing: Mask


def _read(statement: TreeStatement, axes: Axes, record: Sequence[Quantity]) -> _Reading:
    trees = statement.trees
    axis = np.full(len(trees.place), -1)
    rank = np.zeros(len(trees.place), dtype=np.int64)
    width = max((len(each.gaps) for each in record), default=0)
    gaps = np.full((len(record), width), -1)
    for place, quantity in enumerate(record):
        for k, gap in enumerate(sorted(quantity.gaps - {ALWAYS})):
            gaps[place, k] = axes.first[gap]
        variable = _variable(quantity)
        nodes = np.flatnonzero(trees.place == place)
        tests, which = np.unique(
            np.stack([trees.option[nodes].astype(np.float64), trees.last[nodes]]),
            axis=1,
            return_inverse=True,
        )
        found = [_test(axes, quantity, variable, int(option), float(last)) for option, last in tests.T]
        pairs = np.array(found, dtype=np.int64).reshape(-1, 2)[which.ravel()]
        axis[nodes], rank[nodes] = pairs[:, 0], pairs[:, 1]
    return _Reading(axis, rank, gaps, np.array([ALWAYS in each.gaps for each in record], dtype=np.bool_))


def _test(
    axes: Axes, quantity: Quantity, variable: int | None, option: int, last: float
) -> tuple[int, int]:
    """The axis and rank of a test; see _Reading."""
    if option >= 0:  # what is compared is 0 or 1
        if variable is None:
            return -1, 0 if int(quantity.constant == option) <= last else -1
        if option not in axes.options[variable] or not 0 <= last < 1:
            return -1, 0 if last >= 0 else -1
        return axes.first[variable] + axes.options[variable].index(option), 0
    if variable is None:
        return -1, 0 if quantity.constant <= last else -1
    return axes.first[variable], axes.rank(variable, last)


@dataclass
class _Walk:
    """Boxes on their way down the trees; `done` are the leaves of the records before."""

    tree: Ints
    node: Ints
    done: Ints
    low: Ranks
    high: Ranks

    def of(self, rows: Mask | Ints) -> _Walk:
        return _Walk(self.tree[rows], self.node[rows], self.done[rows], self.low[rows], self.high[rows])

    def moved(self, node: Ints) -> _Walk:
        return _Walk(self.tree, node, self.done, self.low, self.high)


def leaves_of(statement: TreeStatement, axes: Axes, records: Sequence[int]) -> Leaves | None:
    """Where these records reach which leaves of each tree; None where there are too many combinations.

    Theorem. Every case of the zone that satisfies the conditions is in the box of one combination of every
    tree, and its records reach the leaves of that combination.

    *Proof.* All boxes start as the zone, with the first record at the root. A box whose record is at an
    inner node is replaced by those of its cases that go left and those that go right; first, where the
    feature may be missing, by those where it is and those where it is not. What is left out is an empty
    box, or one in which a condition is false throughout. The trees are finite. ∎
    """
    trees = statement.trees
    count = len(trees.roots)
    walk = _Walk(
        np.arange(count),
        trees.roots,
        np.zeros((count, 0), dtype=np.int64),
        np.tile(axes.low, (count, 1)),
        np.tile(axes.high, (count, 1)),
    )
    if (axes.low > axes.high).any():
        walk = walk.of(np.zeros(count, dtype=np.bool_))
    most = max(_MOST_JOINT if len(records) > 1 else 16 * _MOST_JOINT, 1)
    for record in records:
        reading = _read(statement, axes, statement.records[record])
        found = _descended(trees, axes, reading, walk.moved(trees.roots[walk.tree]), most)
        if found is None:
            return None
        for condition in statement.conditions:
            found = found.of(axes.can(condition, found.low, found.high)[0])
        walk = found
    order = np.argsort(walk.tree, kind="stable")
    walk = walk.of(order)
    return Leaves(tuple(records), walk.tree, walk.done, walk.low, walk.high)


def _descended(trees: SumOfTrees, axes: Axes, reading: _Reading, walk: _Walk, most: int) -> _Walk | None:
    finished: list[_Walk] = []
    total = 0
    while True:
        at_leaf = trees.place[walk.node] < 0
        ended = walk.of(at_leaf)
        finished.append(
            _Walk(ended.tree, ended.node, np.column_stack([ended.done, ended.node]), ended.low, ended.high)
        )
        walk = walk.of(~at_leaf)
        total += len(ended.node) * len(axes.low)
        if total + len(walk.node) * len(axes.low) > most:
            return None
        if len(walk.node) == 0:
            return _joined(finished)
        walk = _step(trees, axes, reading, walk)


def _step(trees: SumOfTrees, axes: Axes, reading: _Reading, walk: _Walk) -> _Walk:
    place = trees.place[walk.node]
    rows = np.arange(len(place))
    missing = reading.is_missing[place].copy()
    undecided = np.full(len(place), -1)
    for k in range(reading.gaps.shape[1]):
        gap = reading.gaps[place, k]
        missing |= (gap >= 0) & (walk.low[rows, gap] == 1)
        undecided = np.where((gap >= 0) & (walk.low[rows, gap] < walk.high[rows, gap]), gap, undecided)
    undecided[missing] = -1
    parts = [_to_missing_side(trees, walk.of(missing))]
    is_open = undecided >= 0
    for value in (0, 1):
        part = walk.of(is_open)
        own = (np.arange(len(part.node)), undecided[is_open])
        part.low[own] = part.high[own] = value
        parts.append(_to_missing_side(trees, part) if value else part)
    walk = walk.of(~missing & ~is_open)
    axis, rank = reading.axis[walk.node], reading.rank[walk.node]
    for side, child in ((0, trees.left), (1, trees.right)):
        part = walk.moved(child[walk.node]).of(np.arange(len(axis)))
        tested = np.flatnonzero(axis >= 0)
        own = (tested, axis[tested])
        if side == 0:
            part.high[own] = np.minimum(part.high[own], rank[tested])
        else:
            part.low[own] = np.maximum(part.low[own], rank[tested] + 1)
        part = part.of((axis >= 0) | (rank == -side))
        axes.settle(part.low, part.high)
        parts.append(part.of(np.asarray((part.low <= part.high).all(axis=1))))
    return _joined(parts)


def _to_missing_side(trees: SumOfTrees, walk: _Walk) -> _Walk:
    return walk.moved(
        np.where(trees.missing_left[walk.node], trees.left[walk.node], trees.right[walk.node])
    )


def _joined(parts: Sequence[_Walk]) -> _Walk:
    return _Walk(
        np.concatenate([each.tree for each in parts]),
        np.concatenate([each.node for each in parts]),
        np.concatenate([each.done for each in parts]),
        np.concatenate([each.low for each in parts]),
        np.concatenate([each.high for each in parts]),
    )
