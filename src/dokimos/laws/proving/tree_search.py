"""Enumerates pairs of leaves of trees: a law is proven by a cover, or violated by a case. Complete."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.models.trees import LEAF, DecisionTree, Ensemble
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.question import Cover, Cut, ForbiddenDecisions, LawQuestion, PredictedRecord
from dokimos.laws.proving.searching import Deadline, SearchEnd, candidates, condition_cut, share_of
from dokimos.laws.proving.zones import TRUE, Number, Options, Quantity, Zone, exact

# What an ensemble of trees may decide in a zone, as computed in doubles, for all cases at once


#: Not all integers beyond this are float32 numbers.
_WHOLE_FLOAT32 = 2**24
_BEYOND = 10**400


@dataclass(frozen=True)
class NodeTest:
    """Records go left where the feature at `place` is at most `at`; of a choice, where it is not `option`.

    `always` is where all records go, None where that depends on them; a missing value goes left if
    `missing_left`.
    """

    place: int
    at: Number
    option: int | None = None
    always: bool | None = None
    missing_left: bool = False

    def goes_left(self, quantity: Quantity, zone: Zone) -> bool | None:
        """Whether the feature makes all cases of a zone go left, or none; None where some do."""
        if not quantity.gaps:
            return self._present_goes_left(quantity, zone)
        is_there = quantity.there.over(zone)
        if is_there is False:
            return self.missing_left
        present = self._present_goes_left(quantity, zone)
        return present if is_there or present is self.missing_left else None

    def cut(self, quantity: Quantity, zone: Zone) -> Cut:
        """Where to cut a zone of which only some cases go left."""
        for gap in sorted(quantity.gaps):
            if not zone.values[gap].is_single:
                return Cut(gap, 0)
        assert quantity.variable is not None  # a number goes one way only
        return Cut(quantity.variable, self.at if self.option is None else self.option)

    def _present_goes_left(self, quantity: Quantity, zone: Zone) -> bool | None:
        if self.always is not None:
            return self.always
        if self.option is None:
            low, high = quantity.ends(zone)
            return True if high <= self.at else False if low > self.at else None
        if quantity.variable is None:
            return quantity.constant != self.option
        values = zone.values[quantity.variable]
        assert isinstance(values, Options)  # so translation makes the variable of a choice
        if self.option not in values.left:
            return True
        return False if values.is_single else None


class TreeReach:
    """An ensemble over records of a layout.

    `tests[t][n]` is the test of node n of tree t, None at a leaf. The scores of a record are, in doubles,
    (base + scale·value of the leaf of tree 1 + …) / divide, added in this order; the decision is the first
    largest score. Refused are ensembles with one score, a divisor that is not positive, no decision where a
    value is missing that may be, or, where records are rounded to float32, integers that this changes.
    """

    def __init__(self, ensemble: Ensemble, layout: Layout) -> None:
        self.ensemble = ensemble
        if ensemble.inputs != layout.width:
            raise Refusal(f"the trees take {ensemble.inputs} columns, records have {layout.width}")
        if len(ensemble.base) < 2:
            raise Refusal("the trees give one number, not a score for each class")
        if not ensemble.divide > 0:
            raise Refusal("the trees divide by a number that is not positive")
        for feature in layout.features:
            if feature.may_miss and not ensemble.takes_missing:
                raise Refusal(f"{feature.name} may be missing, and these trees decide nothing then")
        if ensemble.single:
            _expect_float32(layout)
        self.tests = tuple(_tests(tree, layout, ensemble.single) for tree in ensemble.trees)
        self.values = tuple(ensemble.scale * tree.value for tree in ensemble.trees)

    def classes(self, record: PredictedRecord, zone: Zone) -> set[int]:
        """Every class that some case of the zone may get; where each tree has one leaf left, just that one.

        Theorem. Rounding to nearest is monotone, so the score of a class, computed in doubles from leaves
        whose values lie between two ends, lies between the scores computed from these ends in the same
        order. A class cannot be the first largest where another score is larger for sure; or as large and
        before it.
        """
        leaves = [self._leaves(number, record, zone) for number in range(len(self.tests))]
        if len(leaves) == 1:
            return {self.decided([leaf]) for leaf in leaves[0]}
        ends = []
        for choose in (np.min, np.max):
            score = self.ensemble.base.copy()
            for values, reached in zip(self.values, leaves, strict=True):
                score = score + choose(values[reached], axis=0)
            ends.append((score / self.ensemble.divide).tolist())
        return possible_classes(*ends)

    def decided(self, leaves: Sequence[int]) -> int:
        """The class of records that end in these leaves, one of each tree."""
        score = self.ensemble.base.copy()
        for values, leaf in zip(self.values, leaves, strict=True):
            score = score + values[leaf]
        return int(np.argmax(score / self.ensemble.divide))

    def _leaves(self, number: int, record: PredictedRecord, zone: Zone) -> list[int]:
        tree, tests = self.ensemble.trees[number], self.tests[number]
        pending, found = [0], []
        while pending:
            node = pending.pop()
            test = tests[node]
            if test is None:
                found.append(node)
                continue
            left = test.goes_left(record.features[test.place], zone)
            if left is not False:
                pending.append(int(tree.left[node]))
            if left is not True:
                pending.append(int(tree.right[node]))
        return found


def possible_classes(low: Sequence[float], high: Sequence[float]) -> set[int]:
    """The classes that may be the first largest score, where each score lies between its two ends."""
    count = range(len(low))
    return {
        c
        for c in count
        if not any(low[j] > high[c] or (j < c and low[j] >= high[c]) for j in count if j != c)
    }


@dataclass(frozen=True)
class TreeCloser:
    """Closes zones whose conditions are false, or in which no forbidden decisions are possible."""

    question: LawQuestion
    reach: TreeReach

    def closed(self, zones: Sequence[Zone]) -> list[bool]:
        """See ZoneCloser."""
        return [self._is_closed(zone) for zone in zones]

    def _is_closed(self, zone: Zone) -> bool:
        if self.question.rules_out(zone):
            return True
        classes = [self.reach.classes(record, zone) for record in self.question.records]
        return not any(
            all(c in possible for c, possible in zip(each.classes, classes, strict=True))
            and each.where.over(zone) is not False
            for each in self.question.forbidden
        )


def _expect_float32(layout: Layout) -> None:
    for feature in layout.features:
        ends = [abs(end) for end in (feature.low, feature.high) if end is not None]
        if feature.kind is Kind.INTEGER and max(ends, default=0) > _WHOLE_FLOAT32:
            raise Refusal(f"{feature.name} has integers that the trees round to float32")
        if max(ends, default=0) > np.finfo(np.float32).max:
            raise Refusal(
                f"{feature.name} has numbers that are infinite in float32, as the trees take them"
            )


def _tests(tree: DecisionTree, layout: Layout, single: bool) -> tuple[NodeTest | None, ...]:
    found: list[NodeTest | None] = []
    missing_left = [False] * len(tree.feature) if tree.missing_left is None else tree.missing_left.tolist()
    for column, threshold, gap_left in zip(
        tree.feature.tolist(), tree.threshold.tolist(), missing_left, strict=True
    ):
        if column == LEAF:
            found.append(None)
            continue
        place = next(k for k, slot in enumerate(layout.slots) if slot.start <= column < slot.stop)
        slot = layout.slots[place]
        at = _last_left(threshold, single)
        if slot.feature.kind is Kind.CHOICE:
            always = False if at < 0 else True if at >= 1 else None
            found.append(NodeTest(place, at, column - slot.start, always))
        else:
            found.append(NodeTest(place, at, missing_left=gap_left))
    return tuple(found)


def _last_left(threshold: float, single: bool) -> Number:
    """The largest double that goes left; with `single`, after it is rounded to float32."""
    if math.isinf(threshold):
        return _BEYOND if threshold > 0 else -_BEYOND
    if not single:
        return exact(threshold)
    with np.errstate(over="ignore"):
        below = np.float32(threshold)
        if float(below) > threshold:
            below = np.nextafter(below, np.float32(-np.inf))
        above = np.nextafter(below, np.float32(np.inf))
    if not (np.isfinite(below) and np.isfinite(above)):
        return exact(threshold)
    middle = float((Fraction(float(below)) + Fraction(float(above))) / 2)
    return exact(middle if float(np.float32(middle)) <= threshold else math.nextafter(middle, -math.inf))


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
