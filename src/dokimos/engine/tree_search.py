"""Finds a cover that proves a statement about a sum of trees, or a case against it: best first, cut by cut.

The zone that is furthest from being closed is cut next, where one step ahead shows the largest gain, and a
walk from it to a single leaf of every tree proposes cases. What is found is checked by others: a cover by
`check_tree_cover`, a case by a run of the model.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import (
    Comparison,
    Cover,
    Cut,
    Formula,
    Number,
    Options,
    Span,
    Zone,
    comparisons,
    exact,
)
from dokimos.checker.trees.axes import Ranks
from dokimos.checker.trees.covers import TreeZone, TreeZones
from dokimos.checker.trees.leaves import Ints, Leaves, TreeStatement

Case = tuple[Number, ...]
Floats = NDArray[np.float64]
#: How many zones are cut at a time; of how many leaves times cuts the gain is computed for one zone.
_BATCH, _LOOKED_AT = 16, 150_000
_LEAST_CUTS, _MOST_CUTS = 8, 64
#: Of how many rules at the most, those nearest to closing a zone, the gain is computed.
_RULES = 3
#: How many zones without trees are looked through for a case that satisfies the conditions.
_MOST_PARTS = 5000
#: Below every bound.
_NOTHING = -1e30


@dataclass
class _Node:
    """A zone of the search: cut, or closed where `steps` are given, or open."""

    zone: TreeZone | None
    cut: Cut | None = None
    parts: tuple[_Node, _Node] | None = None
    steps: tuple[Cut | None, ...] | None = None
    target: int = 0


@dataclass(frozen=True)
class _Rule:
    """A number for each combination of leaves: a zone closes where the greatest add up to less than 0."""

    group: int
    units: Floats
    constant: float
    weight: float = 1.0


@dataclass
class TreeSearch:
    """One search; `run` goes on with it, a slice at a time, and yields cases to try, or None.

    When `run` ends, `cover` is a proof, or None where nothing was found.
    """

    statement: TreeStatement
    cover: Cover | None = None
    _open: list[tuple[float, int, _Node]] = field(default_factory=list)
    #: Zones in which all leaves are known, and nothing else.
    _stuck: list[TreeZone] = field(default_factory=list)
    _number: int = 0

    def run(self) -> Iterator[Case | None]:
        """Search until there is a cover; each case that is yielded may violate the statement.

        One that is asked for more cases does not: then its zone stays open.
        """
        if self.statement.zone.is_empty:
            self.cover = Cover((None,))
            return
        self._zones = TreeZones(self.statement, self.statement.axes(_condition_breaks(self.statement)))
        self._axes = self._zones.axes
        self._rules = cache(self._rules_of)
        self._cut_at = _cuts(self._zones)
        yield None
        root = _Node(self._zones.start)
        yield from self._judge([root])
        while self._open:
            best = [heapq.heappop(self._open)[2] for _ in range(min(_BATCH, len(self._open)))]
            yield self._dived(best[0])
            parts: list[_Node] = []
            for node in best:
                assert node.zone is not None and node.cut is not None  # it is open
                node.parts = tuple(_Node(each) for each in self._zones.cut(node.zone, node.cut))  # type: ignore[assignment]
                node.zone = None
                parts += node.parts or ()
            yield from self._judge(parts)
        if not self._stuck:
            self.cover = Cover(tuple(_steps(root)))

    @property
    def share(self) -> float:
        """The share of the set that is open: of all values of the variables, whatever the conditions."""
        found = [node.zone for _, _, node in self._open if node.zone is not None] + self._stuck
        if not found:
            return 1.0 if self.cover is None else 0.0
        low, high = (np.stack([getattr(each, end) for each in found]) for end in ("low", "high"))
        total = np.zeros(len(found))
        for number, values in enumerate(self._axes.zone.values):
            axis = self._axes.first[number]
            if isinstance(values, Options):
                count = high[:, axis : axis + len(values.left)].sum(axis=1)
                total += np.log(np.maximum(count, 1) / len(values.left))
                continue
            sizes = [Span(*cell, values.grid).size for cell in self._axes.cells[number]]
            before = np.concatenate([[0.0], np.cumsum(sizes)])
            part = before[high[:, axis] + 1] - before[low[:, axis]]
            total += np.log(np.minimum(part / before[-1], 1.0))
        return min(1.0, float(np.exp(total).sum()))

    def _judge(self, nodes: Sequence[_Node]) -> Iterator[Case | None]:
        """Close nodes, or queue them with a cut; where all leaves are known, look for a case."""
        is_open = self._zones.open_ones([node.zone for node in nodes if node.zone is not None])
        for node, own in zip(nodes, is_open, strict=True):
            if not own.any():
                node.zone, node.steps = None, (None,)
                continue
            assert node.zone is not None
            node.target = int(np.argmax(own))
            bound, node.cut = self._best_cut(node.zone, node.target)
            if node.cut is not None:
                self._number += 1
                heapq.heappush(self._open, (-bound, self._number, node))
                continue
            steps: list[Cut | None] = []
            wheres = [each.where for each, on in zip(self.statement.forbidden, own, strict=True) if on]
            case = self._settled(node.zone, wheres, steps)
            if case is not None:
                yield case
            if case is not None or len(steps) > _MOST_PARTS:
                self._stuck.append(node.zone)
            node.zone, node.steps = None, tuple(steps)
        yield None

    def _rules_of(self, target: int) -> list[_Rule]:
        """Whichever of these is below 0 throughout rules the combination of decisions out."""
        zones, classes = self._zones, self.statement.forbidden[target].classes
        found = []
        places = list(zip(zones.where, classes, strict=True))
        for (group, place), a in places:
            scores = zones.scores(zones.leaves[group], place).astype(np.float64)
            for b in range(scores.shape[1]):
                if b != a:
                    constant = float(zones.base[a] - zones.base[b])
                    found.append(_Rule(group, scores[:, a] - scores[:, b], constant))
        for number, ((group, place), a) in enumerate(places):
            for (other, second), b in places[number + 1 :]:
                if group == other and a != b:
                    one = zones.scores(zones.leaves[group], place).astype(np.float64)
                    two = zones.scores(zones.leaves[group], second).astype(np.float64)
                    found.append(_Rule(group, one[:, a] - one[:, b] + two[:, b] - two[:, a], 0.0, 0.5))
        return found

    def _nearest(self, zone: TreeZone, target: int) -> list[tuple[float, _Rule, Floats, Floats]]:
        """The rules nearest to closing a zone: the bound, and the greatest and least number of each tree."""
        found = []
        for rule in self._rules(target):
            rows = zone.reached[rule.group]
            trees = self._zones.leaves[rule.group].tree[rows]
            starts = np.flatnonzero(np.concatenate([[True], trees[1:] != trees[:-1]]))
            most = np.maximum.reduceat(rule.units[rows], starts)
            least = np.minimum.reduceat(rule.units[rows], starts)
            found.append(((float(most.sum()) + rule.constant) * rule.weight, rule, most, least))
        return sorted(found, key=lambda each: each[0])[:_RULES]

    def _best_cut(self, zone: TreeZone, target: int) -> tuple[float, Cut | None]:
        """How far a zone is from being closed, and the cut that brings both parts nearest to it."""
        rules = self._nearest(zone, target)
        bound = rules[0][0]
        spread: Any = sum(
            (most - least) * rule.weight
            for _, rule, most, least in rules
            if rule.group == rules[0][1].group
        )
        best: tuple[float, tuple[int, int]] | None = None
        for group in dict.fromkeys(rule.group for _, rule, _, _ in rules):
            own = spread if group == rules[0][1].group else None
            found = self._gains(zone, group, [each for each in rules if each[1].group == group], own, bound)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
        if best is None:
            cuts = [self._gains(zone, group, [], None, bound) for group in range(len(zone.reached))]
            best = max((each for each in cuts if each is not None), default=None)
        return bound, None if best is None else self._cut_at(*best[1])

    def _gains(
        self,
        zone: TreeZone,
        group: int,
        rules: Sequence[tuple[float, _Rule, Floats, Floats]],
        spread: Floats | None,
        bound: float,
    ) -> tuple[float, tuple[int, int]] | None:
        """The best cut, an axis and a rank, among those that separate leaves of the trees that matter."""
        leaves = self._zones.leaves[group]
        rows = zone.reached[group]
        starts = np.flatnonzero(np.concatenate([[True], leaves.tree[rows][1:] != leaves.tree[rows][:-1]]))
        sizes = np.diff(np.append(starts, len(rows)))
        matters = sizes > 1
        if not matters.any():
            return None
        if spread is not None and (spread[matters] > 0).any():
            matters &= spread > 0
        keep = np.repeat(matters, sizes)
        rows, number = rows[keep], np.repeat(np.cumsum(matters) - 1, sizes)[keep]
        starts = np.flatnonzero(np.concatenate([[True], number[1:] != number[:-1]]))
        wanted = int(np.clip(_LOOKED_AT // len(rows), _LEAST_CUTS, _MOST_CUTS))
        weight = np.ones(len(starts)) if spread is None else spread[matters]
        cuts = _separating(leaves.low[rows], leaves.high[rows], zone, number, weight, wanted)
        axis, rank = cuts[:, 0], cuts[:, 1]
        goes_left = leaves.low[rows][:, axis] <= rank
        goes_right = leaves.high[rows][:, axis] > rank
        ends = []
        for side in (goes_left, goes_right):
            found = np.full(len(cuts), np.inf)
            for now, rule, most, _ in rules:
                units = np.where(side, rule.units[rows][:, None], _NOTHING)
                gone = most[matters].sum() - np.maximum.reduceat(units, starts, axis=0).sum(axis=0)
                found = np.minimum(found, now - gone * rule.weight)
            ends.append(found)
        if not rules:
            score = np.minimum((~goes_left).sum(axis=0), (~goes_right).sum(axis=0)).astype(np.float64)
        else:
            size = max(bound, 1.0)
            drops = [np.clip((bound - end) / size, 0.0, 1.0) for end in ends]
            score = (drops[0] + 1e-3) * (drops[1] + 1e-3)
        chosen = int(np.argmax(score))
        return float(score[chosen]), (int(axis[chosen]), int(rank[chosen]))

    def _dived(self, node: _Node) -> Case | None:
        """A case in a zone where rules are as far from closing as they can be, leaf after leaf."""
        zone = node.zone
        assert zone is not None
        for _ in range(4 * len(self.statement.trees.roots)):
            rules = self._nearest(zone, node.target)
            _, rule, most, least = next((each for each in rules if (each[2] > each[3]).any()), rules[0])
            rows = zone.reached[rule.group]
            leaves = self._zones.leaves[rule.group]
            trees = leaves.tree[rows]
            if (most > least).any():
                tree = int(np.unique(trees)[np.argmax(most - least)])
            else:
                found = self._any_open(zone)
                if found is None:
                    break
                leaves, rows, trees, tree = found
            own = rows[trees == tree]
            best = own[np.argmax(rule.units[own])] if leaves is self._zones.leaves[rule.group] else own[0]
            low = np.maximum(zone.low, leaves.low[best])
            high = np.minimum(zone.high, leaves.high[best])
            self._axes.settle(low[None], high[None])
            zone = self._zones.within(zone, low, high)
            if (low > high).any() or not self._is_whole(zone):
                return None
        own_open = self._zones.open_ones([zone])[0]
        if not own_open.any():
            return None
        wheres = [e.where for e, on in zip(self.statement.forbidden, own_open, strict=True) if on]
        return self._settled(zone, wheres, [])

    def _any_open(self, zone: TreeZone) -> tuple[Leaves, Ints, Ints, int] | None:
        for leaves, rows in zip(self._zones.leaves, zone.reached, strict=True):
            trees = leaves.tree[rows]
            again = trees[1:][trees[1:] == trees[:-1]]
            if len(again):
                return leaves, rows, trees, int(again[0])
        return None

    def _is_whole(self, zone: TreeZone) -> bool:
        """Whether every tree has a leaf, and no condition is false, in all of the zone."""
        count = len(self.statement.trees.roots)
        for leaves, rows in zip(self._zones.leaves, zone.reached, strict=True):
            if len(np.unique(leaves.tree[rows])) < count:
                return False
        box = zone.low[None], zone.high[None]
        return all(self._axes.can(each, *box)[0][0] for each in self.statement.conditions)

    def _settled(self, zone: TreeZone, wheres: Sequence[Formula], steps: list[Cut | None]) -> Case | None:
        """A case of a zone that satisfies the conditions and one of `wheres`, or cuts that show none."""
        conditions = self.statement.conditions
        pending = [self._axes.zone_of(zone.low, zone.high)]
        while pending:
            part = pending.pop()
            if part.is_empty or any(each.over(part) is False for each in conditions):
                steps.append(None)
                continue
            left = [each for each in wheres if each.over(part) is not False]
            if not left:
                steps.append(None)
                continue
            for where in left:
                for case in candidates((*conditions, where), part):
                    if case in part and where.holds(case) and all(each.holds(case) for each in conditions):
                        return case
            cut = condition_cut((*conditions, *left), part)
            if cut is None or len(steps) > _MOST_PARTS:
                steps += [None] * (_MOST_PARTS + 1)
                return None
            steps.append(cut)
            first, second = part.cut(cut.variable, cut.at)
            pending += [second, first]
        return None


def _steps(root: _Node) -> Iterator[Cut | None]:
    pending = [root]
    while pending:
        node = pending.pop()
        if node.parts is not None:
            yield node.cut
            pending += [node.parts[1], node.parts[0]]
        else:
            assert node.steps is not None  # the search is through
            yield from node.steps


def _cuts(zones: TreeZones) -> Callable[[int, int], Cut]:
    """A function from an axis and a rank to the cut there."""
    axes = zones.axes
    known: list[tuple[int, int | None]] = []
    for variable, values in enumerate(axes.zone.values):
        if isinstance(values, Options):
            known += [(variable, option) for option in axes.options[variable]]
        else:
            known.append((variable, None))

    def cut(axis: int, rank: int) -> Cut:
        variable, option = known[axis]
        return Cut(variable, axes.cells[variable][rank][1] if option is None else option)

    return cut


def _separating(
    low: Ranks, high: Ranks, zone: TreeZone, number: Ints, weight: Floats, wanted: int
) -> NDArray[np.int64]:
    """Cuts inside of a zone between leaves of the same tree: those of the trees with the most weight."""
    order = np.argsort(-weight, kind="stable")
    width = int(zone.high.max()) + 2
    taken = 4
    while True:
        rows = np.isin(number, order[:taken])
        below = np.argwhere(low[rows] > zone.low)
        above = np.argwhere(high[rows] < zone.high)
        codes = np.concatenate(
            [
                below[:, 1] * width + low[rows][below[:, 0], below[:, 1]] - 1,
                above[:, 1] * width + high[rows][above[:, 0], above[:, 1]],
            ]
        )
        distinct, counts = np.unique(codes, return_counts=True)
        if len(distinct) >= wanted or taken >= len(order):
            distinct = distinct[np.argsort(-counts, kind="stable")[:wanted]]
            return np.stack([distinct // width, distinct % width], axis=1)
        taken *= 2


# Cases and cuts by the conditions alone


def _condition_breaks(statement: TreeStatement) -> Iterator[Cut]:
    """Where comparisons of one variable with a number change."""
    formulas = [*statement.conditions, *(each.where for each in statement.forbidden)]
    for formula in formulas:
        for each in comparisons(formula):
            if len(each.quantity.terms) != 1:
                continue
            ((variable, factor),) = each.quantity.terms
            values = statement.zone.values[variable]
            if isinstance(values, Span):
                at = exact(-Fraction(each.quantity.constant) / Fraction(factor))
                yield Cut(variable, at)
                first, _ = values.cut(at)
                if not first.is_empty and first.high == at:
                    step = Span(values.low, at, values.grid)
                    yield Cut(variable, _before(step))


def _before(values: Span) -> Number:
    """The number before the last one of a span."""
    high = values.high
    return (
        high - 1
        if isinstance(high, int) and values.grid.value == "whole"
        else exact(float(np.nextafter(float(high), -np.inf)))
    )


def undecided(formulas: Sequence[Formula], zone: Zone) -> Iterator[Comparison]:
    """The comparisons that a zone leaves undecided, in formulas that it leaves undecided."""
    for formula in formulas:
        if formula.over(zone) is None:
            yield from (each for each in comparisons(formula) if each.over(zone) is None)


def candidates(formulas: Sequence[Formula], zone: Zone) -> Iterator[Case]:
    """Cases of a zone that may satisfy formulas: each undecided comparison pushed to either side."""
    open_ones = list(undecided(formulas, zone))
    for side in (-1, 1):
        pull: dict[int, Number] = {}
        for each in open_ones:
            for variable, factor in each.quantity.terms:
                pull[variable] = pull.get(variable, 0) + factor
        yield tuple(
            values.low if side * pull.get(number, 0) >= 0 else values.high
            for number, values in enumerate(zone.values)
        )


def condition_cut(formulas: Sequence[Formula], zone: Zone) -> Cut | None:
    """A cut that brings a formula closer to being decided; None if there is none."""
    for each in undecided(formulas, zone):
        quantity = each.quantity
        wide = [variable for variable, _ in quantity.terms if not zone.values[variable].is_single]
        if not wide:
            continue
        variable = max(wide, key=lambda number: zone.values[number].size)
        values = zone.values[variable]
        if isinstance(values, Options):
            return Cut(variable, _option(each, values))
        if len(quantity.terms) == 1:
            at = exact(-Fraction(quantity.constant) / Fraction(quantity.terms[0][1]))
            cut = _proper(variable, at, values) or _proper(variable, at - 1, values)
            if cut is not None:
                return cut
        return _proper(variable, values.middle(), values)
    return None


def _option(comparison: Comparison, values: Options) -> int:
    """A value of a choice on the smaller side of a comparison, if the comparison separates the values."""
    if len(comparison.quantity.terms) == 1:
        ((_, factor),) = comparison.quantity.terms
        holds = {
            each: comparison.sign.holds(comparison.quantity.constant + factor * each)
            for each in sorted(values.left)
        }
        for side in (True, False):
            alike = [each for each, held in holds.items() if held is side]
            if len(alike) == 1:
                return alike[0]
    return min(values.left)


def _proper(variable: int, at: Number, values: Span) -> Cut | None:
    """The cut, if each of its parts has something that the other has not; otherwise None."""
    first, second = values.cut(at)
    is_proper = not first.is_empty and not second.is_empty and first != values and second != values
    return Cut(variable, at) if is_proper else None
