"""Paired-bias CNN: pairs of channels with one filter and ordered biases behind any backbone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import Draft, knob
from dokimos.constructions.robustness import (
    ball,
    ceil_div,
    first_class_loses,
    float32_above,
    inward,
    random_point,
    towards,
)
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Property

KERNEL = 3
FILTER_STEPS = 2**6
BIAS_BITS = 12
HEAD_BITS = 16
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = Fraction(1, 64)
ASCENT_STEPS = 30
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Knobs:
    """The knobs of the paired-bias CNN."""

    size: int = knob(6, "height and width of the image", least=3, most=32)
    depth: int = knob(1, "how many convolutions precede the paired one", least=0, most=6)
    channels: int = knob(2, "how many channels those convolutions have", least=1, most=32)
    pairs: int = knob(4, "how many pairs of channels", least=2, most=64)
    gap: float = knob(0.03125, "how far the two biases of a pair are apart", least=0.001, most=10.0)
    margin: float = knob(0.01, "by how much class 0 stays above the others", least=1e-7, most=10.0)
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)
    colours: int = knob(1, "how many channels the image has", least=1, most=16)


class PairedBias(Construction[Knobs]):
    """Class 0 scores Γ + Σ v·(p − q), class k scores −Σ v_k·(p − q), v and v_k positive.

    p and q are the two channels of a pair at one place: the same response s, rectified with biases b > c,
    so p >= q whatever the backbone does, and class 0 wins by at least Γ. The biases of most pairs lie
    around the response at the centre, which makes their ReLUs unstable; those of the first pair lie at a
    level that its response reaches at one place only, where the image fits its filter there: elsewhere
    p − q is 0 or constant, and has no gradient. In the twin the first pair's
    two biases are exchanged, so that it lowers class 0 there.
    """

    family: ClassVar[str] = "paired-bias"
    summary: ClassVar[str] = "channels that differ in a bias only; a proof must see that one stays above"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw backbone and filters; only the order of the first pair's biases differs."""
        network = _Network.draw(knobs, rng)
        witness = network.responses.climb(network.centre, inward(knobs.epsilon))
        at_witness = network.responses(witness)
        levels = network.levels(at_witness)
        weights = _head_weights(knobs, levels, network.gap, at_witness)
        twin = network.build(levels, weights, exchanged=True)
        return (
            network.robust(levels, weights),
            Draft(twin, network.question, Certificate("witness"), witness),
        )

    def alone(self, knobs: Knobs, rng: np.random.Generator) -> Draft:
        """All pairs alike, and all ReLUs at their kinks: the margin is Γ and what the gaps add."""
        network = _Network.draw(knobs, rng, centred=True)
        even = _even(knobs.pairs, knobs.size**2)
        return network.robust(network.levels(), _all_rows([even] * knobs.pairs, knobs.classes))


