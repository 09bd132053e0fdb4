"""Rigorous linear bounds on ReLU layers, for many cases of decided ReLUs at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar

import numpy as np

from dokimos.checker.lemmas.affine import affine_layer, in_a_row
from dokimos.checker.lemmas.case_tree import Leaf, require_relus
from dokimos.checker.lemmas.float_ends import box_floats, outward
from dokimos.core.errors import InvalidProof
from dokimos.networks.graph import Network
from dokimos.networks.semantics.float32 import dot_rounding, safe, safe_product
from dokimos.networks.semantics.outward import Floats, Interval, add, bilinear, multiply, point, total
from dokimos.networks.semantics.rounded_tensor import Rounded
from dokimos.properties.model import Box, Conjunction

#: Leaves bounded at once.
BATCH = 1024


@dataclass(frozen=True)
class ReluLayer:
    """e = weights·v + biases + n with |n| <= noise: an affine layer, and its float32 rounding."""

    weights: Floats
    biases: Floats
    noise: Floats


def relu_layers(network: Network, rounding: Mapping[str, Rounded] | None = None) -> tuple[ReluLayer, ...]:
    """The affine layers of a network in which they alternate with ReLUs, first and last affine.

    With `rounding` (bounds of every tensor over a box) each layer has the noise that makes every float32
    run a run of these layers, as in `piecewise_linear`. Raises InvalidProof for any other network.
    """
    ops = [node.op for node in network.nodes]
    if not in_a_row(network) or ops != (["Gemm", "Relu"] * len(ops))[: len(ops)] or len(ops) % 2 == 0:
        raise InvalidProof("the network is not affine layers with ReLUs between them")
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


Cases = Floats
"""Many cases: for each of them, and each ReLU, layer after layer, its phase, its slope and its multiplier.

An array [3, cases, ReLUs]. The phase is 1 where the case says that the ReLU's argument e is >= 0, −1 where
e <= 0, 0 where it says nothing; slopes in [0, 1] and multipliers >= 0 are free choices.
"""


@dataclass(frozen=True)
class BoundedLayers:
    """Layers over a box, with bounds of every ReLU's argument."""

    layers: tuple[ReluLayer, ...]
    box: Interval
    arguments: tuple[Interval, ...]

    def silent(self, count: int) -> Cases:
        """Cases that decide nothing, with the usual slopes: 1 where a ReLU is mostly on, else 0."""
        usual = [np.where(each.upper > -each.lower, 1.0, 0.0) for each in self.arguments]
        slopes = np.tile(np.concatenate([np.zeros(0), *usual]), (count, 1))
        return np.stack([np.zeros_like(slopes), slopes, np.zeros_like(slopes)])

    def cases(self, leaves: Sequence[Leaf]) -> Cases:
        """The leaves as cases. Since any choice will do, rounding one to float64 changes no proof."""
        found = self.silent(len(leaves))
        require_relus(leaves, found.shape[-1])
        for number, leaf in enumerate(leaves):
            for relu, is_on in leaf.phases.items():
                found[0, number, relu] = 1 if is_on else -1
            for part, name in enumerate(("slopes", "multipliers"), 1):
                for relu, value in leaf.choices[name].items():
                    found[part, number, relu] = float(value)
        return found

    @np.errstate(all="ignore")
    def lower_bounds(self, rows: Interval, cases: Cases) -> Floats:
        """For each case a lower bound, over the box, of rows·(what the last of these layers puts out).

        Theorem. Let g = r + c·v with v = max(0, e), in a case. If the case says e >= 0, then v = e, and
        g >= r + (c − β)·e for every β >= 0; if it says e <= 0, then v = 0, and g >= r + β·e. If it says
        nothing: c >= 0 gives g >= r + c·s·e for s in [0, 1]; c < 0 and e in [l, u] give
        g >= r + c·(k·e + h) with k in [0, 1] and h = max(−k·l, (1 − k)·u), for k·e + h >= max(0, e) at l
        and at u, hence between. Going from the last layer to the first leaves an affine function of the
        inputs (and of the noise), whose minimum over the box is at a corner. Coefficients are float64
        intervals; of what is added up as a constant only the lower end has a meaning.
        """
        ends = np.cumsum([len(each.lower) for each in self.arguments])
        by_layer = np.split(cases, ends, axis=2)
        constant = point(np.zeros(len(rows.lower)))
        for number in range(len(self.layers) - 1, -1, -1):
            layer = self.layers[number]
            constant = add(constant, _product(rows, layer.biases))
            if layer.noise.any():
                loss = _product(point(rows.magnitude), layer.noise)
                constant = add(constant, point(-loss.upper))
            rows = _product(rows, layer.weights)
            if number:
                rows, shift = _through_relu(rows, self.arguments[number - 1], *by_layer[number - 1])
                constant = add(constant, shift)
        reach = total(multiply(rows, self.box), (1,), keepdims=False)
        lowest = add(constant, reach).lower
        return np.where(np.isnan(lowest), -np.inf, lowest)


