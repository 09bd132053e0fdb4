"""Rigorous linear bounds on ReLU layers, for many cases of decided ReLUs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import islice
from math import isfinite
from typing import ClassVar

import numpy as np

from dokimos.checker.lemmas.constraints import (
    Leaf,
    affine_layer,
    box_floats,
    in_a_row,
    outward,
    require_relus,
)
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import (
    Floats,
    Interval,
    Rounded,
    dot_rounding,
    down,
    gamma,
    point,
    safe,
    safe_product,
    up,
)
from dokimos.networks.semantics.piecewise_linear import AffineExpression, PiecewiseLinear, piecewise_linear
from dokimos.suites.vnnlib.model import Box, Conjunction, Terms

# One ReLU in a linear bound, and what is lost by rounding in float64


#: What the last rounding of a float64 sum loses, relative to the sum; and more than all underflows lose.
ROUNDED, FLUSHED = 2.0**-52, 2.0**-900
#: The phase of a ReLU about which a case says nothing, and the corresponding multiplier.
UNDECIDED = np.zeros(1)


def at_most(total: Floats, terms: int) -> Floats:
    """An upper bound, up to underflow, of a sum of `terms` products >= 0 that was computed as `total`."""
    return total * (1.0 + 2.0 * gamma(terms + 2))


def loss_of_sum(terms: Floats) -> Floats:
    """What a sum of n terms, each computed in at most two roundings, may be off by.

    Theorem. Each term is within γ_3 of the one meant, relative to itself (the third rounding for which of
    two is the smaller); adding up loses γ_{n−1} Σ|terms|, and γ_{n−1} + γ_3 <= γ_{n+2}.
    """
    count = terms.shape[-1]
    return np.asarray(gamma(count + 2) * at_most(np.abs(terms).sum(-1), count) + FLUSHED)


def through_relu(
    factors: Floats,
    arguments: Interval,
    slopes: Floats,
    phases: Floats = UNDECIDED,
    multipliers: Floats = UNDECIDED,
) -> tuple[Floats, Floats]:
    """Coefficients of ReLUs turned into coefficients of their arguments, and what is added for each.

    The theorem stands at `BoundedLayers.lines`.
    """
    low, high = arguments.lower, arguments.upper
    silent = phases == 0
    on, off = (phases > 0) | (silent & (low >= 0)), (phases < 0) | (silent & (low < 0) & (high <= 0))
    chord = np.nan_to_num(np.clip(high / (high - low), 0.0, 1.0))
    if_positive, if_negative = (np.where(on, 1.0, np.where(off, 0.0, each)) for each in (slopes, chord))
    turned = factors * np.where(factors < 0, if_negative, if_positive) - phases * multipliers
    low, high = (np.where(on | off, 0.0, end) for end in (low, high))
    shift = np.minimum(-turned * low, (factors - turned) * high)
    return turned, np.minimum(shift, 0.0)


# Boxes cut by half-spaces: bounds of linear functions where inequalities hold besides those of the box


@dataclass(frozen=True)
class HalfSpaces:
    """The x with factors·x <= limits: [half-spaces, inputs] and [half-spaces], or more axes for boxes."""

    factors: Floats
    limits: Floats

    @np.errstate(all="ignore")
    def added(self, rows: Floats, box: Interval) -> tuple[Floats, Floats, Floats]:
        """Other rows, shifts and losses: rows·x >= rows'·x + shift − lost for x in box and half-spaces.

        Theorem. Where f·x <= c, r·x >= r·x + λ·(f·x − c) = (r + λ·f)·x − λ·c for every λ >= 0; so for one
        half-space after the other. In float64, fl(r + fl(λ·f)) is off by at most 2^-52·(|r| + |λ·f|),
        times |x|, and each of the other roundings by 2^-53 of its result.
        """
        shift, lost = (np.zeros(rows.shape[:-1]) for _ in range(2))
        size = box.magnitude
        for number in range(self.factors.shape[-2]):
            side, limit = self.factors[..., number, None, :], self.limits[..., number, None]
            share = _best_share(rows, side, limit, box)
            more = share[..., None] * side
            loss = 2 * ROUNDED * (np.abs(rows) + np.abs(more))
            lost = lost + at_most((loss * size).sum(-1), loss.shape[-1])
            rows = rows + more
            moved = np.where(share > 0, share * limit, 0.0)
            shift = shift - moved
            lost = lost + ROUNDED * (np.abs(moved) + np.abs(shift)) + FLUSHED * (1.0 + size.sum(-1))
        return rows, shift, lost


def _best_share(rows: Floats, side: Floats, limit: Floats, box: Interval) -> Floats:
    """For each row a λ >= 0, any of which is sound: where the bound is largest, as a knapsack is filled.

    From the corner of the box at which f·x is least, each input can move one way. Moving takes |f|·width of
    the room c − f·corner; worth most is what has the largest −r/f, and λ is this where the room ends.
    """
    corner = np.where(side > 0, box.lower, box.upper)
    room = limit - (side * corner).sum(-1)
    worth = np.nan_to_num(np.where(side != 0, np.maximum(-rows / side, 0.0), 0.0), posinf=0.0)
    order = np.argsort(-worth, axis=-1, kind="stable")
    takes = np.broadcast_to(np.abs(side) * (box.upper - box.lower), worth.shape)
    over = np.cumsum(np.take_along_axis(takes, order, -1), -1) > room[..., None]
    last = np.take_along_axis(order, over.argmax(-1)[..., None], -1)
    return np.where(over.any(-1), np.take_along_axis(worth, last, -1)[..., 0], 0.0)


@np.errstate(all="ignore")
def half_spaces(lowest: Floats, factors: Floats, bounds: Sequence[Fraction], box: Interval) -> HalfSpaces:
    """Half-spaces that hold all x of a box with g(x) <= bound, for functions g above affine ones.

    Theorem. Let g(x) >= lowest + f·x − min f·x, the minimum taken over the box, as `BoundedLayers.lines`
    states it. Then g(x) <= b implies f·x <= b − lowest + min f·x, which is rounded up here.
    """
    corner = np.minimum(factors * box.lower, factors * box.upper)
    least, most = corner.sum(-1), outward(bounds).upper
    lost = loss_of_sum(corner) + 2 * ROUNDED * (np.abs(least) + np.abs(lowest) + np.abs(most)) + FLUSHED
    limits = up((most - lowest + least) + safe(lost))
    return HalfSpaces(factors, np.where(np.isnan(limits), np.inf, limits))


#: How many leaves are bounded at once.
BATCH = 1024
#: A layer with more weights than this is refused.
MOST_WEIGHTS = 1 << 24
#: A network in which more values than this skip a layer is refused.
MOST_CARRIED = 200

Places = tuple[tuple[int, float], ...]
"""What a variable is among the values of a layer: the sum of values at these places, with these signs."""


@dataclass(frozen=True)
class ReluLayer:
    """e = weights·v + biases + n with |n| <= noise: an affine layer, and its float32 rounding."""

    weights: Floats
    biases: Floats
    noise: Floats


def relu_layers(network: Network, rounding: Mapping[str, Rounded] | None = None) -> tuple[ReluLayer, ...]:
    """The affine layers of a network, with ReLUs between them, first and last affine.

    With `rounding` (bounds of every tensor over a box) each layer has the noise that makes every float32
    run a run of these layers, as in `piecewise_linear`. Between two layers of ReLUs there may be any affine
    operators: they are composed exactly, and the error of their constant in float64 is noise. Networks side
    by side are one, and a few values may skip layers (`_layers_of`).

    Raises InvalidProof if many values skip a layer, if a coefficient is not a float64 number, or if float32
    may overflow.
    """
    ops = [node.op for node in network.nodes]
    if not in_a_row(network) or ops != (["Gemm", "Relu"] * len(ops))[: len(ops)] or len(ops) % 2 == 0:
        try:
            return _layers_of(piecewise_linear(network, rounding=rounding))
        except UnsupportedOp as error:
            raise InvalidProof(
                f"the network is not affine layers with ReLUs between them: {error}"
            ) from None
    layers = []
    for node in network.nodes[::2]:
        weights, biases = affine_layer(network, node)
        noise = np.zeros(len(biases))
        if rounding is not None:
            sizes = rounding[node.inputs[0]].magnitude.reshape(-1)
            count = weights.shape[1]
            reach = safe_product(sizes, np.abs(weights).T, np.matmul, count)
            noise = dot_rounding(count + 1, safe(reach + np.abs(biases)))
            if not np.isfinite(noise).all():
                raise InvalidProof("float32 evaluation may overflow on this box")
        layers.append(ReluLayer(weights, biases, noise))
    return tuple(layers)


def _layers_of(form: PiecewiseLinear) -> tuple[ReluLayer, ...]:
    """The expressions as layers: a ReLU stands in the layer behind the last one that it reads.

    What is read further on is carried through the layers between, which changes nothing: a ReLU as itself,
    v = max(0, v), and an input as x = max(0, x) − max(0, −x). These stand behind the ReLUs of a layer. A
    ReLU that reads nothing stands in the layer of the ReLU before it.
    """
    levels, here = dict.fromkeys(range(form.inputs), 0), 1
    by_level: dict[int, list[int]] = {}
    for number, argument in form.relus.items():
        here = max((levels[v] + 1 for v in argument.terms if v not in form.noise), default=here)
        levels[number] = here
        by_level.setdefault(here, []).append(number)
    kept = [_read_by(form, form.outputs)]
    for level in range(len(by_level), 0, -1):
        earlier = {v for v in kept[0] if levels[v] < level}
        if len(earlier) > MOST_CARRIED:
            raise InvalidProof("the network is not affine layers with ReLUs between them")
        kept.insert(0, earlier | _read_by(form, [form.relus[v] for v in by_level[level]]))
    layers: list[ReluLayer] = []
    places: dict[int, Places] = {v: ((v, 1.0),) for v in range(form.inputs)}
    size = form.inputs
    for level in range(1, len(by_level) + 1):
        own = by_level[level]
        made = _layer(form, [form.relus[v] for v in own], places, size)
        after: dict[int, Places] = {v: ((row, 1.0),) for row, v in enumerate(own)}
        rows: list[tuple[int, float]] = []
        for v in sorted(each for each in kept[level] if levels[each] < level):
            parts = places[v] if level > 1 else ((v, 1.0), (v, -1.0))
            after[v] = tuple((len(own) + len(rows) + k, sign) for k, (_, sign) in enumerate(parts))
            rows += parts if level == 1 else [(place, 1.0) for place, _ in parts]
        layers.append(_with_rows(made, rows))
        places, size = after, len(own) + len(rows)
    return (*layers, _layer(form, form.outputs, places, size))


def _with_rows(layer: ReluLayer, rows: Sequence[tuple[int, float]]) -> ReluLayer:
    """The layer with more rows, each of one factor at a place."""
    more = np.zeros((len(rows), layer.weights.shape[1]))
    for row, (place, factor) in enumerate(rows):
        more[row, place] = factor
    none = np.zeros(len(rows))
    biases, noise = (np.concatenate([each, none]) for each in (layer.biases, layer.noise))
    return ReluLayer(np.concatenate([layer.weights, more]), biases, noise)


def _read_by(form: PiecewiseLinear, expressions: Sequence[AffineExpression]) -> set[int]:
    return {v for each in expressions for v in each.terms if v not in form.noise}


def _layer(
    form: PiecewiseLinear, expressions: Sequence[AffineExpression], read: Mapping[int, Places], size: int
) -> ReluLayer:
    """One layer of expressions in variables, each the sum of signed places among `size`, and in noise."""
    if len(expressions) * size > MOST_WEIGHTS:
        raise InvalidProof(f"a layer has more than {MOST_WEIGHTS} weights")
    weights, noise = np.zeros((len(expressions), size)), []
    constants = outward([each.constant for each in expressions])
    for row, (each, constant) in enumerate(zip(expressions, constants.lower.tolist(), strict=True)):
        factors = {v: c for v, c in each.terms.items() if v not in form.noise}
        values = outward(list(factors.values()))
        if (values.lower != values.upper).any():
            raise InvalidProof("a coefficient of a layer is no float64 number")
        for v, value in zip(factors, values.lower.tolist(), strict=True):
            for place, sign in read[v]:
                weights[row, place] = sign * value
        spread = (abs(c) * form.noise[v] for v, c in each.terms.items() if v in form.noise)
        noise.append(sum(spread, each.constant - Fraction(constant)))
    return ReluLayer(weights, constants.lower, outward(noise).upper)


Cases = Floats
"""Many cases: for each of them, and each ReLU, layer after layer, its phase, its slope and its multiplier.