@dataclass(frozen=True)
class _Network:
    """What is drawn: the centre, the backbone and the filters, but not yet the pairs' biases and the head.

    `padding` is that of the paired convolution.
    """

    knobs: Knobs
    centre: list[Fraction]
    backbone: _Backbone
    filters: Array
    padding: int
    responses: _Responses

    @classmethod
    def draw(cls, knobs: Knobs, rng: np.random.Generator, *, centred: bool = False) -> _Network:
        """With `centred`, the backbone's channels are 0 at the centre on average, there is padding, and
        filters are larger, so that intervals widen from layer to layer."""
        centre = random_point(knobs.colours * knobs.size**2, rng)
        backbone = _Backbone.draw(knobs, rng)
        filters = _filters(knobs.pairs, backbone.channels, rng)
        if centred:
            backbone, filters = backbone.centred(centre), 2 * filters
        return cls(
            knobs, centre, backbone, filters, int(centred), _Responses(backbone, filters, int(centred))
        )

    @property
    def gap(self) -> Fraction:
        return dyadic(self.knobs.gap, BIAS_BITS)

    @property
    def question(self) -> Property:
        return first_class_loses(ball(self.centre, inward(self.knobs.epsilon)), self.knobs.classes)

    def levels(self, at_witness: Array | None = None) -> list[Fraction]:
        """Around what each pair's biases lie: its mean response at the centre; one that hides is higher."""
        levels = [dyadic(float(row.mean()), BIAS_BITS) for row in self.responses(self.centre)]
        if at_witness is not None:
            levels[0] = dyadic(float(at_witness[0].max()), BIAS_BITS) - self.gap / 2
        return levels

    def robust(self, levels: list[Fraction], weights: list[list[Fraction]]) -> Draft:
        pairs = [[2 * i, 2 * i + 1] for i in range(self.knobs.pairs)]
        data = {"convolution": f"conv_{2 * self.knobs.depth}", "pairs": pairs}
        network = self.build(levels, weights, exchanged=False)
        return Draft(network, self.question, Certificate("ordered-pairs", data))

    def build(self, levels: list[Fraction], weights: list[list[Fraction]], *, exchanged: bool) -> bytes:
        knobs = self.knobs
        builder = ModelBuilder([knobs.colours, knobs.size, knobs.size])
        self.backbone.append_to(builder)
        biases = [-level + sign * self.gap / 2 for level in levels for sign in (1, -1)]
        if exchanged:
            biases[0], biases[1] = biases[1], biases[0]
        places = (knobs.size - KERNEL + 1 + 2 * self.padding) ** 2
        head = np.array([_spread(row, places) for row in weights])
        offsets = [float32_above(Fraction(knobs.margin)), *[Fraction(0)] * (knobs.classes - 1)]
        builder.conv(np.repeat(self.filters, 2, axis=0), biases, padding=self.padding).relu().flatten()
        return builder.affine(head, offsets).build(knobs.classes)


