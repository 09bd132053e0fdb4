"""Decision trees and sums of them, evaluated for many records at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from numpy.typing import NDArray

from dokimos.core import strict_json
from dokimos.core.documents import Count, expect_format
from dokimos.core.errors import UnreadableFile
from dokimos.core.typed_values import convert

#: How many pairs of a record and a tree are walked at a time, so that temporary arrays fit in a cache.
_PAIRS = 2**15
LEAF = -1
#: What an ensemble is made of, by name.
_MADE_OF = (
    *("trees", "inputs", "base", "scale", "divide", "single", "float32_sums", "classes"),
    *("takes_missing", "names", "tie", "link", "is_vector"),
)


class NotRead(Exception):
    """Why a model is not read as one of ours, and what its owner can do."""


class Damaged(NotRead):
    """No record should be handed to this model: its trees lead to nowhere, or round in circles."""


def endless(
    feature: NDArray[np.int64], left: NDArray[np.int64], right: NDArray[np.int64], inputs: int
) -> str:
    """Why a walk through a tree may not end at a leaf, or ask what is no input; empty if none does."""
    inner = feature != LEAF
    if ((feature < LEAF) | (feature >= inputs)).any():
        return f"a tree tests a column that is not among the {inputs} inputs"
    children, parents = np.concatenate([left[inner], right[inner]]), np.tile(np.flatnonzero(inner), 2)
    if ((children < 1) | (children >= len(feature))).any():
        return "a child in a tree is none of its nodes"
    # Where no node has two parents, and the root has none, no walk from it comes to a node again.
    if (children <= parents).any() and len(np.unique(children)) < len(children):
        return "a walk through a tree may never end"
    return ""


@dataclass(frozen=True)
class DecisionTree:
    """One tree as arrays over its nodes; node 0 is the root.

    A record goes to `left` if its column `feature` is at most `threshold`, otherwise to `right`; nan goes
    left if `missing_left`. If `feature` is −1, the node is a leaf and `value` is its result. Children come
    after their parent.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    missing_left: NDArray[np.bool_] | None = None

    @property
    def depth(self) -> int:
        """The number of steps from the root to the furthest leaf, by whichever of its parents."""
        depths = np.zeros(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature != LEAF):
            sides = [self.left[node], self.right[node]]
            depths[sides] = np.maximum(depths[sides], depths[node] + 1)
        return int(depths.max())


#: The sides of a node, where the tests that stand for it end.
LEFT, RIGHT = -1, -2


class NodeTest(NamedTuple):
    """A test among those that stand for a node, and where it leads: a test by its number, or a side."""

    column: int
    at: float
    missing_left: bool
    left: int
    right: int


def with_steps(tree: DecisionTree, steps: Mapping[int, Sequence[NodeTest]]) -> DecisionTree:
    """The tree with tests in place of some of its nodes; a test leads to later ones, or to a side."""
    if not steps:
        return tree
    sizes = np.array([len(steps.get(node, (None,))) for node in range(len(tree.feature))])
    start = np.cumsum(sizes) - sizes
    feature, at = np.repeat(tree.feature, sizes), np.repeat(tree.threshold, sizes)
    left, right = (np.repeat(start[side], sizes) for side in (tree.left, tree.right))
    known = np.zeros(len(tree.feature), np.bool_) if tree.missing_left is None else tree.missing_left
    missing = np.repeat(known, sizes)
    for node, tests in steps.items():
        first = int(start[node])
        ends = {LEFT: int(start[tree.left[node]]), RIGHT: int(start[tree.right[node]])}
        for own, step in enumerate(tests, first):
            feature[own], at[own], missing[own] = step.column, step.at, step.missing_left
            left[own], right[own] = (ends.get(to, first + to) for to in (step.left, step.right))
    return DecisionTree(feature, at, left, right, np.repeat(tree.value, sizes, axis=0), missing)


