"""Decision trees and sums of them, evaluated for many records at once, and their file format.

A file is JSON, documented in docs/laws.md:

    {"format": "dokimos-trees", "version": 1, "inputs": 2, "base": [0, 0], "scale": 1,
     "trees": [{"feature": [1, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 1, 2], "right": [2, 1, 2],
                "value": [[0, 0], [1, 0], [0, 1]]}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnreadableFile

FORMAT = "dokimos-trees"
_VERSION = 1
#: How many pairs of a record and a tree are walked at a time: the arrays in between fit in a cache.
_PAIRS = 2**15
LEAF = -1


@dataclass(frozen=True)
class DecisionTree:
    """One tree as arrays over its nodes; node 0 is the root.

    A record goes to `left` where its column `feature` is at most `threshold`, else to `right`; a nan goes
    left where `missing_left`. Where `feature` is −1 the node is a leaf, and `value` what it gives. Children
    come after their parent.
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    value: NDArray[np.float64]
    missing_left: NDArray[np.bool_] | None = None

    @property
    def depth(self) -> int:
        """The number of steps from the root to the furthest leaf."""
        depths = np.zeros(len(self.feature), dtype=np.int64)
        for node in np.flatnonzero(self.feature != LEAF):
            depths[[self.left[node], self.right[node]]] = depths[node] + 1
        return int(depths.max())


class Ensemble:
    """The function record ↦ (base + scale · (value of tree 1) + scale · (value of tree 2) + …) / divide.

    It is computed in doubles, in this order. With `single`, records are rounded to float32 before they are
    compared, as scikit-learn does. The decision is the largest score's index, or that one of `classes`; a
    single score is the decision itself.
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
        classes: Sequence[float | str] = (),
    ) -> None:
        self.trees, self.inputs, self.single = tuple(trees), inputs, single
        self.base = np.array(list(base), dtype=np.float64)
        self.scale, self.divide, self.classes = scale, divide, tuple(classes)
        kinds = {type(each) for each in self.classes}
        self._classes = np.array(self.classes, dtype=object if len(kinds) > 1 else None)
        sizes = np.array([len(tree.feature) for tree in self.trees])
        self._roots = (np.cumsum(sizes) - sizes).astype(np.int32)
        offsets = np.repeat(self._roots, sizes)
        feature = np.concatenate([tree.feature for tree in self.trees])
        is_leaf, own = feature == LEAF, np.arange(len(feature))
        # Leaves lead to themselves, so that every record may take as many steps as the deepest tree has.
        sides = [np.concatenate([tree.right for tree in trees]), np.concatenate([t.left for t in trees])]
        children = [np.where(is_leaf, own, side + offsets) for side in sides]
        self._child = np.stack(children, axis=1).astype(np.int32).ravel()
        self._feature = np.where(is_leaf, 0, feature).astype(np.int32)
        self._threshold = np.concatenate([tree.threshold for tree in self.trees])
        self._value = scale * np.concatenate([tree.value for tree in self.trees])
        self._missing = np.concatenate(
            [np.zeros(len(t.feature), bool) if t.missing_left is None else t.missing_left for t in trees]
        )
        self._depth = max(tree.depth for tree in self.trees)

    def __call__(self, records: NDArray[Any]) -> NDArray[np.float64]:
        """One row of scores for each record. Raises ValueError where they do not fit."""
        rows = np.asarray(records, dtype=np.float32 if self.single else np.float64)
        rows = np.ascontiguousarray(rows.reshape(len(rows), -1))
        if rows.shape[1] != self.inputs:
            raise ValueError(f"records have {rows.shape[1]} columns, the trees take {self.inputs}")
        step = max(1, _PAIRS // len(self.trees))
        made = np.tile(self.base, (len(rows), 1))
        for start in range(0, len(rows), step):
            self._add(rows[start : start + step], made[start : start + step])
        return made / self.divide

    def decide(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The decision that each row of scores stands for."""
        if scores.shape[1] == 1:
            return np.asarray(scores[:, 0])
        chosen = scores.argmax(axis=1)
        return self._classes[chosen] if self.classes else np.asarray(chosen)

    def _add(self, rows: NDArray[Any], made: NDArray[np.float64]) -> None:
        """Walk all trees for all rows at once, one step after the other, and add what the leaves give."""
        flat = rows.ravel()
        starts = (np.arange(len(rows), dtype=np.int32) * self.inputs)[None, :]
        nodes = np.repeat(self._roots, len(rows)).reshape(len(self.trees), len(rows))
        any_missing = bool(np.isnan(flat).any())
        for _ in range(self._depth):
            values = flat.take(self._feature.take(nodes) + starts)
            goes_left = values <= self._threshold.take(nodes)
            if any_missing:
                goes_left |= np.isnan(values) & self._missing.take(nodes)
            nodes = self._child.take(2 * nodes + goes_left)
        for leaves in nodes:
            made += self._value.take(leaves, axis=0)


