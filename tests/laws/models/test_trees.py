"""Decision trees are walked in batches as each record alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dokimos.laws.examples.training import train_tree
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble, read_trees, write_trees

#: Column 1 at most 0.5 → left leaf; else column 0 at most 2 → one leaf or the other; nan goes left there.
TREE = DecisionTree(
    np.array([1, LEAF, 0, LEAF, LEAF]),
    np.array([0.5, 0.0, 2.0, 0.0, 0.0]),
    np.array([1, 1, 3, 3, 4]),
    np.array([2, 1, 4, 3, 4]),
    np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.25, 0.75]]),
    np.array([False, False, True, False, False]),
)


def walked(tree: DecisionTree, record: Any) -> Any:
    """The honest walk of one record, to compare with."""
    node = 0
    while tree.feature[node] != LEAF:
        value = record[tree.feature[node]]
        missing = tree.missing_left is not None and bool(tree.missing_left[node])
        left = missing if np.isnan(value) else value <= tree.threshold[node]
        node = int(tree.left[node] if left else tree.right[node])
    return tree.value[node]


@st.composite
def ensembles(draw: st.DrawFn) -> Ensemble:
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    labels = rng.integers(0, 3, 60)
    labels[0] = 2
    records = rng.integers(0, 6, (60, 4)).astype(float)
    trees = []
    for _ in range(draw(st.integers(1, 4))):
        rows = rng.integers(0, 60, 60)
        rows[0] = 0
        depth = draw(st.integers(0, 5))
        trees += train_tree(records[rows], labels[rows], depth=depth).trees
    scale, divide = draw(st.sampled_from([1.0, 0.1])), draw(st.sampled_from([1.0, 3.0]))
    single = draw(st.booleans())
    return Ensemble(trees, inputs=4, base=rng.normal(size=3), scale=scale, divide=divide, single=single)


@given(ensembles(), st.integers(0, 10**6))
def test_a_batch_is_walked_as_each_record_alone(ensemble: Ensemble, seed: int) -> None:
    records = np.random.default_rng(seed).integers(-2, 14, (50, 4)) / 2
    expected = []
    for record in records:
        total = ensemble.base.copy()
        for tree in ensemble.trees:
            total = total + ensemble.scale * walked(tree, record)
        expected.append(total / ensemble.divide)
    assert np.array_equal(ensemble(records), np.array(expected))
    again = read_trees(write_trees(ensemble), name="t")
    assert np.array_equal(again(records), ensemble(records)) and again.single == ensemble.single


def test_missing_values_and_many_records() -> None:
    ensemble = Ensemble([TREE], inputs=2, base=[0, 0])
    records = np.array([[1.0, 0.5], [1.0, 0.6], [3.0, 9.0], [np.nan, 9.0], [1.0, np.nan], [3.0, np.nan]])
    assert ensemble.decide(ensemble(records)).tolist() == [0, 1, 1, 1, 1, 1]
    assert np.array_equal(ensemble(records), [walked(TREE, record) for record in records])
    many = np.tile(records, (20_000, 1))
    assert np.array_equal(ensemble(many), np.tile(ensemble(records), (20_000, 1)))
    assert read_trees(write_trees(ensemble), name="t")(records).tolist() == ensemble(records).tolist()
    with pytest.raises(ValueError, match="3 columns"):
        ensemble(np.zeros((2, 3)))


def test_a_node_with_two_parents_is_as_deep_as_the_longer_way_to_it() -> None:
    """Once, the way of its last parent counted: a walk by the other one ended before it was at a leaf."""
    tree = DecisionTree(  # node 2 is a child of both 0 and 1, node 3 of 0, 2 and 1
        np.array([0, 1, 2, 3, LEAF, LEAF]),
        np.full(6, 0.5),
        np.array([1, 2, 3, 4, 4, 5]),
        np.array([3, 2, 3, 5, 4, 5]),
        np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [2.0]]),
    )
    other = DecisionTree(  # here the last parent of node 4 is a short way from the root
        np.array([0, 1, 2, 3, LEAF, LEAF]),
        np.full(6, 0.5),
        np.array([1, 2, 4, 4, 4, 5]),
        np.array([3, 2, 5, 5, 4, 5]),
        tree.value,
    )
    assert (tree.depth, other.depth) == (4, 3)
    rows = np.array(np.meshgrid(*[[0.0, 1.0]] * 4)).reshape(4, -1).T
    for each in (tree, other):
        made = Ensemble([each], inputs=4, base=[0.0])
        assert made(rows).tolist() == [walked(each, row).tolist() for row in rows]
