"""Contractive CNN: convolutions of norm below 1, so that a margin at the centre holds on the box."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import (
    Draft,
    ball,
    first_class_loses,
    float32_above,
    float32_below,
    inward,
    knob,
    random_point,
    siblings,
    split_evenly,
    towards,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.ball import exactly, fraction
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate

# 3×3 convolutions that keep the image's size, in float64: values, gradients, and filters of given norm


KERNEL = 3
#: Filters are multiples of 2^-WEIGHT_BITS.
WEIGHT_BITS = 12
Array = NDArray[np.float64]


def convolve(image: Array, weight: Array) -> Array:
    """[channels, n, n] by [outputs, channels, 3, 3], stride 1, zero-padded to keep the size."""
    size = image.shape[1]
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    total: Array = np.zeros((len(weight), size, size))
    for i in range(KERNEL):
        for j in range(KERNEL):
            total += np.tensordot(weight[:, :, i, j], padded[:, i : i + size, j : j + size], axes=1)
    return total


def pull_back(slope: Array, weight: Array) -> Array:
    """The transpose of `convolve`: with this stride and padding the convolution with the rotated
    filter."""
    return convolve(slope, weight.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])


@dataclass(frozen=True)
class Stack:
    """Convolutions, each with a bias for each channel and followed by a ReLU."""

    weights: tuple[Array, ...] = ()
    biases: tuple[Array, ...] = ()

    def then(self, weight: Array, bias: Array) -> Stack:
        """This stack with one more convolution."""
        return Stack((*self.weights, weight), (*self.biases, bias))

    def __call__(self, image: Array) -> Array:
        """The features [channels, n, n]."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            image = np.maximum(convolve(image, weight) + bias[:, None, None], 0.0)
        return image

    def append_to(self, builder: ModelBuilder) -> None:
        """Add the convolutions to a file."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            builder.conv(weight, bias, padding=1).relu()

    def gradient(self, image: Array, slope: Array) -> Array:
        """The gradient of Σ slope·features at `image`."""
        active = []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            image = np.maximum(convolve(image, weight) + bias[:, None, None], 0.0)
            active.append(image > 0)
        for weight, on in zip(reversed(self.weights), reversed(active), strict=True):
            slope = pull_back(slope * on, weight)
        return slope


def random_filters(count: int, inputs: int, units: int, rng: np.random.Generator) -> Array:
    """Random filters on the grid, the absolute weights of each summing to `units` steps."""
    taps = inputs * KERNEL**2
    drawn = [split_evenly(units, rng.standard_normal(taps)) for _ in range(count)]
    filters: Array = np.array(drawn, dtype=np.float64).reshape(count, inputs, KERNEL, KERNEL)
    filters /= 2**WEIGHT_BITS
    return filters


def character(rng: np.random.Generator) -> Array:
    """Signs χ(i, j) = (±1)^i·(±1)^j: filters with these signs compose without cancelling."""
    down, right = rng.choice([-1.0, 1.0], size=2)
    steps = np.arange(KERNEL)
    signs: Array = np.outer(down**steps, right**steps)
    return signs


def carrying_filter(units: int, signs: Array, rng: np.random.Generator, *, spread: bool) -> Array:
    """A filter with these signs and this norm, or one that passes on the value at its centre."""
    taps: Array = np.zeros(KERNEL**2)
    taps[KERNEL**2 // 2] = units
    if spread:
        taps[:] = split_evenly(units, rng.uniform(0.5, 1.5, size=KERNEL**2))
        taps *= signs.reshape(-1)
    taps /= 2**WEIGHT_BITS
    return taps.reshape(KERNEL, KERNEL)


BIAS_BITS = 14
POINT_BITS = 20
#: Slacks below this are for the edge: then the twin violates by about the slack, however small.
EDGE = 2.0**-16
#: Otherwise by at least this share of the outputs' size.
VIOLATION_SHARE = Fraction(1, 2**8)
#: What class 0's lead in the twin has to spare where the pattern is not seen, in moves of a feature.
SPARE = Fraction(1, 8)
#: How far a search that follows the gradient at the centre may agree with the twin's pattern.
MOST_AGREEMENT = 0.25
#: Where there is no twin, all features but the carrying channel's share one part in so many of the head.
CARRIED = 16
#: Features that move at least this share of what the one that moves furthest does count as moving fully.
FULLY = 0.99
#: 2.1e9 products take 81 CPU-seconds and 0.9 GB, 9e8 of a deeper network 49 and 0.8 GB; beyond this,
#: deep networks take more than 2 GB.
MOST_PRODUCTS = 1_800_000_000


@dataclass(frozen=True)
class Knobs:
    """The knobs of the contractive CNN."""

    size: int = knob(8, "height and width of the image", least=3, most=64)
    depth: int = knob(3, "how many contractive convolutions follow the front end", least=1, most=20)
    channels: int = knob(4, "channels of every convolution", least=1, most=128)
    contraction: float = knob(0.9, "the norm λ of every such convolution", least=0.01, most=0.999)
    front: float = knob(1.0, "the norm of the first convolution, the front end", least=0.01, most=16.0)
    unstable: float = knob(
        0.5, "share of channels whose biases put ReLUs at their kink", least=0.0, most=1.0
    )
    centred: int = knob(
        1, "1: class 0 competes with constants; 0: every class reads the features", least=0, most=1
    )
    slack: float = knob(
        0.01, "how far the margin at the centre exceeds what the proof needs", least=1e-7, most=10.0
    )
    cut: float = knob(
        0.25, "how close to the corner the twin is violated, as a share of epsilon", least=0.01, most=0.5
    )
    epsilon: float = knob(0.1, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)


class ContractiveCnn(Construction[Knobs]):
    """Scores are affine in Φ = C_D ∘ … ∘ C_1 ∘ P, with ‖P‖ = front and ‖C_i‖ = λ in the ℓ∞ operator norm.

    So ‖Φ(x) − Φ(x₀)‖∞ <= front·λ^D·ε on the box, and class 0 wins if its lead over class k at x₀ is more
    than ‖w₀ − w_k‖₁ times that; it exceeds that by `slack`. Interval bounds prove this family by design: it
    measures what depth, channels and size cost, not how tight a verifier's bounds are.

    In every layer one channel carries a pattern: its filters in P and C_1 share the signs of one character
    of the plane, so that nothing cancels, its bias lies where one place fires only if almost all of the
    pixels that it sees, 25 inside the image, are near that corner, and the later layers pass it on.
    The head weighs that place heavily in both siblings. In the twin only class 0's offset is lower: by the
    theorem above it still wins wherever the place is silent, and it loses near the corner. The gradient
    of everything else leads away from there (a draw where it does not is discarded), but what raises single
    units finds it (docs/families.md).

    Edge: a slack of 1e-7 is proven for the reals only, for both siblings.
    """

    family: ClassVar[str] = "contractive-cnn"
    summary: ClassVar[str] = (
        "deep convolutions that contract; a proof must carry bounds through all of them"
    )
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw features and head; only class 0's offset differs between the two drafts."""
        epsilon, centre = self._box(knobs, rng)
        features = _Features.draw(centre, epsilon, knobs, rng)
        head = _Head.draw(features, knobs, rng)
        property_, build = first_class_loses(ball(centre, epsilon), knobs.classes), features.build
        plain = read_onnx(build(head.background, head.offsets), name=self.family)
        at_centre, at_witness = (evaluate(plain, point).lower for point in (centre, features.witness))
        move = features.norm * epsilon
        low = float32_above(head.offset_for(head.background, at_centre, move) + SPARE * move)
        lead = low + at_witness[0] - at_witness[head.rival]
        lost = lead + _violation(knobs, [low + at_centre[0], *at_centre[1:]])
        rows = head.with_pattern(lost, features, centred=bool(knobs.centred))
        high = float32_above(head.offset_for(rows, at_centre, move) + Fraction(knobs.slack))
        robust, violated = (build(rows, [first, *head.offsets[1:]]) for first in (high, low))
        return siblings(property_, Certificate("contraction"), robust, violated, features.witness)

    def alone(self, knobs: Knobs, rng: np.random.Generator) -> Draft:
        """Class 0 reads mostly features that one corner moves as far as the theorem lets it.

        So what the theorem leaves out of account is small, and `slack` is about the margin.
        """
        epsilon, centre = self._box(knobs, rng)
        features = _Features.draw(centre, epsilon, knobs, rng, waits=False)
        head = _Head.reading_carriers(features, epsilon, knobs, rng)
        plain = read_onnx(features.build(head.background, head.offsets), name=self.family)
        at_centre, move = evaluate(plain, centre).lower, features.norm * epsilon
        high = float32_above(head.offset_for(head.background, at_centre, move) + Fraction(knobs.slack))
        return Draft(
            features.build(head.background, [high, *head.offsets[1:]]),
            first_class_loses(ball(centre, epsilon), knobs.classes),
            Certificate("contraction"),
        )

    def _box(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Fraction, list[Fraction]]:
        if knobs.depth * (3 * knobs.channels * knobs.size) ** 2 > MOST_PRODUCTS:
            raise ConstructionFailed(
                f"{self.family}: depth = {knobs.depth}, channels = {knobs.channels}, size = {knobs.size} "
                f"make more than {MOST_PRODUCTS} multiplications; lower one of them."
            )
        return inward(knobs.epsilon), random_point(knobs.size**2, rng)