An array [3, cases, ReLUs]. The phase is 1 where the case says that the ReLU's argument e is >= 0, −1 where
e <= 0, 0 where it says nothing; slopes in [0, 1] and multipliers >= 0 are free choices.
"""


@dataclass(frozen=True)
class BoundedLayers:
    """Layers over a box, with bounds of every ReLU's argument.

    Or over many boxes: then the ends of `box` and of `arguments` have two more axes before their last one,
    the first for the boxes, the second of length 1; and so have the bounds one more, for the boxes. With
    `sides`, all is about the points of the box, or boxes, that are in these half-spaces.
    """

    layers: tuple[ReluLayer, ...]
    box: Interval
    arguments: tuple[Interval, ...]
    sides: HalfSpaces | None = field(default=None, kw_only=True)

    def silent(self, count: int) -> Cases:
        """Cases that decide nothing, with the usual slopes: 1 where a ReLU is mostly on, else 0."""
        usual = [np.where(each.upper > -each.lower, 1.0, 0.0) for each in self.arguments]
        slopes = np.tile(np.concatenate(usual, axis=-1) if usual else np.zeros(0), (count, 1))
        return np.stack([np.zeros_like(slopes), slopes, np.zeros_like(slopes)])

    def cases(self, leaves: Sequence[Leaf]) -> Cases:
        """The leaves as cases. Since any choice is sound, rounding one to float64 invalidates no proof."""
        found = self.silent(len(leaves))
        require_relus(leaves, found.shape[-1])
        for number, leaf in enumerate(leaves):
            for relu, is_on in leaf.phases.items():
                found[0, number, relu] = 1 if is_on else -1
            for part, name in enumerate(("slopes", "multipliers"), 1):
                for relu, value in leaf.choices[name].items():
                    found[part, number, relu] = float(value)
        return found

    def read(self, number: int) -> Floats:
        """How large what a layer reads is at most: the inputs, or the ReLUs of the layer before."""
        return np.maximum(self.arguments[number - 1].upper, 0.0) if number else self.box.magnitude

    def through(self, number: int, factors: Floats, case: Cases) -> tuple[Floats, Floats]:
        """Coefficients of the ReLUs that a layer reads turned into those of their arguments, and shifts."""
        phases, slopes, multipliers = case
        return through_relu(factors, self.arguments[number - 1], slopes, phases, multipliers)

    def lower_bounds(self, rows: Interval, cases: Cases, inputs: Interval | None = None) -> Floats:
        """For each case a lower bound, over the box, of rows·(the output of the last of these layers).

        With `inputs`, of that + inputs·x. The theorem stands at `lines`.
        """
        return self.lines(rows, cases, inputs)[0]

    @np.errstate(all="ignore")
    def lines(self, rows: Interval, cases: Cases, inputs: Interval | None = None) -> tuple[Floats, Floats]:
        """The lower bounds, and the coefficients of the inputs in the affine functions that they are of.

        Theorem. Let g = r + c·v with v = max(0, e), in a case. If the case says e >= 0, then v = e, and
        g >= r + q·e for every q <= c; if it says e <= 0, then v = 0, and g >= r + q·e for every q >= 0. If
        it says nothing, and e is in [l, u]: v = e where l >= 0, and v = 0 where u <= 0; else c >= 0 gives
        g >= r + q·e for 0 <= q <= c, since v >= s·e for s in [0, 1]; and c < 0 gives g >= r + q·e +
        min(−q·l, (c − q)·u) for every q, since c·max(0, e) − q·e is concave, so that its least value on
        [l, u] is at l or u. Going from the last layer to the first leaves an affine function of the inputs
        (and of the noise), whose minimum over the box is at a corner. So at every x of the box, what is
        bounded is at least the bound + coefficients·x − min coefficients·x, the minimum over the box.
        Half-spaces are added to the coefficients before (`HalfSpaces.added`).

        All of this is computed in float64, and `lost` bounds what that may lose. By Higham, Accuracy and
        Stability of Numerical Algorithms, 3.1, |fl(Σ a_i·b_i) − Σ a_i·b_i| <= γ_n Σ|a_i||b_i| + n·2^-1074
        in any order of summation. Coefficients are taken for the numbers that they are: fl(c·W) stands for
        c·W, and where |v| <= m, |fl(c·W)·v − (c·W)·v| <= γ_n |c|·|W|·m + n·2^-1074 Σ m. Every q is as the
        theorem needs it, for rounding is monotone: fl(c·s) lies between 0 and c for s in [0, 1], and
        fl(c − β) <= c for β >= 0. `lost` itself is a sum of fewer than 2^10 terms >= 0, computed to a
        relative 2^-43 each, which `safe` makes up for, and so does FLUSHED for all underflows.
        """
        ends = np.cumsum([each.shape[-1] for each in self.arguments])
        by_layer = np.split(cases, ends, axis=-1)
        factors, unknown = rows.lower, rows.upper - rows.lower
        constant, lost = np.zeros(factors.shape[:-1]), np.zeros(factors.shape[:-1])
        for number in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[number]
            most = self.read(number)
            size = at_most(most @ np.abs(layer.weights).T, len(layer.weights.T))
            size = size + np.abs(layer.biases) + FLUSHED
            loss = gamma(len(layer.weights)) * size + layer.noise
            lost = lost + at_most((np.abs(factors) * loss).sum(-1), len(layer.weights))
            lost = lost + at_most((unknown * (size + layer.noise)).sum(-1), len(layer.weights))
            constant = constant + factors @ layer.biases
            lost = lost + ROUNDED * np.abs(constant) + FLUSHED * (1.0 + most.sum(-1))
            factors, unknown = factors @ layer.weights, np.zeros(1)
            if number:
                factors, shift = self.through(number, factors, by_layer[number - 1])
                constant = constant + shift.sum(-1)
                lost = lost + loss_of_sum(shift) + ROUNDED * np.abs(constant)
        if inputs is not None:
            factors = factors + inputs.lower
            loss = ROUNDED * np.abs(factors) + (inputs.upper - inputs.lower)
            lost = lost + at_most((loss * self.box.magnitude).sum(-1), loss.shape[-1])
        if self.sides is not None:
            factors, shift, loss = self.sides.added(factors, self.box)
            constant = constant + shift
            lost = lost + loss + ROUNDED * np.abs(constant)
        corner = np.minimum(factors * self.box.lower, factors * self.box.upper)
        lowest = constant + corner.sum(-1)
        lost = lost + loss_of_sum(corner) + ROUNDED * np.abs(lowest)
        lowest = down(lowest - safe(lost))
        return np.where(np.isfinite(lowest), lowest, -np.inf), factors


def bounded(layers: Sequence[ReluLayer], box: Interval, sides: HalfSpaces | None = None) -> BoundedLayers:
    """The layers over the box, or boxes; earlier layers bound the arguments of each layer's ReLUs."""
    arguments: tuple[Interval, ...] = ()
    for number, layer in enumerate(layers[:-1]):
        known = BoundedLayers(tuple(layers[: number + 1]), box, arguments, sides=sides)
        size = len(layer.biases)
        both = np.vstack([np.eye(size), -np.eye(size)])
        found = known.lower_bounds(point(both), known.silent(1))
        if not np.isfinite(found).all():
            raise InvalidProof("the values of a layer are not bounded by finite numbers")
        shape = (*box.shape[:-1], size)
        both_ends = (found[..., :size], -found[..., size:])
        arguments = (*arguments, Interval(*(end.reshape(shape) for end in both_ends)))
    return BoundedLayers(tuple(layers), box, arguments, sides=sides)