class Ensemble:
    """The function record ↦ (base + scale · (value of tree 1) + scale · (value of tree 2) + …) / divide.

    It is computed in doubles, or with `float32_sums` in float32, in this order. With `single`, records are
    rounded to float32 before they are compared, as scikit-learn does. The decision is the index of the
    largest score, or the entry of `classes` at that index; a single score is the decision itself. With a
    `tie`, a class may be decided whose score is that much below the largest, and a single score that is the
    decision may be that much off; with a `link`, the words for
    an increasing function, the decision is that function of the single score; if it `is_vector`, there is
    none, but several numbers. Without `takes_missing`, there is no score for a record with nan. `names` are
    those of the columns, where they are known.
    """

    def __init__(
        self,
        trees: Sequence[DecisionTree],
        *,
        inputs: int,
        base: Iterable[float],
        scale: float = 1.0,
        divide: float = 1.0,
        single: bool = False,
        float32_sums: bool = False,
        classes: Sequence[float | str] = (),
        takes_missing: bool = True,
        names: Sequence[str] = (),
        tie: float = 0.0,
        link: str = "",
        is_vector: bool = False,
    ) -> None:
        self.trees, self.inputs, self.single = tuple(trees), inputs, single
        self.takes_missing, self.names = takes_missing, tuple(names)
        self.float32_sums, self.tie, self.link, self.is_vector = float32_sums, tie, link, is_vector
        self.sums = np.dtype(np.float32 if float32_sums else np.float64)
        self.base = np.array(list(base), dtype=self.sums)
        self.scale, self.divide, self.classes = scale, divide, tuple(classes)
        kinds = {type(each) for each in self.classes}
        self._classes = np.array(self.classes, dtype=object if len(kinds) > 1 else None)
        sizes = np.array([len(tree.feature) for tree in self.trees])
        self._roots = (np.cumsum(sizes) - sizes).astype(np.int32)
        offsets = np.repeat(self._roots, sizes)
        feature = np.concatenate([tree.feature for tree in self.trees])
        is_leaf, own = feature == LEAF, np.arange(len(feature))
        # Leaves point to themselves, so that every record can take as many steps as the deepest tree has.
        sides = [np.concatenate([tree.right for tree in trees]), np.concatenate([t.left for t in trees])]
        children = [np.where(is_leaf, own, side + offsets) for side in sides]
        self._child = np.stack(children, axis=1).astype(np.int32).ravel()
        self._feature = np.where(is_leaf, 0, feature).astype(np.int32)
        self._threshold = np.concatenate([tree.threshold for tree in self.trees])
        self._value = self.added(np.concatenate([tree.value for tree in self.trees]))
        self._missing = np.concatenate(
            [np.zeros(len(t.feature), bool) if t.missing_left is None else t.missing_left for t in trees]
        )
        self._depth = max(tree.depth for tree in self.trees)

    def added(self, values: NDArray[np.float64]) -> NDArray[Any]:
        """What is added for these values of leaves."""
        return np.asarray(values.astype(self.sums) * self.sums.type(self.scale))

    @property
    def largest_scores(self) -> NDArray[Any]:
        """What no score is larger than in size: infinite or nan where one may be."""
        largest = np.maximum.reduceat(np.abs(self._value), self._roots, axis=0).sum(axis=0)
        return np.asarray((np.abs(self.base) + largest) * 2 / self.sums.type(self.divide))

    def over(self, columns: Sequence[int], inputs: int) -> Ensemble:
        """The same function of wider records: what was column k is the column `columns[k]`."""
        place = np.array([*columns, LEAF], dtype=np.int64)  # a leaf, -1, stays one
        trees = [replace(tree, feature=place[tree.feature]) for tree in self.trees]
        return self.changed(trees=trees, inputs=inputs, names=())

    def column(self, number: int) -> Ensemble:
        """One of its scores by itself."""
        trees = [replace(tree, value=tree.value[:, number : number + 1]) for tree in self.trees]
        base = self.base[number : number + 1]
        return self.changed(trees=trees, base=base, classes=(), tie=0.0, is_vector=False)

    def changed(self, **options: Any) -> Ensemble:
        """The same with some of the arguments that make an ensemble replaced."""
        return Ensemble(**{name: getattr(self, name) for name in _MADE_OF} | options)

    def __call__(self, records: NDArray[Any]) -> NDArray[Any]:
        """One row of scores for each record.

        Raises ValueError if the number of columns is wrong, or a value is missing that must not be.
        """
        rows = np.asarray(records, dtype=np.float32 if self.single else np.float64)
        rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
        if rows.shape[1] != self.inputs:
            raise ValueError(f"records have {rows.shape[1]} columns, the trees take {self.inputs}")
        step = max(1, _PAIRS // len(self.trees))
        made = np.tile(self.base, (len(rows), 1))
        for start in range(0, len(rows), step):
            self._add(rows[start : start + step], made[start : start + step])
        return np.asarray(made / self.sums.type(self.divide))

    def decide(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The decision for each row of scores."""
        if scores.shape[1] == 1:
            return np.asarray(scores[:, 0])
        chosen = scores.argmax(axis=1)
        return self._classes[chosen] if self.classes else np.asarray(chosen)

    def _add(self, rows: NDArray[Any], made: NDArray[Any]) -> None:
        """Walk all trees for all rows at once, step by step, and add up the values of the leaves."""
        flat = rows.ravel()
        starts = (np.arange(len(rows), dtype=np.int32) * self.inputs)[None, :]
        nodes = np.repeat(self._roots, len(rows)).reshape(len(self.trees), len(rows))
        any_missing = bool(np.isnan(flat).any())
        if any_missing and not self.takes_missing:
            raise ValueError("a value is missing, and these trees decide nothing then")
        for _ in range(self._depth):
            values = flat.take(self._feature.take(nodes) + starts)
            goes_left = values <= self._threshold.take(nodes)
            if any_missing:
                goes_left |= np.isnan(values) & self._missing.take(nodes)
            nodes = self._child.take(2 * nodes + goes_left)
        for leaves in nodes:
            made += self._value.take(leaves, axis=0)


#: A probability is above ½ for every margin from here on.
_CLEARLY = 2.0**-10


def last_not(holds: Callable[[float], bool], bits: type, number: type, *, most: float = _CLEARLY) -> float:
    """The largest number from 0 on for which something, false at 0 and true at `most`, does not hold.

    Floats from 0 on, of the type `number`, are ordered as their `bits` are. Raises ValueError where it is
    not false at 0 and true at `most`.
    """
    if holds(0.0) or not holds(most):
        raise ValueError("the second of two classes does not begin where it should")
    low, high = 0, int(number(most).view(bits))
    while high - low > 1:
        middle = (low + high) // 2
        is_above = holds(float(bits(middle).view(number)))
        low, high = (low, middle) if is_above else (middle, high)
    return float(bits(low).view(number))


def last_left(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest double that is at most each threshold after it is rounded to float32.

    The numbers that round to a float32 f are those up to the middle between f and the next, and that middle
    where f is even: of all doubles, the middle is one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        below = threshold.astype(np.float32)
        below = np.where(below > threshold, np.nextafter(below, np.float32(-np.inf)), below)
        above = np.nextafter(below, np.float32(np.inf))
        middle = below.astype(np.float64) / 2 + above.astype(np.float64) / 2
        goes_left = middle.astype(np.float32) <= threshold
    found = np.where(goes_left, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isfinite(below) & np.isfinite(above), found, threshold)


# The file format of decision trees. A file is JSON, documented in docs/laws.md:


FORMAT = "dokimos-trees"
_VERSION = 1


class _TreeForm(Struct, frozen=True, forbid_unknown_fields=True):
    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[list[float]]
    missing_left: list[bool] | UnsetType = UNSET


class _TreesForm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    format: str = FORMAT
    version: int = _VERSION
    inputs: Count
    base: list[float]
    scale: float = 1.0
    divide: float = 1.0
    float32: bool = False
    float32_sums: bool | UnsetType = UNSET
    classes: list[bool | int | float | str] = []
    names: list[str] | UnsetType = UNSET
    takes_missing: bool | UnsetType = UNSET
    trees: list[_TreeForm]


def write_trees(ensemble: Ensemble) -> bytes:
    """The content of a file of trees."""
    form = _TreesForm(
        inputs=ensemble.inputs,
        base=ensemble.base.tolist(),
        scale=ensemble.scale,
        divide=ensemble.divide,
        float32=ensemble.single,
        float32_sums=ensemble.float32_sums or UNSET,
        classes=list(ensemble.classes),
        names=list(ensemble.names) or UNSET,
        takes_missing=UNSET if ensemble.takes_missing else False,
        trees=[
            _TreeForm(
                tree.feature.tolist(),
                tree.threshold.tolist(),
                tree.left.tolist(),
                tree.right.tolist(),
                tree.value.tolist(),
                UNSET if tree.missing_left is None else tree.missing_left.tolist(),
            )
            for tree in ensemble.trees
        ],
    )
    return strict_json.write(form, indent=None).encode()


def read_trees(content: bytes, *, name: str) -> Ensemble:
    """The trees in the content of a file. Raises UnreadableFile."""
    document = strict_json.parse(content, file=name)
    expect_format(document, FORMAT, _VERSION, file=name, otherwise="is not a file of decision trees")
    form = convert(document, _TreesForm, file=name, what="a file of decision trees")
    try:
        return _ensemble(form)
    except (ValueError, OverflowError) as problem:
        raise UnreadableFile(name, f"is damaged: {problem}.") from None


def _ensemble(form: _TreesForm) -> Ensemble:
    """The trees in a parsed file. Raises ValueError if they are inconsistent."""
    scores = len(form.base)
    if not form.trees or not scores:
        raise ValueError("there is no tree, or no score")
    names = () if form.names is UNSET else tuple(form.names)
    if names and (len(names) != form.inputs or len(set(names)) != len(names)):
        raise ValueError(
            f"there must be one name, different from the others, for each of {form.inputs} inputs"
        )
    if form.classes and len(form.classes) != scores:
        raise ValueError(f"there must be one class, a name or a number, for each of {scores} scores")
    with np.errstate(all="ignore"):
        made = _made(form, names)
        is_bounded = np.isfinite([*made.largest_scores, made.sums.type(made.divide)]).all()
    if not is_bounded:
        raise ValueError(f"divide, or a score, may not be a finite number in {made.sums}, or divide is 0")
    return made


def _made(form: _TreesForm, names: tuple[str, ...]) -> Ensemble:
    scores = len(form.base)
    return Ensemble(
        [_tree(each, form.inputs, scores) for each in form.trees],
        inputs=form.inputs,
        base=form.base,
        scale=form.scale,
        divide=form.divide,
        single=form.float32,
        float32_sums=form.float32_sums is True,
        classes=form.classes,
        takes_missing=form.takes_missing is not False,
        names=names,
    )


def _tree(form: _TreeForm, inputs: int, scores: int) -> DecisionTree:
    """A tree in which every walk ends. Raises ValueError."""
    nodes = len(form.feature)
    missing = None if form.missing_left is UNSET else np.array(form.missing_left, dtype=np.bool_)
    sizes = {len(each) for each in (form.threshold, form.left, form.right, form.value)}
    if nodes == 0 or sizes != {nodes} or (missing is not None and len(missing) != nodes):
        raise ValueError("the arrays of a tree have different lengths")
    if any(len(each) != scores for each in form.value):
        raise ValueError(f"a node of a tree has a number of values other than {scores}")
    tree = DecisionTree(
        np.array(form.feature, dtype=np.int64),
        np.array(form.threshold, dtype=np.float64),
        np.array(form.left, dtype=np.int64),
        np.array(form.right, dtype=np.int64),
        np.array(form.value, dtype=np.float64),
        missing,
    )
    inner = np.flatnonzero(tree.feature != LEAF)
    if (tree.left[inner] <= inner).any() or (tree.right[inner] <= inner).any():
        raise ValueError("a child in a tree does not come after its parent")
    if problem := endless(tree.feature, tree.left, tree.right, inputs):
        raise ValueError(problem)
    if np.isnan(tree.threshold[inner]).any() or not np.isfinite(tree.value).all():
        raise ValueError("a threshold or a value in a tree is not a number")
    return tree
