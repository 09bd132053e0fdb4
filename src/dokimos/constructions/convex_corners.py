"""Convex corners: concave margins whose minimum lies at one corner of the box out of very many."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, Unusable
from dokimos.constructions.draft import Draft
from dokimos.constructions.knobs import knob
from dokimos.constructions.robustness import (
    ball,
    first_class_loses,
    float32_above,
    float32_below,
    inward,
    random_point,
    split_evenly,
)
from dokimos.instances.model import Certificate
from dokimos.networks.builder import ModelBuilder

WEIGHT_STEPS = 2**8
MIX_STEPS = 2**4
#: How far inside the box the twin's counterexample lies, as a share of the radius.
INSET = Fraction(1, 64)
#: A hinge's value at the centre, in sixteenths of its reach there: every hinge is off around the centre,
#: and on near the corner that its weights point to, so that a gradient shows the nearest corner at best.
LIFTS = range(-11, -3)
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Knobs:
    """The knobs of convex corners."""

    inputs: int = knob(32, "how many inputs", least=2, most=1000)
    block: int = knob(8, "how many inputs a hinge may tie together", least=2, most=12)
    hinges: int = knob(12, "how many hinges for each block", least=1, most=256)
    scale: float = knob(1.0, "the sum of a hinge's absolute weights", least=1e-4, most=1e6)
    margin: float = knob(
        0.02, "how far class 0 stays above the others, relative to scale", least=1e-6, most=10.0
    )
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)


class ConvexCorners(Construction[Knobs]):
    """Class 0 scores −Σ a_j·h_j, class k scores Σ c_kj·h_j − β_k, with hinges h_j and a_j, c_kj > 0.

    Each hinge (v_j·x + b_j)⁺ reads the inputs of one block, is off around the centre and on near one
    corner of the block. The margin β_k − Σ (a_j + c_kj)·h_j is concave: its minimum is the sum of the
    blocks' minima over their corners, and β_k is that plus the margin. In the twin β₁ is smaller, so that
    class 1 wins near its own best corner, and hardly elsewhere.
    """

    family: ClassVar[str] = "convex-corners"
    summary: ClassVar[str] = "a concave margin whose minimum lies at one of very many corners"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the hinges; only β₁ differs between the two drafts."""
        epsilon = inward(knobs.epsilon)
        centre = random_point(knobs.inputs, rng)
        hinges = _Hinges.draw(centre, epsilon, knobs, rng)
        others = knobs.classes - 1
        own = rng.integers(1, MIX_STEPS // 2, size=len(hinges.biases))
        mixes = [own + rng.integers(1, MIX_STEPS, size=len(own)) for _ in range(others)]
        tops = [hinges.best_corner(mix) for mix in mixes]
        margin = Fraction(knobs.margin) * hinges.scale
        thresholds = [float32_above(value + margin) for value, _ in tops]
        shrunk = tuple(x + sign * epsilon * (1 - INSET) for x, sign in zip(centre, tops[0][1], strict=True))
        lowered = float32_below(hinges.value(mixes[0], shrunk) - margin)
        if lowered <= 0:
            raise Unusable("the counterexample cannot be hidden: the box is too small for the margin")
        property_ = first_class_loses(ball(centre, epsilon), knobs.classes)

        def build(betas: list[Fraction]) -> bytes:
            head = [[Fraction(-int(a), MIX_STEPS) for a in own]]
            head += [
                [Fraction(int(m - a), MIX_STEPS) for m, a in zip(mix, own, strict=True)] for mix in mixes
            ]
            return (
                ModelBuilder([len(centre)])
                .affine(hinges.weights, hinges.biases)
                .relu()
                .affine(head, [Fraction(0), *[-beta for beta in betas]])
                .build(knobs.classes)
            )

        return (
            Draft(build(thresholds), property_, Certificate("convex-corners")),
            Draft(build([lowered, *thresholds[1:]]), property_, Certificate("witness"), shrunk),
        )


@dataclass(frozen=True)
class _Hinges:
    """The hinges, their inputs in blocks, and exact values of nonnegative mixtures of them."""

    centre: list[Fraction]
    epsilon: Fraction
    scale: Fraction
    blocks: list[list[int]]
    weights: list[list[Fraction]]
    biases: list[Fraction]
    block_of: list[int]

    @classmethod
    def draw(
        cls, centre: list[Fraction], epsilon: Fraction, knobs: Knobs, rng: np.random.Generator
    ) -> _Hinges:
        order = [int(i) for i in rng.permutation(len(centre))]
        blocks = [order[i : i + knobs.block] for i in range(0, len(order), knobs.block)]
        # A power of two near the scale keeps weights, and their products with the centre, exact.
        scale = Fraction(2) ** round(np.log2(knobs.scale))
        weights, biases, block_of = [], [], []
        for number, block in enumerate(blocks):
            for _ in range(knobs.hinges):
                row = [Fraction(0)] * len(centre)
                for i, k in zip(
                    block, split_evenly(WEIGHT_STEPS, rng.standard_normal(len(block))), strict=True
                ):
                    row[i] = scale * Fraction(k, WEIGHT_STEPS)
                middle = sum((w * x for w, x in zip(row, centre, strict=True)), Fraction(0))
                lift = scale * epsilon * Fraction(int(rng.choice(LIFTS)), 16)
                weights.append(row)
                biases.append(lift - middle)
                block_of.append(number)
        return cls(centre, epsilon, scale, blocks, weights, biases, block_of)

    def best_corner(self, mix: NDArray[np.int64]) -> tuple[Fraction, list[int]]:
        """The largest value of Σ mix_j·h_j / MIX_STEPS over the box, and the signs of a corner there."""
        signs = [0] * len(self.centre)
        for number, block in enumerate(self.blocks):
            mine = [j for j, b in enumerate(self.block_of) if b == number]
            corners = 2 * ((np.arange(2 ** len(block))[:, None] >> np.arange(len(block))) & 1) - 1
            slopes = np.array([[float(self.weights[j][i]) for i in block] for j in mine])
            middles = np.array([float(self._at_centre(j)) for j in mine])
            hinges = np.maximum(corners @ slopes.T * float(self.epsilon) + middles, 0.0)
            best = corners[int(np.argmax(hinges @ mix[mine]))]
            for i, sign in zip(block, best, strict=True):
                signs[i] = int(sign)
        corner = tuple(x + s * self.epsilon for x, s in zip(self.centre, signs, strict=True))
        return self.value(mix, corner), signs

    def value(self, mix: NDArray[np.int64], point: tuple[Fraction, ...]) -> Fraction:
        """Σ mix_j·h_j / MIX_STEPS at a point, exactly."""
        total = Fraction(0)
        for m, row, bias in zip(mix, self.weights, self.biases, strict=True):
            inside = bias + sum((w * x for w, x in zip(row, point, strict=True) if w), Fraction(0))
            total += int(m) * max(inside, Fraction(0))
        return total / MIX_STEPS

    def _at_centre(self, hinge: int) -> Fraction:
        row = self.weights[hinge]
        return self.biases[hinge] + sum((w * x for w, x in zip(row, self.centre, strict=True)), Fraction(0))
