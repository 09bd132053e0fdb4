"""Repairs a sum of trees so that it satisfies laws: by leaf values, by splits, or fitted again."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.models.estimators import handing, input_slots
from dokimos.laws.models.model_files import tree_model
from dokimos.laws.models.objects import object_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, write_trees
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.tree_questions import TreeQuestion
from dokimos.laws.repair.repair import Repair, RepairSettings
from dokimos.laws.repair.repair_task import RepairWay, directions
from dokimos.networks.semantics.outward import Floats

Relation = NDArray[np.bool_]
#: A tree that is larger, once nodes with two parents are there twice, is not repaired.
_MOST_NODES = 20_000
#: What monotone constraints are called, by libraries.
_CONSTRAINTS = ("monotonic_cst", "monotone_constraints")


class TreeRepair(Repair):
    """Laws, a domain with rows, and trees.

    `leaves` and `splits` are for trees that give a number or decide between two classes; `refit` is for
    estimators whose library knows monotone constraints. Raises InputError if a law, or a model, cannot be
    repaired in this way, with the reason.
    """

    closes = TreeQuestion
    ways = (RepairWay.LEAVES, RepairWay.SPLITS, RepairWay.REFIT)
    _estimator: Any = None

    def forms(self, settings: RepairSettings) -> tuple[str, ...]:
        """See Repair."""
        return (".pkl",) if self.way(settings) is RepairWay.REFIT else (".json",)

    def _trained(self, settings: RepairSettings, rows: Floats) -> bytes:
        """The content of a file of trees, each of which rises and falls as the laws ask."""
        trees, way = self._model.made_of, self.way(settings)
        assert isinstance(trees, Ensemble)  # trees were stated
        try:
            asked = directions(self._requirements)
        except Refusal as refusal:
            raise InputError(f"These laws cannot be repaired: {refusal}.") from None
        if way is RepairWay.REFIT:
            self._estimator = self._refitted(asked, rows)
            made = self._loaded(b"").made_of
            if not isinstance(made, Ensemble):
                raise InputError(f"{self._model.name}: fitted again, it is no sum of trees that is read.")
            return write_trees(made)
        if trees.link or trees.tie or trees.is_vector or len(trees.base) > 2:
            raise InputError(
                f"{self._model.name}: {way.value} are repaired of trees that give one number, or decide "
                "between two classes; choose the way refit, where its library knows monotone constraints."
            )
        given = rows.astype(np.float32) if trees.single else rows
        made_of = [unrolled(each) for each in trees.trees]
        change = (
            [projected(each, asked, trees.inputs) for each in made_of]
            if way is RepairWay.LEAVES
            else [pruned(each, asked, given) for each in made_of]
        )
        return write_trees(trees.changed(trees=change))

    def _refitted(self, asked: Mapping[int, int], rows: Floats) -> Any:
        """The estimator fitted again on what it predicts of rows, with constraints of its library."""
        given, name = self._model.source, self._model.name
        known = given.get_params() if hasattr(given, "get_params") else {}
        option = next((each for each in _CONSTRAINTS if each in known or hasattr(given, each)), "")
        if not option or not hasattr(given, "set_params"):
            raise InputError(
                f"{name}: is no estimator that takes monotone constraints; choose the way leaves or splits."
            )
        assert self._domain.layout is not None  # laws were stated
        slots = input_slots(given, self._domain.layout)
        data = handing(given, self._domain, name=name)(rows)
        signs = [asked.get(slot.start, 0) for slot in slots]
        is_tuple = type(given).__module__.startswith("xgboost")
        made = copy.deepcopy(given).set_params(**{option: tuple(signs) if is_tuple else signs})
        try:
            made.fit(data, np.ravel(given.predict(data)))
        except Exception as problem:  # whatever the library raises
            said = " ".join(str(problem).split())[:200].rstrip(".")
            raise InputError(f"{name}: is not fitted with monotone constraints: {said}.") from None
        return made

    def _fitted(self, content: bytes) -> Any:
        return self._estimator

    def _loaded(self, content: bytes) -> Model:
        name = f"the repaired {self._domain.name}"
        if self._estimator is not None:
            return object_model(self._estimator, self._domain, name=name)
        return tree_model(content, self._domain, name=name)

    def _expect_complete(self) -> None:
        """Trees may decide where a value is missing."""


def unrolled(tree: DecisionTree, instead: Mapping[int, int] | None = None) -> DecisionTree:
    """The tree with a node for each way to it, so that none has two parents; some nodes replaced by others.

    Raises InputError where these are too many.
    """
    instead = instead or {}
    order: list[int] = []
    children: list[tuple[int, int]] = []

    def visit(node: int) -> int:
        node = instead.get(node, node)
        own = len(order)
        if own >= _MOST_NODES:
            raise InputError(f"A tree has more than {_MOST_NODES:,} nodes, which is too large to repair.")
        order.append(node)
        children.append((own, own))
        if tree.feature[node] != LEAF:
            children[own] = visit(int(tree.left[node])), visit(int(tree.right[node]))
        return own

    visit(0)
    left, right = np.array(children, dtype=np.int64).T
    gaps = None if tree.missing_left is None else tree.missing_left[order]
    return DecisionTree(
        tree.feature[order], tree.threshold[order], left.copy(), right.copy(), tree.value[order], gaps
    )


def pruned(tree: DecisionTree, asked: Mapping[int, int], rows: NDArray[Any]) -> DecisionTree:
    """The tree without splits of asked columns whose leaves are in the wrong order.

    Of the splits that part such leaves, the one that parts the most goes first; the side stays that more of
    the rows take. Where a record of one leaf may become one of another by moving the asked columns alone,
    the last node that both have passed tests an asked column, so what is left obeys.
    """
    while True:
        leaves = np.flatnonzero(tree.feature == LEAF)
        height = _heights(tree, leaves)
        wrong = np.argwhere(
            _below(tree, leaves, asked, rows.shape[1]) & (height[:, None] > height[None, :])
        )
        if len(wrong) == 0:
            return tree
        above = _ancestors(tree)[:, leaves]
        # In preorder, the last node above both is where their ways part.
        parting = len(above) - 1 - (above[::-1, wrong[:, 0]] & above[::-1, wrong[:, 1]]).argmax(axis=0)
        node = int(np.bincount(parting).argmax())
        goes_left = _reaching(tree, rows, node)
        side = tree.left if 2 * goes_left.sum() >= len(goes_left) else tree.right
        tree = unrolled(tree, {node: int(side[node])})


def _ancestors(tree: DecisionTree) -> Relation:
    """By node, which nodes it is above, or is itself."""
    found = np.eye(len(tree.feature), dtype=np.bool_)
    for node in np.flatnonzero(tree.feature != LEAF).tolist():
        for side in (tree.left[node], tree.right[node]):
            found[:, side] |= found[:, node]
    return found


def _reaching(tree: DecisionTree, rows: NDArray[Any], node: int) -> Relation:
    """Of the rows that come to a node, whether each goes left there."""
    path, here = [], node
    while here:
        parent = int(
            np.flatnonzero((tree.feature != LEAF) & ((tree.left == here) | (tree.right == here)))[0]
        )
        path.append((parent, bool(tree.left[parent] == here)))
        here = parent

    def left(at: int, some: NDArray[Any]) -> Relation:
        values = some[:, tree.feature[at]]
        missing = tree.missing_left is not None and bool(tree.missing_left[at])
        return np.asarray((values <= tree.threshold[at]) | (np.isnan(values) & missing))

    for parent, is_left in reversed(path):
        rows = rows[left(parent, rows) == is_left]
    return left(node, rows)


def projected(tree: DecisionTree, asked: Mapping[int, int], inputs: int) -> DecisionTree:
    """The tree with other values of leaves, so that along no asked column it goes against what is asked.

    Of two scores, the difference is what rises or falls; the first becomes 0.

    Theorem. Let leaf k be below leaf l where a record of k may become one of l by moving the asked columns
    their way, and take that relation transitively. max over leaves below k of their values, and min over
    leaves above k, rise along it, so their mean does; where the tree obeyed already, both are its value.
    """
    leaves = np.flatnonzero(tree.feature == LEAF)
    height = _heights(tree, leaves)
    below = _below(tree, leaves, asked, inputs)
    while (wider := below | (below.astype(np.float32) @ below.astype(np.float32) > 0)).sum() > below.sum():
        below = wider
    highest = np.where(below, height[:, None], -np.inf).max(axis=0)
    lowest = np.where(below, height[None, :], np.inf).min(axis=1)
    if (highest == height).all() and (lowest == height).all():
        return tree
    made = tree.value.copy()
    made[leaves] = 0.0
    made[leaves, -1] = (highest + lowest) / 2
    return replace(tree, value=made)


def _heights(tree: DecisionTree, leaves: NDArray[np.int64]) -> NDArray[np.float64]:
    """The number at each leaf, or the lead of the second of two classes."""
    value = tree.value[leaves]
    return np.asarray(value[:, -1] if value.shape[1] == 1 else value[:, 1] - value[:, 0])


def _below(
    tree: DecisionTree, leaves: NDArray[np.int64], asked: Mapping[int, int], inputs: int
) -> Relation:
    """Whether a record of one leaf may become one of another by moving the asked columns their way."""
    size = len(tree.feature)
    low, high = np.full((size, inputs), -np.inf), np.full((size, inputs), np.inf)
    gap = np.ones((size, inputs), dtype=np.bool_)
    goes_left = np.zeros(size, np.bool_) if tree.missing_left is None else tree.missing_left
    for node in np.flatnonzero(tree.feature != LEAF).tolist():
        column, at = tree.feature[node], tree.threshold[node]
        for side, is_left in ((tree.left[node], True), (tree.right[node], False)):
            low[side], high[side], gap[side] = low[node], high[node], gap[node]
            gap[side, column] &= goes_left[node] == is_left
        high[tree.left[node], column] = min(high[node, column], at)
        low[tree.right[node], column] = max(low[node, column], at)
    low, high, gap = low[leaves], high[leaves], gap[leaves]
    found = np.ones((len(leaves), len(leaves)), dtype=np.bool_)
    for column in range(inputs):
        first, last = low[:, column], high[:, column]
        rises, falls = first[:, None] < last[None, :], first[None, :] < last[:, None]
        way = asked.get(column, 0)
        meets = rises if way > 0 else falls if way < 0 else rises & falls
        found &= meets | (gap[:, None, column] & gap[None, :, column])
    return found | np.eye(len(leaves), dtype=np.bool_)
