"""A ReLU network over records of a layout: its scores, and their slopes, over many zones at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import permutations

import numpy as np

from dokimos.checker.lemmas.relu_layers import ReluLayer, bounded, relu_layers
from dokimos.checker.lemmas.relu_pairs import through_slopes
from dokimos.core.errors import DokimosError, InputError
from dokimos.core.gzipped import uncompressed
from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.proving.expressions import Refusal
from dokimos.laws.proving.question import LawQuestion, PredictedRecord
from dokimos.laws.proving.terms import Quantity
from dokimos.laws.proving.zones import Number, Options, Zone
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import enclosures
from dokimos.networks.semantics.outward import Floats, Interval, bilinear, down, point, up
from dokimos.networks.semantics.rounding import rounding_bounds

#: Not all integers beyond this are float32 numbers.
_WHOLE_FLOAT32 = 2**24


class NetworkReach:
    """A network of affine layers with ReLUs between them that takes records of a layout, column by column.

    The decision is the first of the largest scores. Any other network is refused.
    """

    def __init__(self, content: bytes, layout: Layout, *, name: str) -> None:
        self.layout = layout
        self.network, self.layers = read_layers(content, name=name)
        if self.network.input_size != layout.width:
            raise Refusal(
                f"the network takes {self.network.input_size} inputs, and records have {layout.width} "
                "columns; give a network of this domain"
            )
        if self.classes < 2:
            raise Refusal(
                "the network gives one number, not a score for each class; what `decide` makes of it can "
                "be tested, not proven"
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
        """For each pair (a, b) the factors of score a − score b."""
        one = np.eye(self.classes)
        return np.stack([one[a] - one[b] for a, b in self.pairs])

    @cached_property
    def rounding(self) -> Floats | None:
        """How far each score of a float32 run may be from the real one, for all records of the layout.

        None if nothing is known: a feature without a range, integers that are not float32 numbers, scores
        that may overflow.
        """
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
        """For each box, and each pair (a, b), a lower bound of score a − score b over the box."""
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
            weights = self.layers[number].weights
            found = bilinear(found, point(weights), np.matmul, len(weights))
            if number:
                arguments = over.arguments[number - 1]
                steady = np.where(arguments.lower >= 0, 1.0, np.where(arguments.upper <= 0, -1.0, 0.0))
                found = through_slopes(found, steady)
        return found

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
    """A network of affine layers with ReLUs between them. Raises Refusal for any other."""
    try:
        network = read_onnx(uncompressed(content, file=name), name=name)
        return network, relu_layers(network)
    except DokimosError as problem:
        reason = str(problem).rstrip(".")
        raise Refusal(f"{name} is not a network of affine layers and ReLUs: {reason}") from None


@dataclass(frozen=True)
class RecordColumns:
    """The columns of records of a question, over many zones at once: each between two numbers."""

    question: LawQuestion

    def over(self, zones: Sequence[Zone]) -> list[Interval]:
        """For each record, an array with a row for each zone and an entry for each column."""
        lower = np.array([[rounded_down(each.low) for each in zone.values] for zone in zones])
        upper = np.array([[-rounded_down(-each.high) for each in zone.values] for zone in zones])
        return [self._of(record, zones, Interval(lower, upper)) for record in self.question.records]

    def _of(self, record: PredictedRecord, zones: Sequence[Zone], variables: Interval) -> Interval:
        layout = self.question.layout
        low, high = (np.zeros((len(zones), layout.width)) for _ in range(2))
        for slot, feature in zip(layout.slots, record.features, strict=True):
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
                low[:, slot.start] = variables.lower[:, number]
                high[:, slot.start] = variables.upper[:, number]
        return Interval(low, high)


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
