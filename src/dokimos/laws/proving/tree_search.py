"""Enumerates pairs of leaves of trees: a law is proven by a cover, or violated by a case. Complete."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.models.trees import DecisionTree
from dokimos.laws.proving.covers import Cover, Cut
from dokimos.laws.proving.question import ForbiddenDecisions, LawQuestion, PredictedRecord
from dokimos.laws.proving.searching import Deadline, SearchEnd, candidates, condition_cut, share_of
from dokimos.laws.proving.terms import TRUE
from dokimos.laws.proving.tree_reach import TreeReach
from dokimos.laws.proving.zones import Zone

#: How many zones are processed between two checks of the clock.
_CHECKED = 64


@dataclass(frozen=True)
class _Place:
    """A zone, and of every record, for every tree, the node below which all its cases end."""

    zone: Zone
    nodes: tuple[tuple[int, ...], ...]


def search_trees(question: LawQuestion, reach: TreeReach, deadline: Deadline) -> SearchEnd:
    """Cut the set along the thresholds that its cases meet, until every part is decided or time is up.

    In a part where every record ends in one leaf of each tree, the decisions are known. If the law forbids
    them, the part has a violation, or its conditions cut it further: for integers this terminates.
    """
    return _TreeSearch(question, reach).run(deadline)


class _TreeSearch:
    def __init__(self, question: LawQuestion, reach: TreeReach) -> None:
        self._question, self._reach = question, reach
        trees = zip(reach.ensemble.trees, reach.values, strict=True)
        self._least = [_below(tree, values, np.minimum) for tree, values in trees]
        trees = zip(reach.ensemble.trees, reach.values, strict=True)
        self._most = [_below(tree, values, np.maximum) for tree, values in trees]
        self._masks = _masks(reach) if len(reach.tests) == 1 else None

    def run(self, deadline: Deadline) -> SearchEnd:
        steps: list[Cut | None] = []
        roots = tuple((0,) * len(self._reach.tests) for _ in self._question.records)
        pending = [_Place(self._question.zone, roots)]
        while pending:
            if len(steps) % _CHECKED == 0 and deadline.is_over:
                return SearchEnd(share=share_of([each.zone for each in pending], self._question.zone))
            place = self._descended(pending.pop())
            bad = None if self._question.rules_out(place.zone) else self._possible(place)
            if bad is None:
                steps.append(None)
                continue
            cut = self._tree_cut(place)
            if cut is None:
                for case in candidates(self._question, place.zone, bad.where):
                    if self._question.is_violated(case, bad.classes):
                        return SearchEnd(case=case)
                cut = condition_cut(self._question, place.zone, bad.where)
            if cut is None:
                return SearchEnd(share=share_of([place.zone], self._question.zone))
            steps.append(cut)
            first, second = place.zone.cut(cut.variable, cut.at)
            pending += [_Place(second, place.nodes), _Place(first, place.nodes)]
        return SearchEnd(cover=Cover(tuple(steps)))

    def _descended(self, place: _Place) -> _Place:
        """Every node, moved down as long as all cases go the same way."""
        nodes = []
        for record, own in zip(self._question.records, place.nodes, strict=True):
            nodes.append(tuple(self._down(k, node, record, place.zone) for k, node in enumerate(own)))
        return _Place(place.zone, tuple(nodes))

    def _down(self, number: int, node: int, record: PredictedRecord, zone: Zone) -> int:
        tree, tests = self._reach.ensemble.trees[number], self._reach.tests[number]
        while (test := tests[node]) is not None:
            left = test.goes_left(record.features[test.place], zone)
            if left is None:
                return node
            node = int(tree.left[node] if left else tree.right[node])
        return node

    def _possible(self, place: _Place) -> ForbiddenDecisions | None:
        """A forbidden combination of classes that is not ruled out; one that holds everywhere first."""
        classes = [self._classes(own) for own in place.nodes]
        found = [
            each
            for each in self._question.forbidden
            if all(possible >> c & 1 for c, possible in zip(each.classes, classes, strict=True))
            and each.where.over(place.zone) is not False
        ]
        return min(found, key=lambda each: each.where != TRUE, default=None)

    def _classes(self, nodes: tuple[int, ...]) -> int:
        """The classes that are possible below these nodes, as bits."""
        if self._masks is not None:
            return self._masks[nodes[0]]
        tests = self._reach.tests
        if all(tests[k][node] is None for k, node in enumerate(nodes)):
            return 1 << self._reach.decided(nodes)
        ends = []
        for bound in (self._least, self._most):
            score = self._reach.ensemble.base.copy()
            for each, node in zip(bound, nodes, strict=True):
                score = score + each[node]
            ends.append(score / self._reach.ensemble.divide)
        low, high = ends
        best, bits = float(low.max()), 0
        for c in range(len(low)):
            bits |= (high[c] >= best) << c
        return bits

    def _tree_cut(self, place: _Place) -> Cut | None:
        """A cut along the threshold of the reached node below which scores differ the most."""
        best: tuple[float, Cut] | None = None
        for record, own in zip(self._question.records, place.nodes, strict=True):
            for number, node in enumerate(own):
                test = self._reach.tests[number][node]
                if test is None:
                    continue
                worth = float((self._most[number][node] - self._least[number][node]).max())
                if best is None or worth > best[0]:
                    best = worth, test.cut(record.features[test.place], place.zone)
        return None if best is None else best[1]


def _below(tree: DecisionTree, values: NDArray[np.float64], choose: np.ufunc) -> NDArray[np.float64]:
    """For every node, the least (or greatest) value of each class in the leaves below it."""
    found = values.copy()
    for node in range(len(found) - 1, -1, -1):  # children come after their parent
        if tree.feature[node] >= 0:
            found[node] = choose(found[tree.left[node]], found[tree.right[node]])
    return found


def _masks(reach: TreeReach) -> list[int]:
    """For every node of a single tree, the classes of the leaves below it, as bits."""
    tree, tests = reach.ensemble.trees[0], reach.tests[0]
    masks = [0] * len(tests)
    for node in range(len(tests) - 1, -1, -1):
        if tests[node] is None:
            masks[node] = 1 << reach.decided([node])
        else:
            masks[node] = masks[tree.left[node]] | masks[tree.right[node]]
    return masks
