"""Paired-bias CNN: pairs of channels with one filter and ordered biases behind any backbone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import (
    Draft,
    ball,
    ceil_div,
    first_class_loses,
    float32_above,
    inward,
    knob,
    random_point,
    towards,
)
from dokimos.constructions.families.contractive_cnn import KERNEL, Stack, convolve, pull_back
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Property

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
    """What is drawn: the centre, backbone and filters, but not yet the pairs' biases and the head."""

    knobs: Knobs
    centre: list[Fraction]
    responses: _Responses

    @classmethod
    def draw(cls, knobs: Knobs, rng: np.random.Generator, *, centred: bool = False) -> _Network:
        """With `centred`, the backbone's channels are 0 at the centre on average, there is padding, and
        filters are larger, so that intervals widen from layer to layer."""
        centre = random_point(knobs.colours * knobs.size**2, rng)
        backbone = _backbone(knobs, rng)
        filters = _filters(knobs.pairs, knobs.channels if knobs.depth else knobs.colours, rng)
        found = _Responses(backbone, filters, int(centred), (knobs.colours, knobs.size, knobs.size))
        if centred:
            backbone = _centred(backbone, found.image(centre))
            found = replace(found, backbone=backbone, filters=2 * filters)
        return cls(knobs, centre, found)

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
        seen = self.responses
        builder = ModelBuilder(seen.shape)
        seen.backbone.append_to(builder)
        biases = [-level + sign * self.gap / 2 for level in levels for sign in (1, -1)]
        if exchanged:
            biases[0], biases[1] = biases[1], biases[0]
        places = (knobs.size - KERNEL + 1 + 2 * seen.padding) ** 2
        head = np.array([_spread(row, places) for row in weights])
        offsets = [float32_above(Fraction(knobs.margin)), *[Fraction(0)] * (knobs.classes - 1)]
        builder.conv(np.repeat(seen.filters, 2, axis=0), biases, padding=seen.padding).relu().flatten()
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


def _backbone(knobs: Knobs, rng: np.random.Generator) -> Stack:
    """Convolutions that keep the image's size."""
    stack, channels = Stack(), knobs.colours
    for _ in range(knobs.depth):
        weight = _filters(knobs.channels, channels, rng)
        stack = stack.then(weight, rng.integers(-8, 9, size=knobs.channels) / FILTER_STEPS)
        channels = knobs.channels
    return stack


def _centred(backbone: Stack, image: Array) -> Stack:
    """Twice the weights, with biases that make the mean response of each channel 0 at this image."""
    stack = Stack()
    for weight in backbone.weights:
        means = convolve(stack(image), 2 * weight).reshape(len(weight), -1).mean(axis=1)
        stack = stack.then(2 * weight, -np.round(means * 2**BIAS_BITS) / 2**BIAS_BITS)
    return stack


@dataclass(frozen=True)
class _Responses:
    """s of every pair at every place, as a function of the image, and how to raise that of the first."""

    backbone: Stack
    filters: Array
    padding: int
    shape: tuple[int, int, int]

    def image(self, point: Sequence[Fraction]) -> Array:
        """A point as an image."""
        return np.array([float(x) for x in point]).reshape(self.shape)

    def __call__(self, point: Sequence[Fraction]) -> Array:
        found = convolve(self.backbone(self.image(point)), self.filters)
        return found[:, *self._seen].reshape(len(self.filters), -1)

    @property
    def _seen(self) -> tuple[slice, slice]:
        """Without padding, the outermost places of a convolution that keeps the size do not exist."""
        edge = 1 - self.padding
        return slice(edge, self.shape[1] - edge), slice(edge, self.shape[2] - edge)

    def _gradient(self, image: Array, place: int) -> Array:
        """Of the first pair's response at one place."""
        one = np.zeros((1, *self.shape[1:]))
        seen = one[0][self._seen]
        seen[np.unravel_index(place, seen.shape)] = 1.0
        return self.backbone.gradient(image, pull_back(one, self.filters[:1])).reshape(-1)

    def climb(self, centre: list[Fraction], epsilon: Fraction) -> tuple[Fraction, ...]:
        """A point inside the box where the first pair's response is large at one place.

        The place is one whose response promises to be the largest, judged by its slope at the centre.
        """
        radius = epsilon * (1 - INSET)
        middle, levels = self.image(centre), self(centre)[0]
        slopes = np.array([self._gradient(middle, p) for p in range(len(levels))])
        place = int(np.argmax(levels + float(radius) * abs(slopes).sum(axis=1)))
        best, best_value = np.zeros(len(centre)), -np.inf
        signs = np.sign(slopes[place])
        for _ in range(ASCENT_STEPS):
            value = self(towards(centre, signs, radius))[0, place]
            if value > best_value:
                best, best_value = signs, value
            moved = middle + signs.reshape(self.shape) * float(radius)
            signs = np.sign(self._gradient(moved, place))
        return towards(centre, best, radius)
