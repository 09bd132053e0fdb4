"""Softmax attention whose tokens attend to the same tokens everywhere in the box."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb, sqrt
from typing import ClassVar

import numpy as np

from dokimos.checker.proofs.attention import softmax_bound
from dokimos.constructions.base import Construction, dyadic
from dokimos.constructions.draft import Draft, knob
from dokimos.constructions.parts.needles import Hinges, NeedleMaker, hinges_knob, offset_knob, slack_knob
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.writing.builder import ModelBuilder

WEIGHT_BITS = 6
FACTOR_BITS = 12
#: The projections of queries and keys differ from a signed permutation by at most this many steps.
PROJECTION_NOISE = 2
#: Of this many candidates, the token farthest from those chosen before is taken.
CANDIDATES = 32
Matrix = list[list[Fraction]]


@dataclass(frozen=True)
class Knobs:
    """The knobs of softmax attention."""

    tokens: int = knob(8, "how many tokens", least=2, most=64)
    width: int = knob(8, "how many inputs a token has", least=2, most=64)
    value_width: int = knob(4, "how many values a token has", least=1, most=64)
    alpha: float = knob(5.0, "scale of the scores; they are divided by √width", least=0.01, most=100.0)
    epsilon: float = knob(0.01, "radius of the box", least=0.0005, most=1.0)
    slack: float = slack_knob()
    classes: int = knob(5, "how many classes", least=2, most=100)
    hinges: int = hinges_knob()
    offset: float = offset_knob()


class SoftmaxAttention(Construction[Knobs]):
    """One head of attention, softmax(α/√d·Q·Kᵀ)·V, an affine head, and hinges beside it (see `needles`).

    Tokens have entries ±¼ and ±½, equally many of each, so all are equally long and every token attends
    most to itself; W_Q and W_K are one signed permutation, each with its own small noise. The bias of
    class k puts the margin at the centre at slack times its proven drift over the box. In the twin the
    bias of one hinge is higher. The `edge` setting is slack = 1.000001.
    """

    family: ClassVar[str] = "softmax-attention"
    summary: ClassVar[str] = (
        "softmax attention with a fixed order of scores; a proof must bound how it drifts"
    )
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw tokens and weights; only the bias of one hinge differs between the two drafts."""
        return self._drawn(knobs, rng).make(rng)

    def alone(self, knobs: Knobs, rng: np.random.Generator) -> Draft:
        """The attention and its head, without hinges."""
        return self._drawn(knobs, rng).alone()

    def _drawn(self, knobs: Knobs, rng: np.random.Generator) -> NeedleMaker:
        weights = _Weights.draw(knobs, rng)
        centre = [x for token in _tokens(knobs, rng) for x in token]
        return NeedleMaker(weights.build, softmax_bound, "softmax-attention", centre, knobs)


def _tokens(knobs: Knobs, rng: np.random.Generator) -> Matrix:
    """Distinct tokens of equal length, kept apart."""
    half = knobs.width // 2
    if knobs.tokens > 2**knobs.width * comb(knobs.width, half) // 2:
        raise ConstructionFailed(
            f"{SoftmaxAttention.family}: there are too few tokens of width {knobs.width} that attend to "
            f"themselves for tokens = {knobs.tokens}; raise width or lower tokens."
        )
    sizes = np.array([0.25] * half + [0.5] * (knobs.width - half))
    chosen: list[np.ndarray] = []
    for _ in range(knobs.tokens):
        candidates = [
            rng.permutation(sizes) * rng.choice([-1.0, 1.0], size=knobs.width) for _ in range(CANDIDATES)
        ]
        distances = [min((float(((c - t) ** 2).sum()) for t in chosen), default=1.0) for c in candidates]
        chosen.append(candidates[int(np.argmax(distances))])
    return [[Fraction(float(x)) for x in token] for token in chosen]


def _steps(rng: np.random.Generator, shape: tuple[int, int], reach: int) -> Matrix:
    """Random multiples of 2^-WEIGHT_BITS with at most `reach` steps."""
    drawn = rng.integers(-reach, reach + 1, size=shape)
    return [[Fraction(int(k), 2**WEIGHT_BITS) for k in row] for row in drawn]


@dataclass(frozen=True)
class _Weights:
    """The constants of the network but for the biases of the classes and the hinges."""

    tokens: int
    queries: Matrix
    keys: Matrix
    values: Matrix
    factor: Fraction
    head: Matrix

    @classmethod
    def draw(cls, knobs: Knobs, rng: np.random.Generator) -> _Weights:
        width, steps = knobs.width, 2**WEIGHT_BITS
        places, signs = rng.permutation(width), rng.choice([-1, 1], size=width)

        def near_permutation() -> Matrix:
            rows = _steps(rng, (width, width), PROJECTION_NOISE)
            for i, (place, sign) in enumerate(zip(places, signs, strict=True)):
                rows[i][place] += int(sign)
            return rows

        return cls(
            tokens=knobs.tokens,
            queries=near_permutation(),
            keys=near_permutation(),
            values=_steps(rng, (width, knobs.value_width), max(1, round(steps / sqrt(width)))),
            factor=dyadic(knobs.alpha / sqrt(width), FACTOR_BITS),
            head=_steps(rng, (knobs.classes, knobs.tokens * knobs.value_width), steps),
        )

    def build(self, biases: list[Fraction], hinges: Hinges) -> bytes:
        builder = ModelBuilder([self.tokens, len(self.queries)])
        keys = builder.times_matrix(self.keys).transpose().last
        values = builder.resume("X").times_matrix(self.values).last
        hinge_values = hinges.append_to(builder)
        builder.resume("X").times_matrix(self.queries).times(keys).scaled(self.factor).softmax()
        head = [[*row, *extra] for row, extra in zip(self.head, hinges.head, strict=True)]
        builder.times(values).flatten()
        if hinge_values:
            builder.beside(hinge_values)
        return builder.affine(head, biases).build(len(biases))