def write_trees(ensemble: Ensemble) -> bytes:
    """The content of a file of trees."""
    trees = []
    for tree in ensemble.trees:
        content = {
            "feature": tree.feature.tolist(),
            "threshold": tree.threshold.tolist(),
            "left": tree.left.tolist(),
            "right": tree.right.tolist(),
            "value": tree.value.tolist(),
        }
        if tree.missing_left is not None:
            content["missing_left"] = tree.missing_left.tolist()
        trees.append(content)
    head = {"format": FORMAT, "version": _VERSION, "inputs": ensemble.inputs}
    sums = {"base": ensemble.base.tolist(), "scale": ensemble.scale, "divide": ensemble.divide}
    rest = {"float32": ensemble.single, "classes": list(ensemble.classes)}
    return (json.dumps({**head, **sums, **rest, "trees": trees}, allow_nan=False) + "\n").encode()


def read_trees(content: bytes, *, name: str) -> Ensemble:
    """The trees in the content of a file. Raises UnreadableFile."""
    try:
        given = json.loads(content)
    except ValueError as problem:
        raise UnreadableFile(name, f"is not JSON: {problem}.") from None
    if not isinstance(given, dict) or given.get("format") != FORMAT:
        raise UnreadableFile(name, f'is no file of decision trees (its "format" is not "{FORMAT}").')
    if given.get("version") != _VERSION:
        raise UnreadableFile(name, f"has version {given.get('version')}; this Dokimos reads {_VERSION}.")
    try:
        inputs = int(given["inputs"])
        base = [float(each) for each in given["base"]]
        trees = [_read_tree(each, inputs, len(base)) for each in given["trees"]]
        if not trees or not base:
            raise ValueError("there is no tree, or no score")
        classes = list(given.get("classes", []))
        if classes and (
            len(classes) != len(base) or not all(isinstance(each, float | int | str) for each in classes)
        ):
            raise ValueError(f"there must be one class, a name or a number, for each of {len(base)} scores")
        scale, divide = float(given.get("scale", 1.0)), float(given.get("divide", 1.0))
        if not (np.isfinite([*base, scale, divide]).all() and divide != 0):
            raise ValueError("base, scale and divide must be finite, and divide not 0")
        single = bool(given.get("float32", False))
        return Ensemble(
            trees, inputs=inputs, base=base, scale=scale, divide=divide, single=single, classes=classes
        )
    except KeyError as problem:
        raise UnreadableFile(name, f"is damaged: {problem} is missing.") from None
    except (TypeError, ValueError, IndexError, OverflowError) as problem:
        raise UnreadableFile(name, f"is damaged: {problem}.") from None


def _read_tree(given: dict[str, Any], inputs: int, scores: int) -> DecisionTree:
    """A tree whose every walk ends. Raises ValueError."""
    tree = DecisionTree(
        _array(given["feature"], np.int64),
        _array(given["threshold"], np.float64),
        _array(given["left"], np.int64),
        _array(given["right"], np.int64),
        np.asarray(given["value"], dtype=np.float64),
        np.asarray(given["missing_left"], dtype=np.bool_) if "missing_left" in given else None,
    )
    nodes = len(tree.feature)
    others = (tree.threshold, tree.left, tree.right, tree.value)
    if nodes == 0 or any(len(each) != nodes for each in others):
        raise ValueError("the arrays of a tree have different lengths")
    if tree.missing_left is not None and tree.missing_left.shape != (nodes,):
        raise ValueError("the arrays of a tree have different lengths")
    if tree.value.shape != (nodes, scores):
        raise ValueError(f"the nodes of a tree have values of shape {tree.value.shape[1:]}, not {scores}")
    inner = np.flatnonzero(tree.feature != LEAF)
    if ((tree.feature < LEAF) | (tree.feature >= inputs)).any():
        raise ValueError(f"a tree looks at a column that is not among the {inputs} inputs")
    for children in (tree.left[inner], tree.right[inner]):
        if ((children <= inner) | (children >= nodes)).any():
            raise ValueError("a child in a tree does not come after its parent")
    if np.isnan(tree.threshold[inner]).any() or not np.isfinite(tree.value).all():
        raise ValueError("a threshold or a value in a tree is no number")
    return tree


def _array(given: Any, kind: type) -> NDArray[Any]:
    made = np.asarray(given)
    if made.ndim != 1 or made.dtype.kind not in ("iu" if kind is np.int64 else "iuf"):
        raise ValueError(f"a list of {'integers' if kind is np.int64 else 'numbers'} is something else")
    return made.astype(kind)
