"""Closes zones of a question about a network: shows that no case in them violates the law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.domain.features import Kind
from dokimos.laws.proving.network_reach import (
    NetworkReach,
    RecordColumns,
    hull,
    least_difference,
    products,
    rounded_down,
)
from dokimos.laws.proving.question import LawQuestion
from dokimos.laws.proving.terms import Comparison, Quantity, Sign
from dokimos.laws.proving.zones import Number, Zone
from dokimos.networks.semantics.outward import Floats, Interval, up

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Examined:
    """Which zones are closed, and how much each variable of the question may matter in each of them."""

    closed: Mask
    weight: Floats


@dataclass(frozen=True)
class NetworkCloser:
    """Closes zones in which no forbidden decisions are possible, over the reals or in float32.

    `slack` bounds how far each score may be from the real one: 0 over the reals.

    Theorem. A zone that is closed has no case that violates the law. Let the law forbid that record r is
    decided a and record s is decided b.

    (1) r is not decided a where score j − score a > slack j + slack a for some j; over the reals, also
    where it is >= 0 and j comes before a, for the first largest score decides.

    (2) If r is decided a and s is decided b ≠ a, let g = score a − score b. Then g(r) >= 0 and g(s) <= 0,
    and one of them is strict, for a tie is decided for the one that comes first; so g(s) − g(r) < 0. With
    slack, g(s) − g(r) <= 2·(slack a + slack b). So neither can be where g(s) − g(r) is at least that, or
    0 over the reals. It is bounded by the slopes of g between the two records (`NetworkReach.slopes`).

    (3) Over the reals, a zone of one case is decided by the exact scores of its records.
    """

    question: LawQuestion
    reach: NetworkReach
    slack: Floats

    def closed(self, zones: Sequence[Zone]) -> list[bool]:
        """See ZoneCloser."""
        return [bool(each) for each in self.examine(zones).closed]

    def examine(self, zones: Sequence[Zone]) -> Examined:
        """What is shown of each zone."""
        question = self.question
        done = np.array([question.rules_out(zone) for zone in zones], dtype=np.bool_)
        weight = np.zeros((len(zones), len(question.variables)))
        left = np.flatnonzero(~done)
        if len(left):
            inner = [zones[int(row)] for row in left]
            boxes = RecordColumns(question).over(inner)
            bad, slopes = self._possible(inner, boxes)
            shown: Mask = np.array(~bad.any(axis=1))
            for row in np.flatnonzero(~shown).tolist():
                shown[row] = self._holds_at_point(inner[row])
            done[left] = shown
            weight[left] = self._weights(inner, boxes, slopes)
        return Examined(done, weight)

    @cached_property
    def _is_real(self) -> bool:
        return not self.slack.any()

    def _possible(self, zones: Sequence[Zone], boxes: Sequence[Interval]) -> tuple[Mask, Interval]:
        """For each zone and each forbidden combination, whether it is possible; and the slopes."""
        can = [self._classes(self.reach.leads(box)) for box in boxes]
        open_ones = [
            np.array([each.where.over(zone) is not False for zone in zones], dtype=np.bool_)
            & np.logical_and.reduce([can[r][:, c] for r, c in enumerate(each.classes)])
            for each in self.question.forbidden
        ]
        bad: Mask = np.stack(open_ones, axis=1)
        slopes = self.reach.slopes(_whole(boxes))
        place = {pair: number for number, pair in enumerate(self.reach.pairs)}
        for r, s in combinations(range(len(boxes)), 2):
            exact = slopes if len(boxes) == 2 else self.reach.slopes(hull(boxes[r], boxes[s]))
            gains = products(exact, self._change(r, s, zones, boxes).map(lambda end: end[:, None, :]))
            for number, each in enumerate(self.question.forbidden):
                a, b = each.classes[r], each.classes[s]
                if a != b:
                    least = up(2 * up(self.slack[a] + self.slack[b]))
                    gain = gains[:, place[a, b]]
                    bad[:, number] &= ~(gain >= 0 if self._is_real else gain > least)
        return bad, slopes

    def _classes(self, leads: Floats) -> Mask:
        """For each zone the classes that are possible, by (1)."""
        can = np.ones((len(leads), self.reach.classes), dtype=np.bool_)
        for number, (j, c) in enumerate(self.reach.pairs):
            beaten = leads[:, number] > up(self.slack[j] + self.slack[c])
            if self._is_real and j < c:
                beaten |= leads[:, number] >= 0
            can[:, c] &= ~beaten
        return can

    def _change(self, r: int, s: int, zones: Sequence[Zone], boxes: Sequence[Interval]) -> Interval:
        """Record s − record r, column by column: 0 where they share a variable."""
        first, second = self.question.records[r], self.question.records[s]
        low = least_difference(boxes[s].lower, boxes[r].upper)
        high = -least_difference(boxes[r].lower, boxes[s].upper)
        features = zip(self.question.layout.slots, first.features, second.features, strict=True)
        for slot, one, other in features:
            columns = slice(slot.start, slot.stop)
            if one == other:
                low[:, columns] = high[:, columns] = 0.0
            elif slot.feature.kind is not Kind.CHOICE:
                least, most = limits_of(self.question, other.plus(one, -1))
                low[:, columns] = np.maximum(low[:, columns], least)
                high[:, columns] = np.minimum(high[:, columns], most)
        return Interval(low, np.maximum(low, high))

    def _holds_at_point(self, zone: Zone) -> bool:
        if not self._is_real or not all(each.is_single for each in zone.values):
            return False
        case = tuple(each.low for each in zone.values)
        return exactly_violated(self.question, self.reach, case) is False

    def _weights(self, zones: Sequence[Zone], boxes: Sequence[Interval], slopes: Interval) -> Floats:
        """How much the scores may change with each variable: its width times its slopes."""
        found = np.zeros((len(zones), len(self.question.variables)))
        steep = slopes.magnitude.max(axis=1)
        for record, box in zip(self.question.records, boxes, strict=True):
            change = steep * (box.upper - box.lower)
            for slot, feature in zip(self.question.layout.slots, record.features, strict=True):
                if feature.variable is not None:
                    found[:, feature.variable] += change[:, slot.start : slot.stop].sum(axis=1)
        return found


def limits_of(question: LawQuestion, difference: Quantity) -> tuple[float, float]:
    """Bounds that the conditions of a question imply for the difference of two variables."""
    low, high = -np.inf, np.inf
    for each in question.conditions:
        if isinstance(each, Comparison) and each.sign in (Sign.AT_MOST, Sign.BELOW):
            # quantity = constant ± difference <= 0
            rest = each.quantity.plus(difference, -1)
            if rest.is_constant:
                high = min(high, -rounded_down(rest.constant))
            rest = each.quantity.plus(difference)
            if rest.is_constant:
                low = max(low, rounded_down(rest.constant))
    return low, high


def _whole(boxes: Sequence[Interval]) -> Interval:
    found = boxes[0]
    for each in boxes[1:]:
        found = hull(found, each)
    return found


def exactly_violated(question: LawQuestion, reach: NetworkReach, case: Sequence[Number]) -> bool | None:
    """Whether the exact decisions of a network violate the law in a case; None if they are not known."""
    if not question.admits(case):
        return False
    classes = []
    for record in question.records:
        decided = reach.decided(question.exact_columns(record, case))
        if decided is None:
            return None
        classes.append(decided)
    return question.is_violated(case, classes)