def _product(rows: Interval, factor: Floats) -> Interval:
    return bilinear(rows, point(factor), np.matmul, len(factor))


def _through_relu(
    rows: Interval, arguments: Interval, phases: Floats, slopes: Floats, multipliers: Floats
) -> tuple[Interval, Interval]:
    """Coefficients of ReLUs turned into coefficients of their arguments, and what is added."""
    low, high = arguments.lower, arguments.upper
    said_on, said_off = phases > 0, phases < 0
    silent = ~said_on & ~said_off
    on, off = said_on | (silent & (low >= 0)), said_off | (silent & (low < 0) & (high <= 0))
    if_on = add(rows, point(-multipliers))
    slope = np.where(rows.lower >= 0, slopes, 0.0)
    above = rows.upper <= 0
    k = np.clip(np.where(high > low, high / (high - low), 0.0), 0.0, 1.0)
    k = np.where(np.isfinite(k), k, 0.0)
    rest = add(point(1.0), point(-k))
    h = np.maximum(multiply(point(-k), point(low)).upper, multiply(rest, point(high)).upper)
    h = np.where(np.isnan(h), np.inf, np.maximum(h, 0.0))
    free = multiply(rows, point(np.where(above, k, slope)))
    lower = np.where(said_on, if_on.lower, np.where(on, rows.lower, np.where(off, 0.0, free.lower)))
    upper = np.where(said_on, if_on.upper, np.where(on, rows.upper, np.where(off, 0.0, free.upper)))
    lower, upper = (np.where(said_off, multipliers, end) for end in (lower, upper))
    # Where the sign of a coefficient c is not known, c·v >= min(0, c)·max(0, u) needs no slope.
    unsigned = ~above & (rows.lower < 0)
    weight = np.where(above | unsigned, rows.lower, 0.0)
    shift = multiply(point(weight), point(np.where(unsigned, np.maximum(high, 0.0), h)))
    shift_low = np.where(on | off, 0.0, np.where(weight == 0, 0.0, shift.lower))
    lost = total(Interval(shift_low, shift_low), (1,), keepdims=False)
    return Interval(lower, upper), lost


def bounded(layers: Sequence[ReluLayer], box: Interval) -> BoundedLayers:
    """The layers over the box, the arguments of each layer's ReLUs bounded through the ones before."""
    arguments: tuple[Interval, ...] = ()
    for number, layer in enumerate(layers[:-1]):
        known = BoundedLayers(tuple(layers[: number + 1]), box, arguments)
        size = len(layer.biases)
        both = np.vstack([np.eye(size), -np.eye(size)])
        found = known.lower_bounds(point(both), known.silent(2 * size))
        if not np.isfinite(found).all():
            raise InvalidProof("the values of a layer are not bounded by finite numbers")
        arguments = (*arguments, Interval(found[:size], -found[size:]))
    return BoundedLayers(tuple(layers), box, arguments)


class OutwardLeaves:
    """Closes leaves as `BoundedLayers.lower_bounds` and `Leaf.margin` state, many at once.

    They choose slopes and multipliers by ReLU, where these are not the usual ones. In float32 (with
    `rounding`) each affine layer adds its rounding as noise.
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
                    raise InvalidProof("a constraint speaks of inputs")
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
                raise InvalidProof("a leaf is not bounded by a finite number")
            each = zip(batch, found.tolist(), bounds, strict=True)
            margins += [leaf.margin(Fraction(lowest) - bound) for leaf, lowest, bound in each]
        return margins
