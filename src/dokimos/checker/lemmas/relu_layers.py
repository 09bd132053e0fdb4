"""Rigorous linear bounds on ReLU layers, for many cases of decided ReLUs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dokimos.checker.lemmas.constraints import (
    affine_layer,
    in_a_row,
    outward,
)
from dokimos.checker.lemmas.piecewise_linear import AffineExpression, PiecewiseLinear, piecewise_linear
from dokimos.core.errors import InvalidProof, UnsupportedOp
from dokimos.networks.graph import Network
from dokimos.networks.semantics.outward import (
    FLOAT32,
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


#: A layer with more weights than this is refused.
MOST_WEIGHTS = 1 << 24
#: A network in which more values than this skip a layer is refused.
MOST_CARRIED = 200

Places = tuple[tuple[int, float], ...]
"""What a variable is among the values of a layer: the sum of values at these places, with these signs."""


@dataclass(frozen=True)
class ReluLayer:
    """e = (weights + d)·v + biases + n with |d| <= inexact, |n| <= noise: an affine layer, and rounding.

    `inexact` is what coefficients lose that are no float64 numbers, such as those of a division; 0 where
    it is left out.
    """

    weights: Floats
    biases: Floats
    noise: Floats
    inexact: Floats | None = None

    @property
    def coefficients(self) -> Interval:
        """The weights as they are."""
        if self.inexact is None:
            return point(self.weights)
        low, high = down(self.weights - self.inexact), up(self.weights + self.inexact)
        exact = self.inexact == 0
        return Interval(np.where(exact, self.weights, low), np.where(exact, self.weights, high))

    def noise_over(self, most: Floats) -> Floats:
        """What is added to e at most, for values v that are at most that large."""
        if self.inexact is None:
            return self.noise
        return up(self.noise + at_most(most @ self.inexact.T, len(self.inexact.T) + 1) + FLUSHED)


def relu_layers(network: Network, rounding: Mapping[str, Rounded] | None = None) -> tuple[ReluLayer, ...]:
    """The affine layers of a network, with ReLUs between them, first and last affine.

    With `rounding` (bounds of every tensor over a box) each layer has the noise that makes every float32
    run a run of these layers, as in `piecewise_linear`. Between two layers of ReLUs there may be any affine
    operators: they are composed exactly, and the errors of their numbers in float64 are noise and
    `inexact`. Networks side by side are one, and a few values may skip layers (`_layers_of`).

    Raises InvalidProof if many values skip a layer, or if float32 may overflow.
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
            noise = dot_rounding(count + 1, safe(reach + np.abs(biases)), FLOAT32)
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
    inexact = None if layer.inexact is None else np.concatenate([layer.inexact, more])
    for row, (place, factor) in enumerate(rows):
        more[row, place] = factor
    none = np.zeros(len(rows))
    biases, noise = (np.concatenate([each, none]) for each in (layer.biases, layer.noise))
    return ReluLayer(np.concatenate([layer.weights, more]), biases, noise, inexact)


def _read_by(form: PiecewiseLinear, expressions: Sequence[AffineExpression]) -> set[int]:
    return {v for each in expressions for v in each.terms if v not in form.noise}


def _layer(
    form: PiecewiseLinear, expressions: Sequence[AffineExpression], read: Mapping[int, Places], size: int
) -> ReluLayer:
    """One layer of expressions in variables, each the sum of signed places among `size`, and in noise."""
    if len(expressions) * size > MOST_WEIGHTS:
        raise InvalidProof(f"a layer has more than {MOST_WEIGHTS} weights")
    weights, inexact, noise = np.zeros((len(expressions), size)), np.zeros((len(expressions), size)), []
    constants = outward([each.constant for each in expressions])
    for row, (each, constant) in enumerate(zip(expressions, constants.lower.tolist(), strict=True)):
        factors = {v: c for v, c in each.terms.items() if v not in form.noise}
        values = outward(list(factors.values()))
        for v, low, high in zip(factors, values.lower.tolist(), values.upper.tolist(), strict=True):
            for place, sign in read[v]:
                weights[row, place] = sign * low
                inexact[row, place] = high - low  # of neighbours, the difference is a number
        spread = (abs(c) * form.noise[v] for v, c in each.terms.items() if v in form.noise)
        noise.append(sum(spread, each.constant - Fraction(constant)))
    return ReluLayer(weights, constants.lower, outward(noise).upper, inexact if inexact.any() else None)


Cases = Floats
"""Many cases: for each of them, and each ReLU, layer after layer, its phase, its slope and its multiplier.

An array [3, cases, ReLUs]. The phase is 1 where the case says that the ReLU's argument e is >= 0, −1 where
e <= 0, 0 where it says nothing; slopes in [0, 1] and multipliers >= 0 are free choices.
"""


@dataclass(frozen=True)
class BoundedLayers:
    """Layers over a box, with bounds of every ReLU's argument.

    Or over many boxes: then the ends of `box` and of `arguments` have two more axes before their last one,
    the first for the boxes, the second of length 1; and so have the bounds one more, for the boxes.
    """

    layers: tuple[ReluLayer, ...]
    box: Interval
    arguments: tuple[Interval, ...]

    def silent(self, count: int) -> Cases:
        """Cases that decide nothing, with the usual slopes: 1 where a ReLU is mostly on, else 0."""
        usual = [np.where(each.upper > -each.lower, 1.0, 0.0) for each in self.arguments]
        slopes = np.tile(np.concatenate(usual, axis=-1) if usual else np.zeros(0), (count, 1))
        return np.stack([np.zeros_like(slopes), slopes, np.zeros_like(slopes)])

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
        (and of the noise, and of what inexact weights make of values of that size), whose minimum over the
        box is at a corner. So at every x of the box, what is bounded is at least the bound + coefficients·x
        − min coefficients·x, the minimum over the box.

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
            noise = layer.noise_over(most)
            size = at_most(most @ np.abs(layer.weights).T, len(layer.weights.T))
            size = size + np.abs(layer.biases) + FLUSHED
            loss = gamma(len(layer.weights)) * size + noise
            lost = lost + at_most((np.abs(factors) * loss).sum(-1), len(layer.weights))
            lost = lost + at_most((unknown * (size + noise)).sum(-1), len(layer.weights))
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
        corner = np.minimum(factors * self.box.lower, factors * self.box.upper)
        lowest = constant + corner.sum(-1)
        lost = lost + loss_of_sum(corner) + ROUNDED * np.abs(lowest)
        lowest = down(lowest - safe(lost))
        return np.where(np.isfinite(lowest), lowest, -np.inf), factors


def bounded(layers: Sequence[ReluLayer], box: Interval) -> BoundedLayers:
    """The layers over the box, or boxes; earlier layers bound the arguments of each layer's ReLUs."""
    arguments: tuple[Interval, ...] = ()
    for number, layer in enumerate(layers[:-1]):
        known = BoundedLayers(tuple(layers[: number + 1]), box, arguments)
        size = len(layer.biases)
        both = np.vstack([np.eye(size), -np.eye(size)])
        found = known.lower_bounds(point(both), known.silent(1))
        if not np.isfinite(found).all():
            raise InvalidProof("the values of a layer are not bounded by finite numbers")
        shape = (*box.shape[:-1], size)
        both_ends = (found[..., :size], -found[..., size:])
        arguments = (*arguments, Interval(*(end.reshape(shape) for end in both_ends)))
    return BoundedLayers(tuple(layers), box, arguments)