class OutwardLeaves:
    """Closes leaves as `BoundedLayers.lower_bounds` and `Leaf.margin` state, many at once.

    They choose slopes and multipliers by ReLU, if these are not the usual ones. In float32 (with
    `rounding`), each affine layer adds its rounding as noise.
    """

    limits: ClassVar[Mapping[str, float]] = {"slopes": 1.0, "multipliers": 2.0**100}

    def __init__(self, network: Network, rounding: Mapping[str, Rounded] | None) -> None:
        layers = relu_layers(network, rounding)
        self._over = cache(lambda box: bounded(layers, Interval(*box_floats(box))))

    def margins(self, box: Box, conjunction: Conjunction, leaves: Sequence[Leaf]) -> list[Fraction | None]:
        """The margin of each leaf; None for one that holds no input."""
        layers: BoundedLayers = self._over(box)

        @cache
        def weighted(weights: tuple[Fraction, ...]) -> tuple[Interval, Fraction]:
            """Σ weights·constraints: the factors of the outputs, rounded outward, and the bound."""
            row, bound = [Fraction(0)] * len(layers.layers[-1].biases), Fraction(0)
            for weight, constraint in zip(weights, conjunction, strict=True):
                if weight and constraint.inputs:
                    raise InvalidProof("a constraint involves inputs")
                bound += weight * constraint.bound
                for j, d in constraint.outputs:
                    row[j] += weight * d
            return outward(row), bound

        margins: list[Fraction | None] = []
        for start in range(0, len(leaves), BATCH):
            batch = leaves[start : start + BATCH]
            rows, bounds = zip(*(weighted(leaf.constraints) for leaf in batch), strict=True)
            stacked = Interval(np.stack([r.lower for r in rows]), np.stack([r.upper for r in rows]))
            found = layers.lower_bounds(stacked, layers.cases(batch))
            if not np.isfinite(found).all():
                raise InvalidProof("a leaf has no finite bound")
            each = zip(batch, found.tolist(), bounds, strict=True)
            margins += [leaf.margin(Fraction(lowest) - bound) for leaf, lowest, bound in each]
        return margins


