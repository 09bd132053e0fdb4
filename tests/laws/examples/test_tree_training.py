"""Trees grow on data."""

from __future__ import annotations

import numpy as np

from dokimos.laws.examples.training import train_tree
from dokimos.laws.models.trees import Ensemble


def test_trees_grow_where_there_is_something_to_learn() -> None:
    rng = np.random.default_rng(0)
    records = rng.normal(size=(500, 3))
    labels = ((records[:, 0] > 0) & (records[:, 2] <= 1)).astype(np.int64)
    tree = train_tree(records, labels, depth=2)
    assert (tree(records).argmax(axis=1) == labels).all()
    assert tree.trees[0].depth == 2
    assert train_tree(records, np.repeat([0, 1], 250), depth=0)(records[:2]).tolist() == [[0.5, 0.5]] * 2
    same = np.ones((4, 2))
    assert len(train_tree(same, np.array([0, 1, 0, 1]), depth=3).trees[0].feature) == 1
    broad = train_tree(records, labels, depth=9, least=100).trees[0]
    leaves = Ensemble([broad], inputs=3, base=[0, 0])(records)
    assert min(np.unique(leaves, axis=0, return_counts=True)[1]) >= 100
    close = np.array([[1.0], [np.nextafter(1.0, 2)]])
    assert train_tree(close, np.array([0, 1]), depth=1)(close).argmax(axis=1).tolist() == [0, 1]
