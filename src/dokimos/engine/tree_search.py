"""Finds a cover that proves a statement about a sum of trees, or a case against it: best first, cut by cut.

The zone that is furthest from being closed is cut next, where one step ahead shows the largest gain, and a
walk from it to a single leaf of every tree proposes cases. What is found is checked by others: a cover by
`check_tree_cover`, a case by a run of the model.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import (
    Cover,
    Cut,
    Formula,
    Options,
    Span,
)
from dokimos.checker.trees.covers import TreeZone, TreeZones
from dokimos.checker.trees.leaves import ForbiddenScores, Ints, Leaves, ScoreComparison, TreeStatement
from dokimos.core.errors import InvalidProof
from dokimos.engine.condition_cases import Case, candidates, condition_breaks, condition_cut

Floats = NDArray[np.float64]
#: How many zones are cut at a time: at first, and at the most.
_FIRST, _BATCH = 4, 64
#: From how many trees of a zone cuts are taken, and how many of these are looked at.
_TREES, _CUTS = 12, 32
#: Of how many rules at the most, those nearest to closing zones, the gain is computed.
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
    #: The nodes that are looked at, until they are closed or queued.
    _judged: Sequence[_Node] = ()
    _number: int = 0

    def run(self) -> Iterator[Case | None]:
        """Search until there is a cover; each case that is yielded may violate the statement.

        One that is asked for more cases does not: then its zone stays open.
        """
        if self.statement.zone.is_empty:
            self.cover = Cover((None,))
            return
        formulas = [*self.statement.conditions, *(each.where for each in self.statement.forbidden)]
        breaks = condition_breaks(formulas, self.statement.zone)
        self._zones = TreeZones(self.statement, self.statement.axes(breaks))
        self._axes = self._zones.axes
        self._rules = cache(self._rules_of)
        self._cut_at = _cuts(self._zones)
        yield None
        root = _Node(self._zones.start)
        yield from self._judge([root])
        size = _FIRST
        while self._open:
            yield self._dived(self._open[0][2])
            best = [heapq.heappop(self._open)[2] for _ in range(min(size, len(self._open)))]
            size = min(2 * size, _BATCH)
            parts: list[_Node] = []
            for node in best:
                assert node.zone is not None and node.cut is not None  # it is open
                first, second = self._zones.cut(node.zone, node.cut)
                node.zone, node.parts = None, (_Node(first), _Node(second))
                parts += node.parts
            yield from self._judge(parts)
        if not self._stuck:
            self.cover = Cover(tuple(_steps(root)))

    @property
    def share(self) -> float:
        """The share of the set that is open: of all values of the variables, whatever the conditions."""
        nodes = [node for _, _, node in self._open] + [node for node in self._judged if node.cut is None]
        found = [node.zone for node in nodes if node.zone is not None] + self._stuck
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
        self._judged = nodes
        is_open = self._zones.open_ones([node.zone for node in nodes if node.zone is not None])
        by_target: dict[int, list[_Node]] = {}
        for node, own in zip(nodes, is_open, strict=True):
            if own.any():
                node.target = int(np.argmax(own))
                by_target.setdefault(node.target, []).append(node)
            else:
                node.zone, node.steps = None, (None,)
        wheres = {
            id(node): [each.where for each, on in zip(self.statement.forbidden, own, strict=True) if on]
            for node, own in zip(nodes, is_open, strict=True)
        }
        for target, group in by_target.items():
            bounds, cuts = self._plan([node.zone for node in group if node.zone is not None], target)
            for node, bound, cut in zip(group, bounds.tolist(), cuts, strict=True):
                node.cut = cut
                if cut is not None:
                    self._number += 1
                    heapq.heappush(self._open, (-bound, self._number, node))
                    continue
                assert node.zone is not None  # it is open
                steps: list[Cut | None] = []
                case = self._settled(node.zone, wheres[id(node)], steps)
                if case is not None:
                    yield case
                if case is not None or len(steps) > _MOST_PARTS:
                    self._stuck.append(node.zone)
                node.zone, node.steps = None, tuple(steps)
        yield None

    def _rules_of(self, target: int) -> list[_Rule]:
        """Whichever of these is below 0 throughout rules out the combination of decisions or scores."""
        zones, forbidden = self._zones, self.statement.forbidden[target]
        if isinstance(forbidden, ForbiddenScores):
            return [self._rule_of(each) for each in forbidden.parts]
        found, classes = [], forbidden.classes
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

    def _rule_of(self, part: ScoreComparison) -> _Rule:
        """How far below 0 a comparison of scores gets; a quantity counts with its middle value."""
        zones = self._zones
        if len(zones.leaves) > 1:
            raise InvalidProof("the trees have too many pairs of leaves that two records reach together")
        leaves = zones.leaves[0]
        scores = sum(f * zones.scores(leaves, r)[:, c].astype(np.float64) for r, c, f in part.scores)
        ends = part.quantity.ends(self.statement.zone)
        middle = float(ends[0] + ends[1]) / 2 * self.statement.trees.divide
        constant = float(np.ldexp(middle, zones.shift)) + sum(
            f * float(zones.base[c]) for _, c, f in part.scores
        )
        return _Rule(0, -np.asarray(scores), -constant)

    def _plan(self, zones: Sequence[TreeZone], target: int) -> tuple[Floats, list[Cut | None]]:
        """How far each zone is from being closed, and the cut that brings both parts nearest to it."""
        rules = self._rules(target)
        reached = [
            _Met(leaves, [zone.reached[group] for zone in zones])
            for group, leaves in enumerate(self._zones.leaves)
        ]
        ends = [reached[rule.group].ends(rule) for rule in rules]
        bounds = np.stack([(e.total + r.constant) * r.weight for e, r in zip(ends, rules, strict=True)])
        near = np.argsort(bounds.mean(axis=1), kind="stable")[:_RULES]
        bound = bounds.min(axis=0)
        best = np.full(len(zones), -np.inf)
        cuts = np.zeros((len(zones), 2), dtype=np.int64)
        for group, met in enumerate(reached):
            own = [(rules[k], ends[k], bounds[k]) for k in near if rules[k].group == group]
            found = _gains(met, zones, own, bound)
            if found is not None:
                better = found[0] > best
                best, cuts = np.where(better, found[0], best), np.where(better[:, None], found[1], cuts)
        known = np.isfinite(best).tolist()
        return bound, [
            self._cut_at(*map(int, cut)) if is_one else None
            for cut, is_one in zip(cuts, known, strict=True)
        ]

    def _dived(self, node: _Node) -> Case | None:
        """A case in a zone where rules are as far from closing as they can be, leaf after leaf."""
        zone = node.zone
        assert zone is not None  # it is open
        rules = self._rules(node.target)
        for _ in range(4 * len(self.statement.trees.roots)):
            met = [
                _Met(leaves, [own]) for leaves, own in zip(self._zones.leaves, zone.reached, strict=True)
            ]
            if any(len(each.segments) < len(self.statement.trees.roots) for each in met):
                return None
            ends = [(met[rule.group].ends(rule), rule) for rule in rules]
            ends.sort(key=lambda each: float(each[0].total[0] + each[1].constant) * each[1].weight)
            wide = [each for each in ends if (each[0].most > each[0].least).any()]
            if wide:
                end, rule = wide[0]
                own, leaves = met[rule.group], self._zones.leaves[rule.group]
                best = own.rows[end.first[np.argmax(end.most - end.least)]]
            else:
                open_ones = [each for each in met if len(each.segments) < len(each.rows)]
                if not open_ones:
                    break
                leaves = open_ones[0].leaves
                best = open_ones[0].rows[np.argmax(open_ones[0].sizes[open_ones[0].number] > 1)]
            low = np.maximum(zone.low, leaves.low[best])
            high = np.minimum(zone.high, leaves.high[best])
            self._axes.settle(low[None], high[None])
            zone = self._zones.within(zone, low, high)
            if (low > high).any():
                return None
        own_open = self._zones.open_ones([zone])[0]
        if not own_open.any():
            return None
        wheres = [e.where for e, on in zip(self.statement.forbidden, own_open, strict=True) if on]
        return self._settled(zone, wheres, [])

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


class _Met:
    """The leaves that some zones meet, one zone behind the other, and where their trees begin."""

    def __init__(self, leaves: Leaves, reached: Sequence[Ints]) -> None:
        self.leaves = leaves
        self.rows = np.concatenate(reached)
        sizes = np.array([len(each) for each in reached])
        zone = np.repeat(np.arange(len(reached)), sizes)
        trees = leaves.tree[self.rows]
        is_first = np.ones(len(trees), dtype=np.bool_)
        is_first[1:] = (trees[1:] != trees[:-1]) | (zone[1:] != zone[:-1])
        self.segments = np.flatnonzero(is_first)
        self.sizes = np.diff(np.append(self.segments, len(self.rows)))
        #: The segment of each row, and the zone of each segment.
        self.number = np.repeat(np.arange(len(self.segments)), self.sizes)
        self.zone = zone[self.segments]
        self.starts = np.flatnonzero(np.append(True, self.zone[1:] != self.zone[:-1]))

    def ends(self, rule: _Rule) -> _RuleEnds:
        """What a rule is at the most and at the least in each segment, and in each zone at the most."""
        units = rule.units[self.rows]
        most = np.maximum.reduceat(units, self.segments)
        is_most = np.flatnonzero(units == most[self.number])
        first = is_most[np.append(True, self.number[is_most[1:]] != self.number[is_most[:-1]])]
        least = np.minimum.reduceat(units, self.segments)
        return _RuleEnds(most, least, first, np.add.reduceat(most, self.starts))


@dataclass(frozen=True)
class _RuleEnds:
    """By segment: the greatest and least number, and a row with the greatest; by zone: the sum of these."""

    most: Floats
    least: Floats
    first: Ints
    total: Floats


def _gains(
    met: _Met, zones: Sequence[TreeZone], rules: Sequence[tuple[_Rule, _RuleEnds, Floats]], bound: Floats
) -> tuple[Floats, NDArray[np.int64]] | None:
    """Of each zone, how good its best cut is, and that cut, an axis and a rank; −inf where there is none.

    One step ahead, exactly: a cut changes what a rule is at the most only in trees whose greatest leaf is
    on the other side.
    """
    is_wide = met.sizes > 1
    if not is_wide.any():
        return None
    spread = np.zeros(len(met.segments))
    for rule, ends, _ in rules:
        spread += (ends.most - ends.least) * rule.weight
    known = _separating(met, zones, np.where(is_wide, spread, -1.0))
    if known is None:
        return None
    axis, rank, is_cut = known
    after = []
    for side in (0, 1):
        found = np.full(axis.shape, np.inf)
        for rule, ends, now in rules:
            lost = _lost(met, rule, ends, axis, rank, side)
            found = np.minimum(found, now[:, None] - lost * rule.weight)
        after.append(found)
    size = np.maximum(bound, 1.0)[:, None]
    score = np.ones(axis.shape)
    for found in after:
        score *= np.clip((bound[:, None] - found) / size, 0.0, 1.0) + 1e-3 if rules else 1.0
    score = np.where(is_cut, score, -np.inf)
    chosen = score.argmax(axis=1)
    rows = np.arange(len(chosen))
    return score[rows, chosen], np.stack([axis[rows, chosen], rank[rows, chosen]], axis=1)


def _lost(met: _Met, rule: _Rule, ends: _RuleEnds, axis: Ints, rank: Ints, side: int) -> Floats:
    """By how much the sum of the greatest falls on one side of each cut of each zone."""
    leaves = met.leaves
    top = met.rows[ends.first][:, None]
    x, k = axis[met.zone], rank[met.zone]
    is_gone = leaves.low[top, x] > k if side == 0 else leaves.high[top, x] <= k
    is_gone &= (ends.most > ends.least)[:, None]
    segment, cut = np.nonzero(is_gone)
    lost = np.zeros(axis.shape)
    if len(segment) == 0:
        return lost
    sizes = met.sizes[segment]
    starts = np.cumsum(sizes) - sizes
    pair = np.repeat(np.arange(len(segment)), sizes)
    rows = met.rows[met.segments[segment][pair] + np.arange(len(pair)) - starts[pair]]
    own_axis, own_rank = x[segment, cut][pair], k[segment, cut][pair]
    stays = leaves.low[rows, own_axis] <= own_rank if side == 0 else leaves.high[rows, own_axis] > own_rank
    left = np.maximum.reduceat(np.where(stays, rule.units[rows], _NOTHING), starts)
    np.add.at(lost, (met.zone[segment], cut), ends.most[segment] - left)
    return lost


def _separating(
    met: _Met, zones: Sequence[TreeZone], weight: Floats
) -> tuple[Ints, Ints, NDArray[np.bool_]] | None:
    """Cuts between leaves of one tree, for each zone: an axis and a rank, and whether there is one.

    They come from the trees with the most weight; a weight below 0 is that of a tree with one leaf.
    """
    order = np.lexsort((-weight, met.zone))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.repeat(met.starts, np.diff(np.append(met.starts, len(order))))
    taken = ((place < _TREES) & (weight >= 0))[met.number]
    rows, zone = met.rows[taken], met.zone[met.number[taken]]
    low, high = (np.stack([getattr(each, end) for each in zones]) for end in ("low", "high"))
    own_low, own_high = met.leaves.low[rows], met.leaves.high[rows]
    below, above = np.nonzero(own_low > low[zone]), np.nonzero(own_high < high[zone])
    width, axes = int(high.max()) + 2, low.shape[1]
    codes = np.concatenate(
        [
            (zone[below[0]] * axes + below[1]) * width + own_low[below] - 1,
            (zone[above[0]] * axes + above[1]) * width + own_high[above],
        ]
    )
    if len(codes) == 0:
        return None
    distinct, counts = np.unique(codes, return_counts=True)
    whose = distinct // (axes * width)
    order = np.lexsort((-counts, whose))
    distinct, whose = distinct[order], whose[order]
    begins = np.searchsorted(whose, np.arange(len(zones)))
    position = np.arange(len(whose)) - begins[whose]
    kept = position < _CUTS
    shape = (len(zones), int(position[kept].max()) + 1)
    axis, rank, is_cut = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
    cell = (whose[kept], position[kept])
    axis[cell], rank[cell], is_cut[cell] = distinct[kept] // width % axes, distinct[kept] % width, True
    return axis, rank, is_cut