# Linear bounds of constraints on many boxes at once


#: How many boxes are bounded at once.
PIECES_AT_ONCE = 64
#: Layers over many boxes at once.
Bounding = Callable[[Interval], BoundedLayers]


def linear_slacks(
    bounding: Bounding, conjunction: Conjunction, pieces: Iterable[Box]
) -> Iterator[Fraction]:
    """For each box, a lower bound on how much one of the constraints fails at all of its points.

    Theorem. On a box, Σ c·x + Σ d·y is at least what `BoundedLayers.lower_bounds` gives for the rows c and
    d. A constraint for which that is not finite counts as one that holds by 1.
    """
    pending = iter(pieces)
    while batch := list(islice(pending, PIECES_AT_ONCE)):
        lower, upper = (np.stack(ends)[:, None, :] for ends in zip(*map(box_floats, batch), strict=True))
        over = bounding(Interval(lower, upper))
        rows = rows_of([each.outputs for each in conjunction], len(over.layers[-1].biases))
        inputs = rows_of([each.inputs for each in conjunction], lower.shape[-1])
        for bounds in over.lower_bounds(rows, over.silent(1), inputs).tolist():
            yield max(
                Fraction(bound) - each.bound if isfinite(bound) else Fraction(-1)
                for each, bound in zip(conjunction, bounds, strict=True)
            )


def rows_of(terms: Sequence[Terms], size: int) -> Interval:
    """The factors of each constraint, as a row of length `size`, rounded outward."""
    dense = [[dict(own).get(k, Fraction(0)) for k in range(size)] for own in terms]
    found = [outward(row) for row in dense]
    return Interval(np.stack([row.lower for row in found]), np.stack([row.upper for row in found]))
