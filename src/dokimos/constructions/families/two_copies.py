"""Two copies of a network: with more of one feature the decision must not fall, a law on two runs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable, by_search, dyadic
from dokimos.constructions.draft import Draft, knob
from dokimos.engine.outcome import NoProof
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature

Array = NDArray[np.float64]

WEIGHT_BITS, POINT_BITS, LEVEL_BITS = 8, 8, 16
#: How far the feature is raised beyond the least, and how much of [0, 1] a range may leave out at each end.
_FURTHER, _EDGE = Fraction(1, 4), 16
#: How many times the slack the slope may exceed the steepest fall by: the first that is proven is taken.
_TIMES = (1, 2, 4, 8, 16, 32)
#: Pieces that a proof may have, and points that the steepest fall is looked for at.
_MOST_PIECES, _POINTS, _ROUNDS = 400, 2000, 12
#: What a proof leaves for the rounding of float32.
_LEAST_MARGIN = 2.0**-12


@dataclass(frozen=True)
class Knobs:
    """The knobs of two copies."""

    inputs: int = knob(5, "how many features a record has", least=2, most=50)
    width: int = knob(
        8, "how many ReLUs a hidden layer of one copy has, beside one that is always on", least=2, most=64
    )
    depth: int = knob(2, "how many hidden layers", least=1, most=4)
    rise: float = knob(0.25, "the least by which the feature is raised", least=1 / 256, most=0.5)
    slack: float = knob(
        0.1, "how far the slope that is added is from the steepest fall, as a share", least=0.01, most=2.0
    )


class TwoCopies(Construction[Knobs]):
    """Score 1 − score 0 of a network is g(x) = g₀(x) + a·x₀ − c, with g₀ a random ReLU network.

    The instance has two copies, of x and of x with d more of feature 0, d >= rise. Unsafe: the first copy
    decides 1, g(x) >= 0, and the second decides 0, g(x + d·e₀) <= 0. Where a exceeds how steeply g₀ falls
    anywhere, g rises, and that cannot be. In the twin, a is less than the steepest fall that was found, by
    a quarter of the share `slack`, and c is such that g crosses 0 there: it falls from above 0 to below.

    Neither copy alone settles it; only the difference of the two does (`linear`, with pairs).
    """

    family: ClassVar[str] = "two-copies"
    summary: ClassVar[str] = "a law on two runs: more of a feature must not lower the decision"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw g₀, find where it falls the most, and choose a and c; only a differs between the drafts."""
        network = _Network.draw(knobs, rng)
        box = _box(knobs, rng)
        point, fall = network.steepest_fall(box, rng)
        low = dyadic(float(fall) / (1 + knobs.slack / 4), LEVEL_BITS)
        if fall <= 0.05 or not 0 < low < fall:
            raise Unusable("the network falls nowhere")
        first, second = network.outputs(low, point)
        level = dyadic((first + second) / 2, LEVEL_BITS)
        if not second < level < first:
            raise Unusable("the network does not fall by enough")
        question = _question(box)
        twin = Draft(network.build(low, level), question, Certificate("witness"), point)
        for times in _TIMES:
            slope = dyadic(float(fall) * (1 + times * knobs.slack), LEVEL_BITS)
            content = network.build(slope, level)
            with suppress(Unusable):
                proof = by_search(content, question, most_steps=_MOST_PIECES, least_margin=_LEAST_MARGIN)
                return Draft(content, question, proof), twin
        raise NoProof("no slope that was tried is proven in a few pieces")


def _box(knobs: Knobs, rng: np.random.Generator) -> Box:
    """A range of each feature, and of how much feature 0 is raised."""
    edges = rng.integers(0, _EDGE, size=(2, knobs.inputs))
    lower = [Fraction(int(edge), 2**POINT_BITS) for edge in edges[0]]
    upper = [1 - Fraction(int(edge), 2**POINT_BITS) for edge in edges[1]]
    rise = dyadic(knobs.rise, POINT_BITS)
    return Box((*lower, rise), (*upper, rise + _FURTHER))


