"""Exclusive pairs: in each pair of hinges one is always active, though each alone may be off."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.base import Construction, dyadic
from dokimos.constructions.draft import Draft, knob
from dokimos.constructions.parts.robustness import (
    BOUND_BITS,
    ball,
    first_class_loses,
    inward,
    random_point,
    split_evenly,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate

WEIGHT_BITS = 12
BIAS_BITS = 22
Matrix = NDArray[np.int64]


@dataclass(frozen=True)
class Knobs:
    """The knobs of exclusive pairs."""

    inputs: int = knob(20, "how many inputs", least=2, most=1000)
    pairs: int = knob(
        8, "how many pairs of hinges; the minimum over the pairs is computed by a tree", least=1, most=512
    )
    gamma: float = knob(0.001, "half the overlap of a pair; the margin is gamma/2", least=1e-6, most=1e4)
    epsilon: float = knob(0.25, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)
    offset: float = knob(
        0.8,
        "where the twin's slab lies, from the centre of the box (0) to its faces (1)",
        least=0.05,
        most=0.95,
    )
    scale: float = knob(
        1.0, "the sum of a hinge's absolute weights, rounded to a power of two", least=1.0, most=2.0**20
    )


class ExclusivePairs(Construction[Knobs]):
    """Class 0 scores min over pairs p of max(z₁⁺, z₂⁺), z₁ = γ + u_p, z₂ = γ − u_p; the others score γ/2.

    u_p = w_p·(x − x₀) with ‖w_p‖₁ = s, so |u_p| <= s·ε, and z₁ + z₂ = 2γ makes every pair score at least
    γ. The first pair is off centre: u = w·(x − x₀) − offset·s·ε. In the twin its two biases have −γ in
    place of γ, so it scores 0 in the slab |u| <= γ, where class 0 loses by γ/2.
    """

    family: ClassVar[str] = "exclusive-pairs"
    summary: ClassVar[str] = "pairs of ReLUs of which one is always active; a proof must see them together"
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw the directions; only the first pair's biases differ between the two drafts."""
        epsilon = inward(knobs.epsilon)
        # A power of two: weights and biases are as exact in float32 as with a scale of 1.
        scale = Fraction(2) ** round(np.log2(knobs.scale))
        gamma = dyadic(Fraction(knobs.gamma) / scale, BIAS_BITS)
        shift = dyadic(knobs.offset * float(epsilon), BOUND_BITS)
        if not 0 < gamma < epsilon or shift + 2 * gamma >= epsilon:
            raise ConstructionFailed(
                f"{self.family}: gamma = {knobs.gamma:g} does not fit epsilon = {knobs.epsilon:g}, "
                f"offset = {knobs.offset:g} and scale = {float(scale):g}: 2·gamma/scale must lie between 0 "
                "and (1 - offset)·epsilon."
            )
        centre = random_point(knobs.inputs, rng)
        directions = [
            [
                Fraction(k, 2**WEIGHT_BITS)
                for k in split_evenly(2**WEIGHT_BITS, rng.standard_normal(len(centre)))
            ]
            for _ in range(knobs.pairs)
        ]
        property_ = first_class_loses(ball(centre, epsilon), knobs.classes)
        network = _Network(centre, directions, gamma=gamma, shift=shift, scale=scale, classes=knobs.classes)
        witness = tuple(x + shift * _sign(w) for x, w in zip(centre, directions[0], strict=True))
        return (
            Draft(
                network.build(first=gamma),
                property_,
                Certificate("slopes-and-splits", {"slopes": network.slopes()}),
            ),
            Draft(network.build(first=-gamma), property_, Certificate("witness"), witness),
        )


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


class _Network:
    """The layers: hinges, the maximum of each pair, and a tree of minima."""

    def __init__(
        self,
        centre: list[Fraction],
        directions: list[list[Fraction]],
        *,
        gamma: Fraction,
        shift: Fraction,
        scale: Fraction,
        classes: int,
    ) -> None:
        self._centre, self._directions = centre, directions
        self._gamma, self._shift, self._scale, self._classes = gamma, shift, scale, classes
        self._layers, self._top = _aggregation(len(directions))

    def build(self, *, first: Fraction) -> bytes:
        """The network whose first pair has `first` in place of γ; both are given for a scale of 1."""
        rows, biases = [], []
        for p, w in enumerate(self._directions):
            middle = sum((a * x for a, x in zip(w, self._centre, strict=True)), Fraction(0))
            middle += self._shift if p == 0 else 0
            level = first if p == 0 else self._gamma
            rows += [[sign * self._scale * a for a in w] for sign in (1, -1)]
            biases += [self._scale * (level - sign * middle) for sign in (1, -1)]
        builder = ModelBuilder([len(self._centre)]).affine(rows, biases).relu()
        for layer in self._layers:
            builder.affine(layer, np.zeros(len(layer))).relu()
        head = np.zeros((self._classes, self._top.shape[1]), dtype=np.int64)
        head[0] = self._top[0]
        scores = [Fraction(0), *[self._scale * self._gamma / 2] * (self._classes - 1)]
        return builder.affine(head, scores).build(self._classes)

    def slopes(self) -> list[str]:
        """The factors: ½ where a hinge enters the maximum of its pair, 1 elsewhere."""
        pairs = len(self._directions)
        rest = sum(len(layer) for layer in self._layers[1:])
        return ["1"] * (2 * pairs) + ["1", "1/2"] * pairs + ["1"] * rest


def _aggregation(pairs: int) -> tuple[list[Matrix], Matrix]:
    """The hidden layers after the hinges, and the row that reads the result off the last.

    max(a, b) = b + (a − b)⁺ and min(a, b) = a − (a − b)⁺; everything carried on is nonnegative, so the
    ReLU leaves it as it is.
    """
    first = np.zeros((2 * pairs, 2 * pairs), dtype=np.int64)
    read = np.zeros((pairs, 2 * pairs), dtype=np.int64)
    for p in range(pairs):
        a, b = 2 * p, 2 * p + 1
        first[a, b] = 1
        first[b, a], first[b, b] = 1, -1
        read[p, a] = read[p, b] = 1
    layers = [first]
    while len(read) > 1:
        count = len(read)
        rows = [row for i in range(0, count - 1, 2) for row in (read[i], read[i] - read[i + 1])]
        if count % 2:
            rows.append(read[-1])
        layers.append(np.array(rows))
        read = np.zeros(((count + 1) // 2, len(rows)), dtype=np.int64)
        for i in range(count // 2):
            read[i, 2 * i], read[i, 2 * i + 1] = 1, -1
        if count % 2:
            read[-1, -1] = 1
    return layers, read