@dataclass(frozen=True)
class _Features:
    """Φ, the place where the carrying channel sees its pattern, and the corner that shows it."""

    centre: Array
    stack: Stack
    norm: Fraction
    place: tuple[int, int, int]
    pattern: Array
    witness: tuple[Fraction, ...]

    @classmethod
    def draw(
        cls,
        centre: list[Fraction],
        epsilon: Fraction,
        knobs: Knobs,
        rng: np.random.Generator,
        *,
        waits: bool = True,
    ) -> _Features:
        """`waits`: the carrying channel is silent but near the corner; else it is always active."""
        size = knobs.size
        image = np.array([float(x) for x in centre]).reshape(1, size, size)
        units = [floor(x * 2**WEIGHT_BITS) for x in (knobs.front, *[knobs.contraction] * knobs.depth)]
        carriers = rng.integers(knobs.channels, size=knobs.depth + 1)
        signs = character(rng)
        inside = min(2, (size - 1) // 2)
        row, column = rng.integers(inside, size - inside, size=2)
        stack, norm, value = Stack(), Fraction(1), image
        pattern = np.zeros_like(image)
        for layer, carrier in enumerate(carriers):
            before = int(carriers[layer - 1]) if layer else 0
            inputs = knobs.channels if layer else 1
            weight = random_filters(knobs.channels, inputs, units[layer], rng)
            weight[carrier] = 0.0
            weight[carrier, before] = carrying_filter(units[layer], signs, rng, spread=layer < 2)
            norm *= Fraction(units[layer], 2**WEIGHT_BITS)
            responses = convolve(value, weight)
            bias = _biases(responses, float(norm * epsilon), knobs.unstable, rng)
            bias[carrier] = 0.0
            if layer == 0:  # always active, so that the pattern is linear in the pixels
                bias[carrier] = np.ceil(float(norm * (1 + epsilon)))
            if layer == 1:
                one = np.zeros((1, size, size))
                one[0, row, column] = 1.0
                pattern = pull_back(
                    pull_back(one, weight[[carrier]][:, [before]]), stack.weights[0][[before]]
                )
                reach = float(epsilon) * abs(pattern).sum()
                bias[carrier] = (
                    -np.float32(responses[carrier, row, column] + reach * (1 - knobs.cut))
                    if waits
                    else _on_grid(1.25 * float(norm * epsilon) - responses[carrier].min())
                )
            stack = stack.then(weight, bias)
            value = np.maximum(responses + bias[:, None, None], 0.0)
        radius = dyadic(float(epsilon) * (1 - knobs.cut / 4), POINT_BITS)
        witness = towards(centre, pattern.flat, radius)
        found = cls(image, stack, norm, (int(carriers[-1]), int(row), int(column)), pattern, witness)
        return found if waits else found._with_kinks(int(carriers[-2]), epsilon, knobs, rng)

    def _with_kinks(
        self, before: int, epsilon: Fraction, knobs: Knobs, rng: np.random.Generator
    ) -> _Features:
        """Some channels of the last layer pass on the carrying channel before.

        Each has the kink of one place at the centre: towards the corner it moves fully, else not at all.
        """
        lower = Stack(self.stack.weights[:-1], self.stack.biases[:-1])
        weight, bias = self.stack.weights[-1].copy(), self.stack.biases[-1].copy()
        at_centre = lower(self.centre)[before]
        moved = lower(self._corner(epsilon))[before] - at_centre
        full = np.argwhere(np.abs(moved) >= FULLY * np.abs(moved).max())
        others = [c for c in rng.permutation(knobs.channels) if c != self.place[0]]
        norm = np.abs(weight[0]).sum()
        for channel in others[: round(knobs.unstable * knobs.channels)]:
            row, column = rng.choice(full)
            sign = np.sign(moved[row, column])
            weight[channel] = 0.0
            weight[channel, before, KERNEL // 2, KERNEL // 2] = sign * norm
            bias[channel] = _on_grid(-sign * norm * at_centre[row, column])
        stack = Stack((*lower.weights, weight), (*lower.biases, bias))
        return replace(self, stack=stack)

    def _corner(self, epsilon: Fraction) -> Array:
        """The corner with the signs of the pattern, continued over the whole image."""
        _, row, column = self.place
        size, signs = int(self.centre.shape[1]), np.sign(self.pattern[0])
        down, right = (
            signs[row, column] * signs[row - 1, column],
            signs[row, column] * signs[row, column - 1],
        )
        return self.centre + float(epsilon) * np.outer(down ** np.arange(size), right ** np.arange(size))

    def moves(self, epsilon: Fraction) -> tuple[Array, Array]:
        """The features at the centre, flat, and how far each moves to the corner."""
        at_centre = self.stack(self.centre).reshape(-1)
        return at_centre, self.stack(self._corner(epsilon)).reshape(-1) - at_centre

    def build(self, rows: Array, offsets: list[Fraction]) -> bytes:
        """The network with this last layer."""
        builder = ModelBuilder(list(self.centre.shape))
        self.stack.append_to(builder)
        return builder.flatten().affine(rows, offsets).build(len(offsets))

    @property
    def peak(self) -> float:
        """The pattern's feature at the witness."""
        image = np.array([float(x) for x in self.witness]).reshape(self.centre.shape)
        return float(self.stack(image)[self.place])

    @property
    def index(self) -> int:
        """The index of the pattern's place among the flattened features."""
        channel, row, column = self.place
        size = int(self.centre.shape[1])
        return (channel * size + row) * size + column

    def highest(self, rows: Array, offsets: list[Fraction]) -> int:
        """Which of these classes has the highest score at the centre."""
        seen = self.stack(self.centre).reshape(-1)
        scores = rows @ seen + np.array(offsets, dtype=np.float64)
        return int(np.argmax(scores))

    def agreement(self, row: Array) -> float:
        """How well a step down the gradient of row·Φ at the centre points to the pattern, from −1 to 1."""
        slope = row.reshape(-1, *self.centre.shape[1:])
        step = -np.sign(self.stack.gradient(self.centre, slope))
        return float((step * self.pattern).sum() / abs(self.pattern).sum())


@dataclass(frozen=True)
class _Head:
    """Rows of the last layer without the pattern, offsets of all classes but the first, and the rival."""

    background: Array
    offsets: list[Fraction]
    rival: int

    @classmethod
    def draw(cls, features: _Features, knobs: Knobs, rng: np.random.Generator) -> _Head:
        count = knobs.channels * knobs.size**2
        units = [split_evenly(2**WEIGHT_BITS, rng.standard_normal(count)) for _ in range(knobs.classes)]
        rows = np.array(units, dtype=np.float64) / 2**WEIGHT_BITS
        offsets = [Fraction(0)] * knobs.classes
        if knobs.centred:
            rows[1:] = 0.0
        else:
            offsets[1:] = [dyadic(x, BIAS_BITS) for x in rng.uniform(-0.5, 0.5, size=knobs.classes - 1)]
        for turned in (rows, 0.0 - rows):
            rival = features.highest(turned[1:], offsets[1:]) + 1
            if features.agreement(turned[0] - turned[rival]) <= MOST_AGREEMENT:
                return cls(turned, offsets, rival)
        raise Unusable("the gradient leads to the twin's counterexample")

    @classmethod
    def reading_carriers(
        cls, features: _Features, epsilon: Fraction, knobs: Knobs, rng: np.random.Generator
    ) -> _Head:
        """Class 0 reads all features a little, and those that one corner moves fully a lot.

        Of that, one half is at the kinks, the other half where the features are linear.
        """
        units, count = 2**WEIGHT_BITS // CARRIED, knobs.channels * knobs.size**2
        rows = np.array(
            [split_evenly(units, rng.standard_normal(count)) for _ in range(knobs.classes)],
            dtype=np.float64,
        )
        if knobs.centred:
            rows[1:] = 0.0
        at_centre, moved = features.moves(epsilon)
        shares = -np.sign(moved) * rng.uniform(0.5, 1.0, size=count)
        shares[np.abs(moved) < FULLY * np.abs(moved).max()] = 0.0
        kinked = at_centre < 2.0 ** (1 - BIAS_BITS)
        for part in (kinked, ~kinked):
            shares[part] /= max(float(np.abs(shares[part]).sum()), 1e-9)
        rows[0] += np.array(split_evenly(2**WEIGHT_BITS - units, shares))
        return cls(rows / 2**WEIGHT_BITS, [Fraction(0)] * knobs.classes, 1)

    def offset_for(self, rows: Array, scores: Sequence[Fraction], move: Fraction) -> Fraction:
        """The offset with which class 0 leads each class, from these scores, by all that can be lost.

        `move` is how far any feature may move; `scores` leave class 0's offset out.
        """
        first, *others = exactly(rows)
        return max(
            fraction(abs(first - row).sum()) * move + score - scores[0]
            for row, score in zip(others, scores[1:], strict=True)
        )

    def with_pattern(self, lost: Fraction, features: _Features, *, centred: bool) -> Array:
        """The rows with the pattern's weight: at the witness it costs class 0 at least `lost`."""
        weight = lost / Fraction(features.peak)
        rows, place = self.background.copy(), (0 if centred else self.rival, features.index)
        before = Fraction(float(rows[place]))
        rows[place] = float32_below(before - weight) if centred else float32_above(before + weight)
        return rows


def _violation(knobs: Knobs, scores: Sequence[Fraction]) -> Fraction:
    """By how much class 0 should lose at the twin's counterexample."""
    if knobs.slack < EDGE:
        return Fraction(knobs.slack)
    return max(Fraction(knobs.slack), VIOLATION_SHARE * max(abs(score) for score in scores))


def _biases(responses: Array, move: float, unstable: float, rng: np.random.Generator) -> Array:
    """For each channel: the middle of its responses at the centre brought to 0, or all kept above 0.

    `move` is how far a response may move over the box.
    """
    flat = responses.reshape(len(responses), -1)
    at_kink = rng.uniform(size=len(flat)) < unstable
    levels = np.where(at_kink, np.median(flat, axis=1), flat.min(axis=1) - 1.25 * move)
    return _on_grid(-levels)


def _on_grid(values: Any) -> Array:
    """The next multiples of 2^-BIAS_BITS."""
    biases: Array = np.ceil(values * 2**BIAS_BITS) / 2**BIAS_BITS
    return biases
