"""Repairs a sum of trees so that it satisfies laws: the values of leaves move as little as that takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.models.model_files import tree_model
from dokimos.laws.models.tested_model import Model
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, write_trees
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.tree_questions import TreeQuestion
from dokimos.laws.repair.repair import Repair, RepairSettings
from dokimos.laws.repair.repair_task import RepairWay, directions
from dokimos.networks.semantics.outward import Floats

Relation = NDArray[np.bool_]


class TreeRepair(Repair):
    """Laws, a domain with rows, and trees that give a number or decide between two classes.

    Nothing is trained: the split of the rows is all that depends on the seed. Raises InputError if a law,
    or a model, cannot be repaired in this way, with the reason.
    """

    closes = TreeQuestion
    ways = (RepairWay.LEAVES,)
    forms = (".json",)

    def _trained(self, settings: RepairSettings, rows: Floats) -> bytes:
        """The content of a file of trees, each of which rises and falls as the laws ask."""
        trees = self._model.made_of
        assert isinstance(trees, Ensemble)  # trees were stated
        if trees.link or trees.is_vector or len(trees.base) > 2:
            raise InputError(
                f"{self._model.name}: leaves are repaired of trees that give one number, or decide between "
                "two classes; fit it with the monotone constraints of its library."
            )
        try:
            asked = directions(self._requirements)
        except Refusal as refusal:
            raise InputError(f"These laws cannot be repaired: {refusal}.") from None
        return write_trees(
            trees.changed(trees=[projected(each, asked, trees.inputs) for each in trees.trees])
        )

    def _loaded(self, content: bytes) -> Model:
        return tree_model(content, self._domain, name=f"the repaired {self._domain.name}")

    def _expect_complete(self) -> None:
        """Trees may decide where a value is missing."""


def projected(tree: DecisionTree, asked: dict[int, int], inputs: int) -> DecisionTree:
    """The tree with other values of leaves, so that along no asked column it goes against what is asked.

    Of two scores, the difference is what rises or falls; the first becomes 0.

    Theorem. Let leaf k be below leaf l where a record of k may become one of l by moving the asked columns
    their way, and take that relation transitively. max over leaves below k of their values, and min over
    leaves above k, rise along it, so their mean does; where the tree obeyed already, both are its value.
    """
    leaves = np.flatnonzero(tree.feature == LEAF)
    value = tree.value[leaves]
    height = value[:, -1] if value.shape[1] == 1 else value[:, 1] - value[:, 0]
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


def _below(tree: DecisionTree, leaves: NDArray[np.int64], asked: dict[int, int], inputs: int) -> Relation:
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
