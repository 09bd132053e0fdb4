"""Closes zones of a question about a network: shows that no case in them violates the law."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.relu_layers import ReluLayer, bounded, relu_layers
from dokimos.checker.lemmas.zones import (
    Comparison,
    ForbiddenDecisions,
    Number,
    Options,
    Quantity,
    Sign,
    Zone,
)
from dokimos.checker.trees.leaves import ForbiddenScores, ScoreComparison
from dokimos.core.errors import DokimosError, InputError
from dokimos.core.inputs import uncompressed
from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.proving.expressions import Refusal, Unread
from dokimos.laws.proving.question import ExactCase, LawQuestion
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import enclosures
from dokimos.networks.semantics.outward import Floats, Interval, bilinear, down, point, up
from dokimos.networks.semantics.rounding import rounding_bounds

# A ReLU network over records of a layout: its scores, and their slopes, over many zones at once


#: Not all integers beyond this are float32 numbers.
_WHOLE_FLOAT32 = 2**24
#: Whole factors of scores in a law up to this, and their products with 53 bits, are rounded once.
_MOST_FACTORS = 2**40


class NetworkReach:
    """A network of affine layers with ReLUs between them that takes records of a layout, column by column.

    The decision is the first of the largest scores; a single score is the decision itself. Any other
    network is refused.
    """

    def __init__(
        self,
        content: bytes,
        layout: Layout,
        *,
        name: str,
        labels: Sequence[Any] = (),
        is_whole: bool = True,
    ) -> None:
        self.layout, self.content, self.labels, self._is_whole = layout, content, labels, is_whole
        self.network, self.layers = read_layers(content, name=name)
        if self.network.input_size != layout.width:
            raise Refusal(
                f"the network takes {self.network.input_size} inputs, and records have {layout.width} "
                "columns; give a network of this domain"
            )
        for feature in layout.features:
            if feature.may_miss:
                raise Refusal(f"{feature.name} may be missing, and a network has no scores then")

    @property
    def classes(self) -> int:
        """The number of scores."""
        return self.network.output_size

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """All pairs of two classes, in either order."""
        return tuple(permutations(range(self.classes), 2))

    @cached_property
    def _rows(self) -> Floats:
        """For each pair (a, b) the factors of score a − score b; of a single score, those of ± it."""
        if self.classes == 1:
            return np.array([[1.0], [-1.0]])
        one = np.eye(self.classes)
        return np.stack([one[a] - one[b] for a, b in self.pairs])

    @cached_property
    def rounding(self) -> Floats | None:
        """How far each score of a float32 run may be from the real one, for all records of the layout.

        None if nothing is known: a feature without a range, integers that are not float32 numbers, scores
        that may overflow, a network that is only a part of what decides (not `is_whole`).
        """
        if not self._is_whole:
            return None
        ends: list[tuple[Fraction, Fraction]] = []
        for feature in self.layout.features:
            if feature.kind is Kind.CHOICE:
                ends += [(Fraction(0), Fraction(1))] * feature.width
                continue
            if feature.low is None or feature.high is None:
                return None
            if feature.kind is Kind.INTEGER and max(abs(feature.low), abs(feature.high)) > _WHOLE_FLOAT32:
                return None
            ends.append((Fraction(feature.low), Fraction(feature.high)))
        lower, upper = zip(*ends, strict=True)
        try:
            error = rounding_bounds(self.network, lower, upper)[self.network.output].error.reshape(-1)
        except InputError:
            return None
        return error if np.isfinite(error).all() else None

    def scores(self, rows: Floats) -> Floats:
        """The scores of each row, as float32 numbers, by the layers that were read, in doubles."""
        values = np.asarray(rows, dtype=np.float32).astype(np.float64)
        for number, layer in enumerate(self.layers):
            values = (np.maximum(values, 0.0) if number else values) @ layer.weights.T + layer.biases
        return values

    def leads(self, box: Interval) -> Floats:
        """For each box, and each pair (a, b), a lower bound of score a − score b over the box.

        Of a single score: lower bounds of it, and of its negative; so for `slopes`.
        """
        over = bounded(self.layers, box.map(lambda end: end[:, None, :]))
        return over.lower_bounds(point(self._rows), over.silent(1))

    def slopes(self, box: Interval) -> Interval:
        """For each box, and each pair (a, b), the slopes of score a − score b along each column.

        Theorem. For x and x' in the box, (score a − score b)(x') − (score a − score b)(x) = Σ s_k·(x'_k −
        x_k) with s in this enclosure.

        *Proof.* By `through_slopes`, the difference of the scores is rows·W·T·W·…·W·(x' − x), with diagonal
        T; the product of the matrices in front is enclosed from the left, one by one. ∎
        """
        over = bounded(self.layers, box.map(lambda end: end[:, None, :]))
        found = point(np.broadcast_to(self._rows, (len(box.lower), *self._rows.shape)))
        for number in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[number]
            found = bilinear(found, layer.coefficients, np.matmul, len(layer.weights))
            if number:
                arguments = over.arguments[number - 1]
                steady = np.where(arguments.lower >= 0, 1.0, np.where(arguments.upper <= 0, -1.0, 0.0))
                found = through_slopes(found, steady)
        return found

    def score_ends(self, columns: Sequence[Number]) -> tuple[Fraction, Fraction]:
        """Exact bounds of the single score of a record, the closest that are known."""
        values = [Fraction(each) for each in columns]
        *_, closest = enclosures(self.network, values)
        return Fraction(closest.lower[0]), Fraction(closest.upper[0])

    def decided(self, columns: Sequence[Number]) -> int | None:
        """The exact class of a record; None if its scores cannot be told apart."""
        values = [Fraction(each) for each in columns]
        for found in enclosures(self.network, values):
            lower, upper = found.lower, found.upper
            best = max(range(self.classes), key=lambda c: (lower[c], -c))
            others = [c for c in range(self.classes) if c != best]
            if found.is_exact or all(upper[c] < lower[best] for c in others):
                return best
        return None


def read_layers(content: bytes, *, name: str) -> tuple[Network, tuple[ReluLayer, ...]]:
    """A network of affine layers with ReLUs between them. Raises Unread for any other."""
    try:
        network = read_onnx(uncompressed(content, file=name), name=name)
        return network, relu_layers(network)
    except DokimosError as problem:
        reason = str(problem).rstrip(".")
        raise Unread(f"{name} is not a network of affine layers and ReLUs: {reason}") from None


def columns_over(question: LawQuestion, zones: Sequence[Zone]) -> list[Interval]:
    """For each record, with a row for each zone, and an entry for each column: between two numbers."""
    lower = np.array([[rounded_down(each.low) for each in zone.values] for zone in zones])
    upper = np.array([[-rounded_down(-each.high) for each in zone.values] for zone in zones])
    found = []
    for record in question.records:
        low, high = (np.zeros((len(zones), question.layout.width)) for _ in range(2))
        for slot, feature in zip(question.layout.slots, record.features, strict=True):
            number = feature.variable
            if slot.feature.kind is Kind.CHOICE:
                options = [_left(zone, feature) for zone in zones]
                for end, least in ((low, True), (high, False)):
                    rows = [_hot(each, slot.feature.width, least) for each in options]
                    end[:, slot.start : slot.stop] = rows
            elif number is None:
                low[:, slot.start] = rounded_down(feature.constant)
                high[:, slot.start] = -rounded_down(-feature.constant)
            else:
                low[:, slot.start] = lower[:, number]
                high[:, slot.start] = upper[:, number]
        found.append(Interval(low, high))
    return found


def _left(zone: Zone, feature: Quantity) -> frozenset[int]:
    """The values that a choice may still have in a zone."""
    if feature.variable is None:
        return frozenset({int(feature.constant)})
    values = zone.values[feature.variable]
    assert isinstance(values, Options)  # so translation makes the variable of a choice
    return values.left


@cache
def _hot(options: frozenset[int], width: int, least: bool) -> tuple[float, ...]:
    """The least (else the greatest) entries of the columns of a choice, of which these options are left."""
    return tuple(float(each in options and not (least and len(options) > 1)) for each in range(width))


def rounded_down(value: Number) -> float:
    """The number itself if it is a float64, otherwise a float64 below it."""
    if isinstance(value, int) and abs(value) < 2**53:
        return float(value)
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


def least_difference(a: Floats, b: Floats) -> Floats:
    """A lower bound of a − b, entry by entry: exact where the difference is a float64.

    Theorem (Knuth). In float64 with rounding to nearest, a − b = d + e for d = fl(a − b), v = fl(d − a) and
    e = fl(fl(a − fl(d − v)) − fl(b + v)), where nothing overflows.
    """
    difference = a - b
    virtual = difference - a
    error = (a - (difference - virtual)) - (b + virtual)
    return np.where(error >= 0, difference, down(difference))


def hull(first: Interval, second: Interval) -> Interval:
    """The smallest intervals that hold both."""
    return Interval(np.minimum(first.lower, second.lower), np.maximum(first.upper, second.upper))


def products(slopes: Interval, change: Interval) -> Floats:
    """A lower bound of Σ_k slopes_k·change_k, over the last axis, for all that is in the two enclosures.

    Theorem. Each product is at least the least of its four corners, each rounded down, or 0 where a factor
    is 0; a float64 sum of n terms is off by at most n·2^-52·Σ|terms| for n < 2^20, which is more than
    γ_n·Σ|terms| (Higham, 4.2), also as it is computed here.
    """
    corners = []
    for a in (slopes.lower, slopes.upper):
        for b in (change.lower, change.upper):
            corners.append(np.where((a == 0) | (b == 0), 0.0, down(a * b)))
    least = np.minimum.reduce(corners)
    size = np.abs(least).sum(axis=-1)
    total = down(least.sum(axis=-1) - up(least.shape[-1] * 2.0**-52 * size))
    total = np.where(size == 0, 0.0, total)
    return np.where(np.isfinite(total), total, -np.inf)


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

    (3) Of single scores, let the law forbid that Σ f_r·score r + q is at most 0 (below 0). It is not where
    the bounds of the scores, q and Σ|f_r|·slack leave it above 0 (from 0 on); nor where this is so of
    f·(score r − score s), bounded by the slopes of the score between two records.

    (4) Over the reals, a zone of one case is decided by the exact scores of its records.
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
            boxes = columns_over(question, inner)
            bad, slopes = self._possible(inner, boxes)
            shown: Mask = np.array(~bad.any(axis=1))
            for row in np.flatnonzero(~shown).tolist():
                shown[row] = self._holds_at_point(inner[row])
            done[left] = shown
            weight[left] = self._weights(inner, boxes, slopes)
        return Examined(done, weight)

    def scores(self, rows: Floats) -> Floats:
        """The scores of each row, in floats."""
        return self.reach.scores(rows)

    def is_exactly_violated(self, case: ExactCase) -> bool:
        """Whether the exact decisions violate the law in a case."""
        return exactly_violated(self.question, self.reach, case) is True

    @property
    def decided(self) -> Callable[[Sequence[Number]], Any] | None:
        """What gives the exact decision on a record; None where the decisions are numbers."""
        labels = self.reach.labels or range(self.reach.classes)

        def decided(columns: Sequence[Number]) -> Any:
            found = self.reach.decided(columns)
            return None if found is None else labels[found]

        return None if self.question.is_of_numbers else decided

    @cached_property
    def _is_real(self) -> bool:
        return not self.slack.any()

    def _possible(self, zones: Sequence[Zone], boxes: Sequence[Interval]) -> tuple[Mask, Interval]:
        """For each zone and each forbidden combination, whether it is possible; and the slopes."""
        if self.question.is_of_numbers:
            return self._scores_possible(zones, boxes)
        can = [self._classes(self.reach.leads(box)) for box in boxes]
        forbidden = [each for each in self.question.forbidden if isinstance(each, ForbiddenDecisions)]
        open_ones = [
            np.array([each.where.over(zone) is not False for zone in zones], dtype=np.bool_)
            & np.logical_and.reduce([can[r][:, c] for r, c in enumerate(each.classes)])
            for each in forbidden
        ]
        none: Mask = np.zeros((len(zones), 0), dtype=np.bool_)  # of a law that nothing violates
        bad: Mask = np.stack(open_ones, axis=1) if open_ones else none
        slopes = self.reach.slopes(_whole(boxes))
        place = {pair: number for number, pair in enumerate(self.reach.pairs)}
        for r, s in combinations(range(len(boxes)), 2):
            exact = slopes if len(boxes) == 2 else self.reach.slopes(hull(boxes[r], boxes[s]))
            gains = products(exact, self._change(r, s, zones, boxes).map(lambda end: end[:, None, :]))
            for number, each in enumerate(forbidden):
                a, b = each.classes[r], each.classes[s]
                if a != b:
                    least = up(2 * up(self.slack[a] + self.slack[b]))
                    gain = gains[:, place[a, b]]
                    bad[:, number] &= ~(gain >= 0 if self._is_real else gain > least)
        return bad, slopes

    def _scores_possible(self, zones: Sequence[Zone], boxes: Sequence[Interval]) -> tuple[Mask, Interval]:
        """The same of forbidden comparisons of single scores, by (3)."""
        ends = [self.reach.leads(box) for box in boxes]
        slopes = self.reach.slopes(_whole(boxes))
        gains = {
            (r, s): products(slopes, self._change(r, s, zones, boxes).map(lambda end: end[:, None, :]))
            for r, s in combinations(range(len(boxes)), 2)
        }
        found = [
            np.array([each.where.over(zone) is not False for zone in zones], dtype=np.bool_)
            & np.logical_and.reduce([self._can_hold(part, zones, ends, gains) for part in each.parts])
            for each in self.question.forbidden
            if isinstance(each, ForbiddenScores)
        ]
        return np.stack(found, axis=1), slopes

    def _can_hold(
        self,
        part: ScoreComparison,
        zones: Sequence[Zone],
        ends: Sequence[Floats],
        gains: Mapping[tuple[int, int], Floats],
    ) -> Mask:
        """In which zones a comparison of scores may hold; `gains[r, s]` bound ±(score s − score r)."""
        if sum(abs(factor) for _, _, factor in part.scores) > _MOST_FACTORS:
            raise Refusal("the factors of the scores in the law are too large")
        least = np.zeros(len(zones))
        for r, _, factor in part.scores:
            least = down(least + down(abs(factor) * ends[r][:, int(factor < 0)]))
        if len(part.scores) == 2 and part.scores[0][2] + part.scores[1][2] == 0:
            (r, _, factor), (s, _, _) = sorted(part.scores)
            gain = gains[r, s][:, int(factor > 0)]
            least = np.maximum(least, gain if abs(factor) == 1 else down(abs(factor) * gain))
        for _, _, factor in part.scores:
            least = down(least - up(abs(factor) * self.slack[0])) if self.slack.any() else least
        rest = np.array([rounded_down(part.quantity.ends(zone)[0]) for zone in zones])
        least = least_difference(least, -rest)
        return ~(least >= 0 if part.sign is Sign.BELOW else least > 0)

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
    if question.is_of_numbers:
        ends = [reach.score_ends(question.exact_columns(each, case)) for each in question.records]
        limits = [each for each in question.forbidden if isinstance(each, ForbiddenScores)]
        answers = [_exactly_holds(each, case, ends) for each in limits]
        return True if True in answers else None if None in answers else False
    classes = []
    for record in question.records:
        decided = reach.decided(question.exact_columns(record, case))
        if decided is None:
            return None
        classes.append(decided)
    return question.is_violated(case, classes)


def _exactly_holds(
    limit: ForbiddenScores, case: Sequence[Number], ends: Sequence[tuple[Fraction, Fraction]]
) -> bool | None:
    """Whether all comparisons of scores between these ends hold in a case; None if that is not known."""
    if not limit.where.holds(case):
        return False
    answers: list[bool | None] = []
    for part in limit.parts:
        low = high = Fraction(part.quantity.at(case))
        for record, _, factor in part.scores:
            both = factor * ends[record][0], factor * ends[record][1]
            low, high = low + min(both), high + max(both)
        first, last = part.sign.holds(low), part.sign.holds(high)
        answers.append(first if first == last else None)
    return False if False in answers else None if None in answers else True


def through_slopes(factors: Interval, steady: Floats) -> Interval:
    """Coefficients of differences of ReLUs turned into those of the differences of their arguments.

    Theorem. max(0, e') − max(0, e) = t·(e' − e) with t = 1 where both are on (`steady` > 0), t = 0 where
    both are off (`steady` < 0), and a t in [0, 1] always, for max(0, ·) is nondecreasing and grows by no
    more than its argument. So a coefficient c becomes c, 0, or a number between 0 and c.
    """
    on, off = steady > 0, steady < 0
    lower = np.where(on, factors.lower, np.where(off, 0.0, np.minimum(factors.lower, 0.0)))
    upper = np.where(on, factors.upper, np.where(off, 0.0, np.maximum(factors.upper, 0.0)))
    return Interval(lower, upper)