def _question(box: Box) -> Property:
    """Outputs 0 and 1 are the scores of the first copy, 2 and 3 those of the second."""
    zero, one = Fraction(0), Fraction(1)
    unsafe = (Linear((), ((0, one), (1, -one)), zero), Linear((), ((2, -one), (3, one)), zero))
    signature = Signature("f", "X", (1, box.size), "Y", (1, 4))
    return Property((signature,), (Case(box, (unsafe,)),))


@dataclass(frozen=True)
class _Network:
    """g₀: weights and biases of the hidden layers, and the weights of its one output."""

    layers: tuple[tuple[Array, Array], ...]
    head: Array

    @classmethod
    def draw(cls, knobs: Knobs, rng: np.random.Generator) -> _Network:
        """Weights on a grid, every ReLU with its kink at a random point of the box."""
        layers, size, points = [], knobs.inputs, rng.random((knobs.width, knobs.inputs))
        for _ in range(knobs.depth):
            weights = _on_grid(rng.normal(size=(knobs.width, size)) * 2 / np.sqrt(size))
            biases = _on_grid(-(weights * points).sum(axis=1))
            layers.append((weights, biases))
            points = np.maximum(points @ weights.T + biases, 0.0)
            size = knobs.width
        return cls(tuple(layers), _on_grid(rng.normal(size=knobs.width) * 2 / np.sqrt(knobs.width)))

    def values(self, points: Array) -> Array:
        """g₀ at many points, in doubles: enough to look for where it falls."""
        for weights, biases in self.layers:
            points = np.maximum(points @ weights.T + biases, 0.0)
        return np.asarray(points @ self.head)

    def steepest_fall(self, box: Box, rng: np.random.Generator) -> tuple[tuple[Fraction, ...], Fraction]:
        """A point inside the box where g₀ falls the most for each unit of rise, and how much that is."""
        grid = 2.0**POINT_BITS
        low, high = np.array(box.lower, dtype=float) + 1 / grid, np.array(box.upper, dtype=float) - 1 / grid
        tried = low + rng.random((_POINTS, box.size)) * (high - low)
        for number in range(_ROUNDS):
            tried = np.clip(np.round(tried * grid) / grid, low, high)
            raised = tried[:, :-1].copy()
            raised[:, 0] += tried[:, -1]
            falls = (self.values(tried[:, :-1]) - self.values(raised)) / tried[:, -1]
            order = np.argsort(-falls, kind="stable")
            best, fall = tried[order[0]], float(falls[order[0]])
            near = np.repeat(tried[order[:50]], _POINTS // 50, axis=0)
            near[1:] += rng.normal(size=near[1:].shape) * 0.2 / 2**number
            tried = near
        return tuple(Fraction(float(x)) for x in best), dyadic(fall, LEVEL_BITS)

    def outputs(self, slope: Fraction, point: tuple[Fraction, ...]) -> tuple[Fraction, Fraction]:
        """g₀ + slope·x₀ of both copies at a point, exactly."""
        found = evaluate(read_onnx(self.build(slope, Fraction(0))), point)
        return found.lower[1], found.lower[3]

    def build(self, slope: Fraction, level: Fraction) -> bytes:
        """Both copies side by side; in each, one ReLU that is always on hands x₀ on."""
        inputs = self.layers[0][0].shape[1]
        builder = ModelBuilder([inputs + 1])
        for number, (weights, biases) in enumerate(self.layers):
            width, taken = weights.shape
            own = np.zeros((width + 1, taken + bool(number)))
            own[:width, :taken] = weights
            own[width, -1 if number else 0] = 1.0
            if number:
                block = np.kron(np.eye(2), own)
                builder = builder.relu()
            else:
                block = np.zeros((2 * (width + 1), inputs + 1))
                block[:, :inputs] = np.vstack([own, own])
                block[width + 1 :, inputs] = own[:, 0]
            builder = builder.affine(block, np.tile([*biases, 0.0], 2))
        head = np.zeros((2, len(self.head) + 1))
        head[1] = [*self.head, float(slope)]
        return builder.relu().affine(np.kron(np.eye(2), head), [0, -level, 0, -level]).build(4)


def _on_grid(values: Array) -> Array:
    return np.asarray(np.round(values * 2**WEIGHT_BITS) / 2**WEIGHT_BITS)