def _filters(count: int, channels: int, rng: np.random.Generator) -> Array:
    """Random filters on the grid, none of them zero."""
    drawn = rng.integers(-FILTER_STEPS // 4, FILTER_STEPS // 4 + 1, size=(count, channels, KERNEL, KERNEL))
    drawn[:, 0, 1, 1] = np.where(drawn[:, 0, 1, 1] == 0, 1, drawn[:, 0, 1, 1])
    return drawn / FILTER_STEPS


def _head_weights(
    knobs: Knobs, levels: list[Fraction], gap: Fraction, at_witness: Array
) -> list[list[Fraction]]:
    """For each class and pair, the weight of p − q: class 0 adds it, the others subtract theirs.

    All pairs but the first weigh about 1/(pairs·places). The first weighs enough for class 0 to lose to
    class 1 by about Γ at the twin's counterexample.
    """
    pairs, places = at_witness.shape
    unit, even = Fraction(1, 2**HEAD_BITS), _even(pairs, places)
    ramps = [
        np.clip(row - float(level) + float(gap) / 2, 0.0, float(gap)).sum()
        for row, level in zip(at_witness, levels, strict=True)
    ]
    if ramps[0] <= 0:
        raise Unusable("the response of the first pair cannot be raised")
    needed = 2 * knobs.margin + float(even) * 1.5 * sum(ramps[1:])
    first = ceil_div(Fraction(needed / ramps[0]), unit)
    own = [first * 2 / 3, *[even] * (pairs - 1)]
    own[0] = float32_above(ceil_div(own[0], unit))
    return _all_rows(own, knobs.classes)


def _even(pairs: int, places: int) -> Fraction:
    """What a pair weighs where all weigh the same."""
    return ceil_div(Fraction(1, pairs * places), Fraction(1, 2**HEAD_BITS))


def _all_rows(own: list[Fraction], classes: int) -> list[list[Fraction]]:
    """Class 0 adds its weights, the others subtract half of them."""
    half = [-float32_above(ceil_div(w / 2, Fraction(1, 2**HEAD_BITS))) for w in own]
    return [own, *[half] * (classes - 1)]


def _spread(per_pair: list[Fraction], places: int) -> Array:
    """The head's row: +w at every place of a pair's first channel, −w at its second."""
    return np.repeat([sign * float(w) for w in per_pair for sign in (1, -1)], places)


def _as_matrix(weight: Array, size: int, padding: int) -> Array:
    """A convolution with stride 1 as a matrix [outputs, inputs] on flattened images."""
    outputs, inputs, kernel, _ = weight.shape
    after = size + 2 * padding - kernel + 1
    matrix = np.zeros((outputs, after, after, inputs, size, size))
    for row in range(after):
        for column in range(after):
            for i in range(kernel):
                for j in range(kernel):
                    y, x = row + i - padding, column + j - padding
                    if 0 <= y < size and 0 <= x < size:
                        matrix[:, row, column, :, y, x] += weight[:, :, i, j]
    return matrix.reshape(outputs * after**2, inputs * size**2)


@dataclass(frozen=True)
class _Backbone:
    """Convolutions that keep the image's size, each followed by a ReLU."""

    size: int
    channels: int
    weights: list[Array]
    biases: list[Array]

    @classmethod
    def draw(cls, knobs: Knobs, rng: np.random.Generator) -> _Backbone:
        channels, weights, biases = knobs.colours, [], []
        for _ in range(knobs.depth):
            weights.append(_filters(knobs.channels, channels, rng))
            biases.append(rng.integers(-8, 9, size=knobs.channels) / FILTER_STEPS)
            channels = knobs.channels
        return cls(knobs.size, channels, weights, biases)

    def centred(self, image: list[Fraction]) -> _Backbone:
        """Twice the weights, with biases that make the mean response of each channel 0 at this image."""
        value, weights, biases = np.array([float(x) for x in image]), [2 * w for w in self.weights], []
        for weight in weights:
            responses = (_as_matrix(weight, self.size, 1) @ value).reshape(len(weight), -1)
            biases.append(-np.round(responses.mean(axis=1) * 2**BIAS_BITS) / 2**BIAS_BITS)
            value = np.maximum(responses + biases[-1][:, None], 0.0).reshape(-1)
        return replace(self, weights=weights, biases=biases)

    def append_to(self, builder: ModelBuilder) -> None:
        for weight, bias in zip(self.weights, self.biases, strict=True):
            builder.conv(weight, bias, padding=1).relu()


class _Responses:
    """s of every pair at every place, as a function of the image, and how to raise that of the first."""

    def __init__(self, backbone: _Backbone, filters: Array, padding: int) -> None:
        size = backbone.size
        self._pairs = len(filters)
        self._layers = [
            (_as_matrix(weight, size, 1), np.repeat(bias, size**2))
            for weight, bias in zip(backbone.weights, backbone.biases, strict=True)
        ]
        self._last = _as_matrix(filters, size, padding)

    def __call__(self, image: tuple[Fraction, ...] | list[Fraction]) -> Array:
        value = np.array([float(x) for x in image])
        for weight, bias in self._layers:
            value = np.maximum(weight @ value + bias, 0.0)
        responses: Array = (self._last @ value).reshape(self._pairs, -1)
        return responses

    def _gradient(self, image: Array, place: int) -> Array:
        """Of the first pair's response at one place."""
        value, active = image, []
        for weight, bias in self._layers:
            value = np.maximum(weight @ value + bias, 0.0)
            active.append(value > 0)
        slope: Array = self._last[place]
        for (weight, _), on in zip(reversed(self._layers), reversed(active), strict=True):
            slope = (slope * on) @ weight
        return slope

    def climb(self, centre: list[Fraction], epsilon: Fraction) -> tuple[Fraction, ...]:
        """A point inside the box where the first pair's response is large at one place.

        The place is one whose response promises to be the largest, judged by its slope at the centre.
        """
        radius = epsilon * (1 - INSET)
        middle = np.array([float(x) for x in centre])
        slopes = np.array([self._gradient(middle, p) for p in range(len(self._last) // self._pairs)])
        place = int(np.argmax(self(centre)[0] + float(radius) * abs(slopes).sum(axis=1)))
        best, best_value = np.zeros(len(centre)), -np.inf
        signs = np.sign(slopes[place])
        for _ in range(ASCENT_STEPS):
            value = self(towards(centre, signs, radius))[0, place]
            if value > best_value:
                best, best_value = signs, value
            signs = np.sign(self._gradient(middle + signs * float(radius), place))
        return towards(centre, best, radius)
