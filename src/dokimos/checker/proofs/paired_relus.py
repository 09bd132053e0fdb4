"""A box cut into pieces that ReLUs bounded in pairs decide: for properties of copies of a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dokimos.checker.base import PLACE, CertificateKind, Choice, Natural, Problem, Proven, read_data
from dokimos.checker.lemmas.relu_layers import (
    BoundedLayers,
    HalfSpaces,
    ReluLayer,
    bounded,
    half_spaces,
    linear_slacks,
    relu_layers,
    rows_of,
)
from dokimos.checker.proofs.enclosure import MOST_PIECES, pieces, positive, some
from dokimos.core.errors import InvalidProof, UnreadableFile
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    add,
    bilinear,
    down,
    multiply,
    point,
    total,
    up,
)
from dokimos.networks.semantics.rounding import rounding_bounds
from dokimos.suites.instance import Label
from dokimos.suites.vnnlib.model import Box, Conjunction, Linear, Terms

# Layers whose ReLUs are bounded in pairs: not two ReLUs each by itself, but one, and their difference


Pair = tuple[int, int]


@dataclass(frozen=True)
class PairedLayers:
    """The layers of a network, and the same layers with differences in place of some ReLUs.

    `bases[n][q]` is the ReLU p that ReLU q of layer n is paired with, −1 for one that stands by itself. In
    `layers`, a q that has a base p stands for the difference of the two: its argument for e_q − e_p, and
    its value for max(0, e_q) − max(0, e_p).
    """

    plain: tuple[ReluLayer, ...]
    layers: tuple[ReluLayer, ...]
    bases: tuple[tuple[int, ...], ...]

    def over(self, box: Interval, sides: HalfSpaces | None = None) -> PairBounds:
        """The layers over many boxes (see `BoundedLayers`), each layer bounded by those before.

        A ReLU by itself is bounded as in the layers of the network, a difference e_q − e_p by the layers
        with differences, and by what the bounds of e_q and e_p say of it.
        """
        plain = bounded(self.plain, box, sides)
        known = PairBounds(self.layers[:1], box, (), plain, (), (), sides=sides)
        for number, (bases, own) in enumerate(zip(self.bases, plain.arguments, strict=True)):
            taken = [q for q, p in enumerate(bases) if p >= 0]
            first = [bases[q] for q in taken]
            rows = np.eye(len(bases))[taken]
            found = known.lines(point(np.vstack([rows, -rows])), known.silent(1))[0]
            least, most = (end.reshape(*box.shape[:-1], len(taken)) for end in np.split(found, 2, axis=-1))
            lower, upper = own.lower.copy(), own.upper.copy()
            lower[..., taken] = np.maximum(least, down(own.lower[..., taken] - own.upper[..., first]))
            upper[..., taken] = np.minimum(-most, up(own.upper[..., taken] - own.lower[..., first]))
            low, high = (np.stack([end[..., taken], end[..., first]]) for end in (own.lower, own.upper))
            steady = np.zeros(own.shape)
            steady[..., taken] = np.where(low.min(0) >= 0, 1.0, np.where(high.max(0) <= 0, -1.0, 0.0))
            known = PairBounds(
                self.layers[: number + 2],
                box,
                (*known.arguments, Interval(lower, upper)),
                plain,
                (*known.differs, np.array([p >= 0 for p in bases], dtype=np.bool_)),
                (*known.steady, steady),
                sides=sides,
            )
        return known


@dataclass(frozen=True)
class PairBounds(BoundedLayers):
    """Layers with differences over boxes, and the `plain` ones, which have the same outputs.

    `differs` says which units are differences; `steady` is 1 where both ReLUs of one are on, −1 where both
    are off, and 0 where that is not known.
    """

    plain: BoundedLayers
    differs: tuple[np.ndarray[tuple[int, ...], np.dtype[np.bool_]], ...]
    steady: tuple[Floats, ...]

    def lower_bounds(self, rows: Interval, cases: Floats, inputs: Interval | None = None) -> Floats:
        """See BoundedLayers: the best of the bounds without differences, by lines, and by slopes."""
        usual = self.plain.lower_bounds(rows, cases, inputs)
        by_lines = np.maximum(usual, super().lower_bounds(rows, cases, inputs))
        return np.maximum(by_lines, self.slope_bounds(rows, inputs))

    @np.errstate(all="ignore")
    def slope_bounds(self, rows: Interval, inputs: Interval | None = None) -> Floats:
        """Bounds as `lower_bounds` gives them, by the slopes of the differences.

        Theorem. A difference of ReLUs is t times that of their arguments (`through_slopes`). So rows·(the
        output) is a product of matrices with such t between them, times the inputs, plus what biases,
        noise and the ReLUs that stand by themselves add in each layer; all of it is enclosed, from the last
        layer to the first. Where the inputs of two copies are the same but for a change, only the change is
        left, and a slope that is never negative shows that more of it does not lower the row.
        """
        factors, constant = rows, point(0.0)
        for number in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[number]
            size, noise = len(layer.biases), layer.noise
            ends = down(layer.biases - noise), up(layer.biases + noise)
            shifts = Interval(*(np.where(noise > 0, end, layer.biases)[:, None] for end in ends))
            added = bilinear(factors, shifts, np.matmul, size)
            constant = add(constant, added.map(lambda end: end[..., 0]))
            factors = bilinear(factors, point(layer.weights), np.matmul, size)
            if number:
                differs = self.differs[number - 1]
                values = self.arguments[number - 1].map(lambda end: np.maximum(end, 0.0))
                alone = multiply(factors, values)
                alone = Interval(np.where(differs, 0.0, alone.lower), np.where(differs, 0.0, alone.upper))
                constant = add(constant, total(alone, (-1,), keepdims=False))
                turned = through_slopes(factors, self.steady[number - 1])
                factors = Interval(
                    np.where(differs, turned.lower, 0.0), np.where(differs, turned.upper, 0.0)
                )
        factors = factors if inputs is None else add(factors, inputs)
        found = add(constant, total(multiply(factors, self.box), (-1,), keepdims=False)).lower
        return np.where(np.isfinite(found), found, -np.inf)

    def read(self, number: int) -> Floats:
        """What a layer reads is at most this large; a difference is at most as large as its argument."""
        usual = super().read(number)
        if not number:
            return usual
        return np.where(self.differs[number - 1], self.arguments[number - 1].magnitude, usual)

    def through(self, number: int, factors: Floats, case: Floats) -> tuple[Floats, Floats]:
        """See BoundedLayers; differences by `through_difference`."""
        turned, shift = super().through(number, factors, case)
        differs = self.differs[number - 1]
        other = through_difference(factors, self.arguments[number - 1], self.steady[number - 1])
        return np.where(differs, other[0], turned), np.where(differs, other[1], shift)


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


def through_difference(factors: Floats, arguments: Interval, steady: Floats) -> tuple[Floats, Floats]:
    """Coefficients of differences turned into those of their arguments, and what is added for each.

    Theorem. Let w = max(0, e') − max(0, e), d = e' − e in [l, u]. Then w = t·d with the t of
    `through_slopes`. So c·w >= q·d + min over t in {0, 1} and d in {l, u} of (c·t − q)·d, for every q: the
    left side − q·d is affine in t and in d, so that its least value is at a corner.

    Chosen is the q of the line through the corners, which makes two of them equal: for c >= 0 the slope
    −l/(u − l), for c < 0 the slope u/(u − l), each clipped to [0, 1].
    """
    low, high = arguments.lower, arguments.upper
    on, off = steady > 0, steady < 0
    with np.errstate(all="ignore"):
        below, above = (np.nan_to_num(np.clip(end / (high - low), 0.0, 1.0)) for end in (-low, high))
    slope = np.where(on, 1.0, np.where(off, 0.0, np.where(factors < 0, above, below)))
    turned = factors * slope
    rest = factors - turned
    low, high = (np.where(on | off, 0.0, end) for end in (low, high))
    corners = (-turned * low, -turned * high, rest * low, rest * high)
    return turned, np.minimum(np.minimum.reduce(corners), 0.0)


def paired(layers: Sequence[ReluLayer], pairs: Sequence[Pair]) -> PairedLayers:
    """The layers with ReLUs in pairs (p, q), numbered layer after layer; q is bounded as a difference.

    Theorem. Let u_q = e_q − e_p and w_q = v_q − v_p for the pairs of a layer, u = e and w = v for all other
    ReLUs. If e = W·v + b, where v are the ReLUs of the layer before, then u = A·e with A taking row p from
    row q, and v = B·w with B adding w_p to w_q; so u = (A·W·B)·w + A·b, whatever the pairs are. With noise
    |n| on e, that on u_q is at most |n_q| + |n_p|. The last layer has no ReLUs: its rows stay as they are.

    Raises InvalidProof where a pair is of two layers, a ReLU is in pairs in both places or twice in the
    second, or an entry of A·W·B is no float64 number.
    """
    sizes = [len(layer.biases) for layer in layers[:-1]]
    bases = _bases(sizes, pairs)
    made = []
    before: tuple[int, ...] = ()
    for number, layer in enumerate(layers):
        weights, biases, noise = layer.weights.copy(), layer.biases.copy(), layer.noise.copy()
        own = bases[number] if number < len(bases) else ()
        for q, p in enumerate(own):
            if p >= 0:
                weights[q] = _exact(layer.weights[q], -layer.weights[p])
                biases[q], lost = _sum(layer.biases[q], -layer.biases[p])
                noise[q] = up(up(layer.noise[q] + layer.noise[p]) + np.abs(lost))
        for q, p in enumerate(before):
            if p >= 0:
                weights[:, p] = _exact(weights[:, p], weights[:, q])
        made.append(ReluLayer(weights, biases, noise))
        before = own
    return PairedLayers(tuple(layers), tuple(made), bases)


def _bases(sizes: Sequence[int], pairs: Sequence[Pair]) -> tuple[tuple[int, ...], ...]:
    starts = list(accumulate(sizes, initial=0))
    base: dict[int, int] = {}
    for p, q in pairs:
        if not (0 <= p < starts[-1] and 0 <= q < starts[-1]):
            raise InvalidProof(f"a pair names a ReLU beyond the network's {starts[-1]}")
        if q in base:
            raise InvalidProof(f"ReLU {q} is the second of two pairs")
        base[q] = p
    if any(p in base for p in base.values()):
        raise InvalidProof("a ReLU is the first of one pair and the second of another")
    found = []
    for start, end in pairwise(starts):
        for q in range(start, end):
            if q in base and not start <= base[q] < end:
                raise InvalidProof(f"the ReLUs {base[q]} and {q} are of two layers")
        found.append(tuple(base[q] - start if q in base else -1 for q in range(start, end)))
    return tuple(found)


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """fl(a + b), and what it is off by (Knuth), which is exact where nothing overflows."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)


def _exact(a: Floats, b: Floats) -> Floats:
    total, lost = _sum(a, b)
    if lost.any() or not np.isfinite(total).all():
        raise InvalidProof("a difference of weights of a pair is no float64 number")
    return total


#: More sums of constraints than any proof needs.
MOST_SUMS = 1000
#: More constraints than a conjunction needs for half-spaces.
MOST_USED = 100

Weights = tuple[Fraction, ...]


class PairedRelusData(Struct, frozen=True, forbid_unknown_fields=True):
    """Pairs of ReLUs; for each conjunction the coordinates halved, in preorder, −1 for a leaf; and sums.

    For each conjunction also the constraints that are `used` for half-spaces, and by how much they may
    fail, `slack`; neither where none is used.
    """

    pairs: tuple[tuple[Natural, Natural], ...]
    trees: tuple[tuple[Choice, ...], ...]
    sums: tuple[tuple[Weights, ...], ...]
    used: tuple[tuple[Natural, ...], ...] = ()
    slack: Fraction = Fraction(0)


class PairedRelus(CertificateKind):
    """`unsat` for affine layers with ReLUs between them, above all for several copies of a network.

    Theorem. (i) As in `enclosure`, the leaves of a tree of halvings cover a box. (ii) Where all left sides
    − bounds of a conjunction are < m, so is their sum with weights >= 0 that add up to 1; so where such a
    sum is >= m > 0, one of the constraints fails by m at least, and the conjunction does not hold. (iii) A
    linear function of the outputs is bounded over a leaf from below as `BoundedLayers.lower_bounds` states,
    for layers in which some ReLUs are replaced by their differences from others (`paired`), which changes
    no output; differences are bounded as `through_difference` and `PairBounds.slope_bounds` state. If on
    every leaf a constraint or a sum is at least m > 0, then the conjunction fails by m at every input.
    (iv) An input at which a constraint fails by s at least needs no bound to fail by s. All others satisfy
    left side <= bound + s, so that they are in a half-space (`half_spaces`): for the constraints that the
    data calls `used`, with s = `slack` > 0, the bounds of (iii) are those over the leaf in these
    half-spaces, and the conjunction fails by the lesser of m and s.

    The data names the pairs: of two copies of a network, each ReLU of the one with that of the other. A law
    such as "more of this feature does not lower the class" forbids that the one copy decides a and the
    other b: a sum of two constraints is the difference of score a − score b between the copies, which the
    bounds of the differences tell about. Where the other copy reads x + d, with x and d in a box and x + d
    <= u as a constraint, using this keeps the other copy in its domain. Any pairs, trees and sums are
    sound, and any constraints may be used.

    In float32 each layer has its rounding as noise, as in `enclosure`; what holds for all noise holds
    without, so that this comes first.
    """

    name: ClassVar[str] = "paired-relus"
    proves: ClassVar[Label] = Label.UNSAT

    def prove(self, problem: Problem, data: Mapping[str, Any]) -> Proven:
        """Bound every conjunction, and the sums, on the pieces of its box."""
        given = read_data(data, PairedRelusData)
        asked = problem.property.questions()
        if not asked:
            raise InvalidProof("the property names no unsafe output on a non-empty box: nothing to prove")
        if not len(given.trees) == len(given.sums) == len(asked):
            raise UnreadableFile(PLACE, f"'trees' and 'sums' must be lists of {len(asked)} each")
        if given.used and len(given.used) != len(asked):
            raise UnreadableFile(PLACE, f"'used' must be a list of {len(asked)}, or left out")
        if any(given.used) and given.slack <= 0:
            raise InvalidProof("'slack' is not above 0")
        if sum(len(tree) for tree in given.trees) > 2 * MOST_PIECES:
            raise InvalidProof(f"the proof has more than {MOST_PIECES} pieces")
        network = problem.network

        @cache
        def layers(box: Box | None) -> PairedLayers:
            if box is None:
                return paired(relu_layers(network), given.pairs)
            rounding = rounding_bounds(network, box.lower, box.upper, ulps=problem.ulps)
            return paired(relu_layers(network, rounding), given.pairs)

        def margin(*, float32: bool) -> Fraction:
            found = [given.slack] if any(given.used) else []
            each = zip(given.trees, given.sums, given.used or [()] * len(asked), asked, strict=True)
            for tree, sums, used, (box, conjunction) in each:
                goals = (*some(conjunction), *summed(conjunction, sums))
                known = loosened(conjunction, used, given.slack)
                over = bounding(layers(box if float32 else None), known)
                found += map(positive, linear_slacks(over, goals, pieces(box, tree)))
            return min(found)

        both = problem.in_float32(lambda: margin(float32=True))
        return Proven(real=margin(float32=False) if both is None else both, float32=both)


def bounding(layers: PairedLayers, known: Conjunction) -> Callable[[Interval], PairBounds]:
    """The layers over boxes, at the points that satisfy these constraints."""

    def over(box: Interval) -> PairBounds:
        if not known:
            return layers.over(box)
        plain = bounded(layers.plain, box)
        outputs = rows_of([each.outputs for each in known], len(plain.layers[-1].biases))
        inputs = rows_of([each.inputs for each in known], box.shape[-1])
        lowest, factors = plain.lines(outputs, plain.silent(1), inputs)
        return layers.over(box, half_spaces(lowest, factors, [each.bound for each in known], box))

    return over


def loosened(conjunction: Conjunction, used: Sequence[int], slack: Fraction) -> Conjunction:
    """These constraints of a conjunction, each with `slack` more. Raises InvalidProof if one is missing."""
    if len(used) > MOST_USED:
        raise InvalidProof(f"more than {MOST_USED} constraints of a conjunction are used")
    if any(number >= len(conjunction) for number in used):
        raise InvalidProof(f"a conjunction of {len(conjunction)} constraints has no number {max(used)}")
    return tuple(replace(conjunction[number], bound=conjunction[number].bound + slack) for number in used)


def summed(conjunction: Conjunction, sums: Sequence[Weights]) -> Conjunction:
    """For each list of weights the sum of the constraints with these weights.

    Raises UnreadableFile where there is not one weight for each constraint, InvalidProof where one is
    negative or they do not add up to 1.
    """
    if len(sums) > MOST_SUMS:
        raise InvalidProof(f"a conjunction has more than {MOST_SUMS} sums")
    found = []
    for weights in sums:
        if len(weights) != len(conjunction):
            raise UnreadableFile(PLACE, f"a sum needs {len(conjunction)} weights, one for each constraint")
        if any(weight < 0 for weight in weights) or sum(weights) != 1:
            raise InvalidProof("the weights of a sum are negative, or do not add up to 1")
        each = list(zip(weights, conjunction, strict=True))
        found.append(
            Linear(
                _added([(weight, one.inputs) for weight, one in each]),
                _added([(weight, one.outputs) for weight, one in each]),
                sum((weight * one.bound for weight, one in each), Fraction(0)),
            )
        )
    return tuple(found)


def _added(parts: Sequence[tuple[Fraction, Terms]]) -> Terms:
    total: dict[int, Fraction] = {}
    for weight, terms in parts:
        for k, factor in terms:
            total[k] = total.get(k, Fraction(0)) + weight * factor
    return tuple((k, factor) for k, factor in sorted(total.items()) if factor)
