"""Convex corners: concave margins whose minimum lies at one of the box's very many corners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction
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
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate

WEIGHT_STEPS = 2**8
MIX_STEPS = 2**4
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = Fraction(1, 64)
#: By how much of its score class 1 wins there, at most.
MOST_LOST = Fraction(1, 16)
#: A hinge's value at the centre, in sixteenths of its reach there: every hinge is off around the centre,
#: and on near the corner that its weights point to, so that a gradient shows the nearest corner at best.
LIFTS = range(-11, -3)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Knobs:
    """The knobs of convex corners."""

    inputs: int = knob(32, "how many inputs", least=2, most=1000)
    idle: int = knob(0, "how many of them no hinge reads", least=0, most=998)
    block: int = knob(8, "how many inputs a hinge may tie together", least=2, most=12)
    hinges: int = knob(12, "how many hinges for each block", least=1, most=4096)
    scale: float = knob(1.0, "the sum of a hinge's absolute weights", least=1e-4, most=1e6)
    margin: float = knob(0.02, "by how much class 0 stays above the others", least=1e-8, most=1e6)
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)


class ConvexCorners(Construction[Knobs]):
    """Class 0 scores −Σ a_j·h_j, class k scores Σ c_kj·h_j − β_k, with hinges h_j and a_j, c_kj > 0.

    Each hinge (v_j·x + b_j)⁺ reads the inputs of one block, is off around the centre and on near one
    corner of the block. The margin β_k − Σ (a_j + c_kj)·h_j is concave: its minimum is the sum of the
    blocks' minima over their corners, and β_k is that plus the margin. So the margin is what it is, while
    what intervals lose grows with `scale` and with the hinges. In the twin β₁ is smaller, so that class 1
    wins near its own best corner, and hardly anywhere else, by the margin or by a share of its own score.
    """

    family: ClassVar[str] = "convex-corners"
    summary: ClassVar[str] = "a concave margin whose minimum lies at one of very many corners"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the hinges; only β₁ differs between the two drafts."""
        if knobs.inputs - knobs.idle < 2:
            raise ConstructionFailed(
                f"{self.family}: idle = {knobs.idle} leaves the hinges fewer than 2 of the {knobs.inputs} "
                "inputs; lower it."
            )
        epsilon = inward(knobs.epsilon)
        centre = random_point(knobs.inputs, rng)
        hinges = _Hinges.draw(centre, epsilon, knobs, rng)
        others = knobs.classes - 1
        own = rng.integers(1, MIX_STEPS // 2, size=len(hinges.biases))
        mixes = [own + rng.integers(1, MIX_STEPS, size=len(own)) for _ in range(others)]
        corners = hinges.best_corners(mixes)
        margin = Fraction(knobs.margin)

        tops = [
            hinges.value(mix, towards(centre, signs, epsilon))
            for mix, signs in zip(mixes, corners, strict=True)
        ]
        thresholds = [float32_above(value + margin) for value in tops]
        shrunk = towards(centre, corners[0], epsilon * (1 - INSET))
        height = hinges.value(mixes[0], shrunk)
        lowered = float32_below(height - min(margin, height * MOST_LOST))
        property_ = first_class_loses(ball(centre, epsilon), knobs.classes)

        def build(betas: list[Fraction]) -> bytes:
            head = np.array([-own, *(mix - own for mix in mixes)]) / MIX_STEPS
            return (
                ModelBuilder([len(centre)])
                .affine(hinges.weights, hinges.biases)
                .relu()
                .affine(head, [Fraction(0), *[-beta for beta in betas]])
                .build(knobs.classes)
            )

        files = build(thresholds), build([lowered, *thresholds[1:]])
        return siblings(property_, Certificate("convex-corners"), *files, shrunk)


@dataclass(frozen=True)
class _Hinges:
    """The hinges, their inputs in blocks, and values of nonnegative mixtures of them.

    All numbers are dyadic and share their last bit, of 2^-26·scale at most, while sums of all of them stay
    below 2^25·scale: float64 computes them without rounding.
    """

    centre: Array
    epsilon: float
    scale: Fraction
    blocks: list[list[int]]
    weights: Array
    biases: Array
    block_of: NDArray[np.int64]

    @classmethod
    def draw(
        cls, centre: list[Fraction], epsilon: Fraction, knobs: Knobs, rng: np.random.Generator
    ) -> _Hinges:
        order = [int(i) for i in rng.permutation(len(centre))][: knobs.inputs - knobs.idle]
        blocks = [order[i : i + knobs.block] for i in range(0, len(order), knobs.block)]
        # A power of two near the scale keeps weights, and their products with the centre, exact.
        scale = Fraction(2) ** round(np.log2(knobs.scale))
        count = len(blocks) * knobs.hinges
        block_of = np.repeat(np.arange(len(blocks)), knobs.hinges)
        weights, lifts = np.zeros((count, len(centre))), np.zeros(count)
        for j, number in enumerate(block_of):
            block = blocks[number]
            weights[j, block] = split_evenly(WEIGHT_STEPS, rng.standard_normal(len(block)))
            lifts[j] = rng.choice(LIFTS)
        middle = np.array(centre, dtype=np.float64)
        weights *= float(scale) / WEIGHT_STEPS
        biases = float(scale * epsilon) / 16 * lifts - weights @ middle
        return cls(middle, float(epsilon), scale, blocks, weights, biases, block_of)

    def best_corners(self, mixes: list[NDArray[np.int64]]) -> list[list[int]]:
        """For each mix, the signs of a corner where Σ mix_j·h_j is largest over the box."""
        signs = [[0] * len(self.centre) for _ in mixes]
        at_centre = self.weights @ self.centre + self.biases
        for number, block in enumerate(self.blocks):
            mine = self.block_of == number
            corners = 2.0 * ((np.arange(2 ** len(block))[:, None] >> np.arange(len(block))) & 1) - 1
            slopes = self.weights[mine][:, block]
            hinges = np.maximum(corners @ slopes.T * self.epsilon + at_centre[mine], 0.0)
            heights = hinges @ np.array([mix[mine] for mix in mixes], dtype=np.float64).T
            for own, best in zip(signs, corners[np.argmax(heights, axis=0)], strict=True):
                for i, sign in zip(block, best, strict=True):
                    own[i] = int(sign)
        return signs

    def value(self, mix: NDArray[np.int64], point: Sequence[Fraction]) -> Fraction:
        """Σ mix_j·h_j / MIX_STEPS at a point, exactly."""
        inside = self.weights @ np.array(point, dtype=np.float64) + self.biases
        return Fraction(float(np.maximum(inside, 0.0) @ mix)) / MIX_STEPS
