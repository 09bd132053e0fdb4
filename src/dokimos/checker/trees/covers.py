"""The kind `trees`: no case of a set has decisions by a sum of trees that a law forbids.

A certificate is a tree of cuts of the set. It only chooses where to cut: whatever it says, every case is in
one of the zones that are left, and each of these is closed by one of the rules of `TreeZones.open_ones`, or
the certificate is refused. A set that is not cut at all is closed where every tree, by itself, is monotone
as needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from math import ceil, floor, frexp
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.zones import Cover, Cut, ForbiddenDecisions, Sign
from dokimos.checker.trees.axes import Axes, Mask, Ranks
from dokimos.checker.trees.leaves import Ints, Leaves, ScoreComparison, SumOfTrees, TreeStatement, leaves_of
from dokimos.core.errors import InvalidProof

#: How many zones are looked at together, and how many leaves at the most.
_TOGETHER, _MOST_REACHED = 512, 2**20
#: Sums of scores in units stay below 2**57, so that sums and differences of four of them are exact.
_BITS = 57
#: The sum of the factors of scores, and how many units a quantity counts for: with 2**61 units of scores,
#: no more decides nothing else.
_MOST_FACTORS, _MOST_UNITS = 16, 2**62


class TreeZone:
    """A box of cases, and for each of some sets of leaves, those that the box meets, by number."""

    def __init__(self, low: Ranks, high: Ranks, reached: tuple[Ints, ...]) -> None:
        self.low, self.high, self.reached = low, high, reached


def check_tree_cover(statement: TreeStatement, cover: Cover) -> None:
    """Check that a cover proves a statement. Raises InvalidProof.

    Theorem. If this returns, no case of the zone that satisfies the conditions has forbidden decisions.

    *Proof.* Every case of a box is in one of the two parts of each cut of it (`Axes.cut`), so by induction
    every case of the zone is in a box at a leaf of the tree of cuts; and each of these is shown to have no
    such case (`TreeZones.open_ones`). ∎
    """
    count = len(statement.zone.values)
    for step in cover.steps:
        if step is not None and not 0 <= step.variable < count:
            raise InvalidProof(f"a cut names variable {step.variable}, which the question does not have")
    if statement.zone.is_empty:
        if cover.steps != (None,):
            raise InvalidProof("the set has no case, and its cover is not a single zone")
        return
    zones = TreeZones(statement, statement.axes(step for step in cover.steps if step is not None))
    batch: list[TreeZone] = []
    size = 0
    for zone in left_uncut(zones.start, cover, zones.cut):
        batch.append(zone)
        size += sum(map(len, zone.reached))
        if len(batch) == _TOGETHER or size > _MOST_REACHED:
            _expect_closed(zones, batch)
            batch, size = [], 0
    _expect_closed(zones, batch)


def _expect_closed(zones: TreeZones, batch: Sequence[TreeZone]) -> None:
    if batch and zones.open_ones(batch).any():
        raise InvalidProof("a zone of the cover is not shown to have no violation")


Part = TypeVar("Part")


def left_uncut(start: Part, cover: Cover, cut: Callable[[Part, Cut], tuple[Part, Part]]) -> Iterator[Part]:
    """The parts of a set that a cover leaves uncut. Raises InvalidProof if it is no tree of cuts."""
    pending = [start]
    for step in cover.steps:
        if not pending:
            raise InvalidProof("the tree of cuts continues after its end")
        zone = pending.pop()
        if step is None:
            yield zone
        else:
            first, second = cut(zone, step)
            pending += [second, first]
    if pending:
        raise InvalidProof("the tree of cuts ends before all zones are leaves")


class TreeZones:
    """What is known of a statement in any box on its axes.

    The leaves of all records of a case are looked at together where they are not too many, otherwise those
    of each record by themselves: both have every case. `exact` values of trees are in units of 2**−`shift`,
    rounded to the nearest.
    """

    def __init__(self, statement: TreeStatement, axes: Axes) -> None:
        self.statement, self.axes, self.trees = statement, axes, statement.trees
        every = range(len(statement.records))
        joint = leaves_of(statement, axes, every)
        self.leaves = (joint,) if joint is not None else tuple(self._single(each) for each in every)
        #: The set of leaves, and the place in it, of each record.
        self.where = [(0, k) if joint is not None else (k, 0) for k in every]
        self.shift, self.slack = units(self.trees)
        self.error = score_error(self.trees, self.slack)
        if self.trees.tie:
            tie = ceil(Fraction(self.trees.tie) * self.trees.divisor * Fraction(2) ** self.shift)
            self.slack, self.error = max(self.slack, 2 * self.error) + tie, self.error + tie
        in_units = np.ldexp(self.trees.values.astype(np.float64), self.shift)
        self.exact: Ints = np.rint(in_units).astype(np.int64)
        self.base: Ints = np.rint(np.ldexp(self.trees.base.astype(np.float64), self.shift)).astype(np.int64)
        self.start = TreeZone(axes.low, axes.high, tuple(np.arange(len(e.tree)) for e in self.leaves))
        is_plain = len(self.trees.roots) == 1 and self.trees.tie == 0
        self._decided = [self._decisions(each) for each in self.leaves] if is_plain else None

    def _single(self, record: int) -> Leaves:
        found = leaves_of(self.statement, self.axes, [record])
        if found is None:
            raise InvalidProof("the trees have too many leaves")
        return found

    def cut(self, zone: TreeZone, cut: Cut) -> tuple[TreeZone, TreeZone]:
        """Two boxes that have all cases of a box, with the leaves that they meet."""
        parts = self.axes.cut(cut.variable, cut.at, zone.low, zone.high)
        first, second = (self.within(zone, low, high) for low, high in parts)
        return first, second

    def within(self, zone: TreeZone, low: Ranks, high: Ranks) -> TreeZone:
        """A box inside of a zone, with the leaves that it meets."""
        changed = np.flatnonzero((low != zone.low) | (high != zone.high))
        reached = []
        for leaves, own in zip(self.leaves, zone.reached, strict=True):
            for axis in changed:
                meets = (leaves.low[own, axis] <= high[axis]) & (leaves.high[own, axis] >= low[axis])
                own = own[meets]
            reached.append(own)
        return TreeZone(low, high, tuple(reached))

    def scores(self, leaves: Leaves, place: int) -> Ints:
        """The values that a record gets in each combination of leaves, in units, by class."""
        return np.asarray(self.exact[leaves.nodes[:, place]])

    def open_ones(self, zones: Sequence[TreeZone]) -> Mask:
        """For each zone and each forbidden combination of decisions, whether it is not ruled out.

        Theorem. Where this is false, no case of the zone that satisfies the conditions has that combination
        of decisions where it is forbidden.

        *Proof.* There is no such case if the zone is empty, a condition is false in all of it, or a tree
        has no leaf there (`leaves_of`). Otherwise let a case have the classes c₁, c₂, …; record r then has
        its first largest score at c_r. With `_Reached`, one of these is shown to be impossible:
        that record r has class c_r (`cannot_have`); that records r and s have the classes a and b ≠ a
        (`cannot_both`); for a single tree, that some combination of leaves has these decisions; or, where
        scores are forbidden, that one of the comparisons holds (`_can_hold`). ∎
        """
        forbidden = self.statement.forbidden
        found = np.zeros((len(zones), len(forbidden)), dtype=np.bool_)
        low, high = np.stack([each.low for each in zones]), np.stack([each.high for each in zones])
        left = np.flatnonzero((low <= high).all(axis=1))
        for condition in self.statement.conditions:
            left = left[self.axes.can(condition, low[left], high[left])[0]]
        count = len(self.trees.roots)
        for group, leaves in enumerate(self.leaves):
            met = [_distinct(leaves.tree[zones[number].reached[group]]) for number in left.tolist()]
            left = left[np.array(met, dtype=np.int64) == count]
        if len(left) == 0:
            return found
        reached = [
            _Reached(self, leaves, [zones[number].reached[group] for number in left.tolist()])
            for group, leaves in enumerate(self.leaves)
        ]
        for number, each in enumerate(forbidden):
            is_open = self.axes.can(each.where, low[left], high[left])[0]
            if isinstance(each, ForbiddenDecisions):
                is_open &= self._is_possible(each, reached, is_open)
            else:
                for part in each.parts:
                    is_open &= self._can_hold(part, reached, low[left], high[left])
            found[left, number] = is_open
        return found

    def _can_hold(
        self, part: ScoreComparison, reached: Sequence[_Reached], low: Ranks, high: Ranks
    ) -> Mask:
        """In which boxes Σ factor · score + quantity may be at most 0, or below 0, as the sign says.

        Theorem 1. The scores of a case, times the divisor and in units, are the sums over the trees of what
        the case reaches, and of the bases, but for `score_error`; what is compared is, but for that and the
        tie. So the comparison fails where the least
        such sums, with the least value of the quantity, are still above 0 (or, for "below", not below it).

        Theorem 2. Of scores of one class with factors f > 0 and −f, let in every combination of leaves the
        value of the first record be at least that of the other. As rounding is monotone and the order of
        the sums is the same, so are the scores, and with a tie what is compared; and the comparison fails
        where the quantity is above 0 (or, for "below", not below it).
        """
        scale = self.trees.divisor * Fraction(2) ** self.shift
        size = sum(abs(factor) for _, _, factor in part.scores)
        if size > _MOST_FACTORS:
            raise InvalidProof("the factors of the scores in a law are too large")
        if part.quantity.is_constant:
            least: list[Fraction | None] = [Fraction(part.quantity.constant)] * len(low)
        else:
            ends, _, error = self.axes.ends_of(part.quantity, low, high)
            ends = ends - np.maximum(error, 0.0)
            least = [Fraction(each) if np.isfinite(each) else None for each in ends.tolist()]
        below = part.sign is Sign.BELOW
        fails = np.array([each is not None and (each >= 0 if below else each > 0) for each in least])
        total = np.zeros(len(low), dtype=np.int64)
        is_ordered = np.zeros(len(low), dtype=np.bool_)
        for group, each in enumerate(reached):
            own = [
                (self.where[r][1], c, factor) for r, c, factor in part.scores if self.where[r][0] == group
            ]
            if own:
                total += each.least(own)
                is_ordered = each.ordered(own) if len(own) == len(part.scores) == 2 else is_ordered
        total += sum(factor * int(self.base[c]) for _, c, factor in part.scores)
        added = [-_MOST_UNITS if q is None else floor(q * scale) - size * self.error for q in least]
        total += np.array([max(-_MOST_UNITS, min(each, _MOST_UNITS)) for each in added], dtype=np.int64)
        return ~((total >= 0 if below else total > 0) | (fails & is_ordered))

    def _is_possible(self, forbidden: ForbiddenDecisions, reached: Sequence[_Reached], asked: Mask) -> Mask:
        """In which zones a combination of decisions is not ruled out; only those `asked` count."""
        possible = asked.copy()
        if self._decided is not None:
            for group, each in enumerate(reached):
                own = [k for k, (where, _) in enumerate(self.where) if where == group]
                classes = np.array([forbidden.classes[k] for k in own])
                possible &= each.some((self._decided[group] == classes).all(axis=1))
            return possible
        for record, (group, place) in enumerate(self.where):
            if possible.any():
                possible &= ~reached[group].cannot_have(place, forbidden.classes[record])
        for (r, (group, first)), (s, (other, second)) in combinations(enumerate(self.where), 2):
            a, b = forbidden.classes[r], forbidden.classes[s]
            if group == other and a != b and possible.any():
                possible &= ~reached[group].cannot_both(first, a, second, b)
        return possible

    def _decisions(self, leaves: Leaves) -> Ints:
        """Of a single tree: the decision on each record in each combination of leaves."""
        trees = self.trees
        scores = (trees.base + trees.values[leaves.nodes]) / trees.values.dtype.type(trees.divide)
        return np.asarray(scores.argmax(axis=2))


def _distinct(ascending: Ints) -> int:
    """How many different numbers there are."""
    return min(1, len(ascending)) + int(np.count_nonzero(ascending[1:] != ascending[:-1]))


class _Reached:
    """The leaves that some zones meet, one zone behind the other, at least one of every tree."""

    def __init__(self, zones: TreeZones, leaves: Leaves, reached: Sequence[Ints]) -> None:
        self._zones, self._leaves = zones, leaves
        self._rows = np.concatenate(reached)
        sizes = np.array([len(each) for each in reached])
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        trees = leaves.tree[self._rows]
        is_first = np.ones(len(trees), dtype=np.bool_)
        is_first[1:] = trees[1:] != trees[:-1]
        is_first[self._starts] = True
        self._segments = np.flatnonzero(is_first)
        self._count = len(zones.trees.roots)
        self._ends: dict[int, tuple[NDArray[np.floating], NDArray[np.floating]]] = {}

    def some(self, marked: Mask) -> Mask:
        """Which zones meet a combination that is marked."""
        return np.asarray(np.logical_or.reduceat(marked[self._rows], self._starts))

    def most(self, units: Ints) -> Ints:
        """The sum, over the trees, of the greatest of these numbers that a zone meets."""
        greatest = np.maximum.reduceat(units[self._rows], self._segments)
        return np.asarray(greatest.reshape(-1, self._count).sum(axis=1))

    def least(self, scores: Sequence[tuple[int, int, int]]) -> Ints:
        """The sum, over the trees, of the least Σ factor · value of a record for a class, in units."""
        total = np.zeros(len(self._leaves.tree), dtype=np.int64)
        for place, c, factor in scores:
            total -= factor * self._zones.scores(self._leaves, place)[:, c]
        return -self.most(total)

    def ordered(self, scores: Sequence[tuple[int, int, int]]) -> Mask:
        """For Theorem 2 of `_can_hold`: in which zones no value of the first record is below the other."""
        (first, a, f), (second, b, g) = scores
        if a != b or f + g != 0:
            return np.zeros(len(self._starts), dtype=np.bool_)
        one, two = (self._zones.trees.values[self._leaves.nodes[:, place], a] for place in (first, second))
        return ~self.some(one < two if f > 0 else two < one)

    def cannot_have(self, place: int, chosen: int) -> Mask:
        """Which zones have no case where a record has this class.

        Theorem 1. Rounding to nearest is monotone. So a score that is computed from leaves whose values lie
        between two ends lies between the scores computed in the same order from these ends. A class is not
        the first largest where another score is larger for sure, or as large and before it; with a tie, not
        chosen where another one is larger by more than that. (A difference of doubles above twice the tie
        is above it.)

        Theorem 2. Let d be the sum over the trees of the greatest difference of the values of `chosen` and
        of another class j, and of their bases, in units. If chosen is decided, its score is at least that
        of j as computed; then d + slack ≥ 0 (`units`); and where sums are exact, d > 0 if j is before it.
        """
        low, high = self._score_ends(place)
        is_impossible = np.zeros(len(low), dtype=np.bool_)
        others = [j for j in range(low.shape[1]) if j != chosen]
        tie = self._zones.trees.tie
        for j in others:
            is_beaten = low[:, j] >= high[:, chosen] if j < chosen else low[:, j] > high[:, chosen]
            if tie:
                is_beaten = low[:, j].astype(np.float64) - high[:, chosen] > 2 * tie
            is_impossible |= is_beaten
        scores = self._zones.scores(self._leaves, place)
        base, slack = self._zones.base, self._zones.slack
        for j in others:
            if is_impossible.all():
                break
            difference = self.most(scores[:, chosen] - scores[:, j]) + base[chosen] - base[j]
            is_impossible |= difference < -slack
            if slack == 0 and j < chosen:
                is_impossible |= difference <= 0
        return is_impossible

    def cannot_both(self, first: int, a: int, second: int, b: int) -> Mask:
        """Which zones have no case where one record has class a and another one class b ≠ a.

        If they have, then s_a(first) ≥ s_b(first) and s_b(second) ≥ s_a(second) for the scores as computed,
        one of the two without equality: that of the class that comes later.

        Theorem 1. If in every combination of leaves the value for a is not smaller for the second record
        than for the first, and that for b not larger, then, as rounding is monotone and the order of the
        sum is the same, s_a(second) ≥ s_a(first) ≥ s_b(first) ≥ s_b(second) ≥ s_a(second), so that all of
        these are equal, which they are not.

        Theorem 2. Let d be the sum over the trees of the greatest (v_a − v_b)(first) + (v_b − v_a)(second),
        in units. Then d + 2·slack ≥ 0 (`units`), and d > 0 where sums are exact. The slack has the tie.
        """
        values, nodes = self._zones.trees.values, self._leaves.nodes
        one, two = values[nodes[:, first]], values[nodes[:, second]]
        is_against = (two[:, a] < one[:, a]) | (two[:, b] > one[:, b])
        is_impossible = ~self.some(is_against | (self._zones.trees.tie > 0))
        if not is_impossible.all():
            own, other = (self._zones.scores(self._leaves, place) for place in (first, second))
            difference = self.most(own[:, a] - own[:, b] + other[:, b] - other[:, a])
            slack = self._zones.slack
            is_impossible |= difference <= 0 if slack == 0 else difference < -2 * slack
        return is_impossible

    def _score_ends(self, place: int) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """The least and the greatest score of each class in each zone, as computed."""
        if place not in self._ends:
            trees = self._zones.trees
            rows = trees.values[self._leaves.nodes[self._rows, place]]
            found = []
            for choose in (np.minimum, np.maximum):
                ends = choose.reduceat(rows, self._segments, axis=0)
                ends = ends.reshape(-1, self._count, rows.shape[1])
                start = np.broadcast_to(trees.base, (len(ends), 1, rows.shape[1]))
                total = np.add.accumulate(np.concatenate([start, ends], axis=1), axis=1)[:, -1]
                found.append(total / trees.values.dtype.type(trees.divide))
            self._ends[place] = (found[0], found[1])
        return self._ends[place]


def units(trees: SumOfTrees) -> tuple[int, int]:
    """The unit 2**−shift of exact sums, and how many units rounding may turn the order of two scores by.

    Theorem. Let S be the sum, in units, of the base and of the values of one leaf of each tree, each
    rounded to the nearest unit. If the score of class a as computed is at least that of b, then
    S_a + slack ≥ S_b. If slack is 0, then S_a ≥ S_b, and S_a > S_b where the score of a is larger.

    *Proof.* Let B be the size of the base and of the largest values of all T trees together, for the class
    where this is most, and u the unit roundoff. A sum of T additions is off by at most γB, γ = Tu/(1 − Tu),
    and at most (1 + γ)B in size. Dividing by the same d > 0 keeps the order of two sums, but may make them
    equal: then they differ by no more than 2u(1 + γ)(1 + u)B, or twice d times the smallest subnormal
    number; nothing overflows, or the trees are refused. So the real sums are apart, in the wrong order, by
    at most 2γB + 2u(1 + γ)(1 + u)B and that; with Tu ≤ 2⁻¹⁰ this is below (2T + 3)·u·1.01·B. Rounding to
    units adds half a unit for each of T + 1 numbers of each sum.

    Slack is 0 where all values and the base are multiples of a number g with B ≤ 2^(p−3)·g, p the digits of
    the type: then sums are exact, and two that differ, by g or more, stay apart when they are divided, as
    g/d is above the distance of neighbouring numbers at B/d and, by the last condition, of the smallest. ∎
    """
    count, is_single = len(trees.roots), trees.values.dtype == np.float32
    digits, smallest = (24, Fraction(1, 2**149)) if is_single else (53, Fraction(1, 2**1074))
    bounds = np.maximum.reduceat(np.abs(trees.values.astype(np.float64)), trees.roots, axis=0)
    total = max(
        sum(map(Fraction, [abs(float(base)), *column]), Fraction(0))
        for base, column in zip(trees.base, bounds.T.tolist(), strict=True)
    )
    if total > min(Fraction(2**100), 2**120 * trees.divisor) or count > 2 ** (digits - 11):
        raise InvalidProof("the values of the trees are too large, or the trees too many, to add up")
    shift = _BITS - (frexp(float(total) * 1.0001)[1] if total > 0 else 0)
    shift = min(shift, 900)
    grid = shift - (_BITS + 3 - digits)
    every = np.concatenate([trees.values.ravel(), trees.base]).astype(np.float64)
    scaled = np.ldexp(every, grid)
    underflow = trees.divisor * smallest * 2
    is_whole = (scaled == np.rint(scaled)).all() and (np.ldexp(scaled, -grid) == every).all()
    if is_whole and underflow < Fraction(2) ** -grid:
        return shift, 0
    rounding = (2 * count + 3) * Fraction(1, 2**digits) * Fraction(101, 100) * total + underflow
    return shift, ceil(rounding * Fraction(2) ** shift) + count + 1


def score_error(trees: SumOfTrees, slack: int) -> int:
    """How many units a score, times the divisor, may be from the sum of its base and values in units.

    Theorem. At most half of the slack of `units`, and where that is 0, nothing if the divisor d is 1,
    otherwise 2^(59 − p), p the digits of the type.

    *Proof.* With B, T, u and γ as there, a sum is off by γB, its quotient, times d, by u(1 + γ)B or d times
    the smallest subnormal number, and the numbers in units by half a unit each. If the slack is 0, sums are
    exact, and a quotient, times d, is off by u of its size, which is below 2⁵⁷ units, or by d times the
    smallest number, which is below g/2, and g is 2^(60 − p) units. ∎
    """
    if slack or trees.divisor == 1:
        return slack
    digits = 24 if trees.values.dtype == np.float32 else 53
    return 1 << (_BITS + 2 - digits)
