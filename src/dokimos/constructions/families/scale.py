"""Scale: a network that is affine on the box, but passes through units as small as 2^-k."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dokimos.constructions.base import Construction, by_slopes, dyadic
from dokimos.constructions.draft import (
    BOUND_BITS,
    Draft,
    at_least,
    ball,
    dot,
    inward,
    knob,
    random_point,
    siblings,
    split_evenly,
    towards,
    unsafe_where,
)
from dokimos.core.errors import ConstructionFailed
from dokimos.networks.writing.builder import ModelBuilder

WEIGHT_BITS = 10
#: What keeps every unit active on the box: |w·x| <= 2 for ‖w‖₁ = 1 and x in [−1, 2].
OFFSET = 3
#: Where the witness lies, from the centre (0) to the corner (1).
REACH = Fraction(15, 16)
MOST_CASES = 20_000
DENSE, CONVOLUTIONAL, MIXED = 0, 1, 2


@dataclass(frozen=True)
class Knobs:
    """The knobs of scale."""

    exponent: int = knob(24, "k: the hidden units are of size 2^-k", least=0, most=60)
    form: int = knob(DENSE, "0: dense; 1: convolutional; 2: convolutional, then dense", least=0, most=2)
    depth: int = knob(2, "how many layers of ReLUs of that size", least=1, most=4)
    grid: int = knob(2, "the image is grid by grid patches, one unit for each", least=1, most=4)
    patch: int = knob(3, "height and width of a patch", least=1, most=8)
    epsilon: float = knob(0.5, "radius of the box", least=0.01, most=1.0)
    margin: float = knob(
        0.2, "how far the output stays from its threshold, as a share of its range", least=0.01, most=0.4
    )


class Scale(Construction[Knobs]):
    """Y = Σ over patches p of relu(s·(w_p·x_p + 3))/s − const = 2 + Σ w_p·(x_p − c_p) on the box, s = 2^-k.

    ‖w_p‖₁ = 1, so every unit is active on the whole box, the network is affine there, and its range is
    2 ± Pε for P patches. Unsafe is Y >= 2 + (1 + margin)·Pε. In the twin the first bias is larger, by s
    times what Y needs to exceed that near one corner, by as much as it stayed below before.

    Only the size of the numbers is hard here: a tool that uses absolute tolerances, and takes s for 0,
    calls the twin `unsat`. It is hidden from samples, which lie near the centre; gradient search finds it
    at once (10 of 10 draws).
    """

    family: ClassVar[str] = "scale"
    summary: ClassVar[str] = "affine on the box, but through units so small that tolerances swallow them"
    mixes: ClassVar[bool] = False
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw centre and weights; only the first bias differs between the two drafts."""
        units = knobs.grid**2
        if (knobs.depth + 1) ** units > MOST_CASES:
            raise ConstructionFailed(
                f"{self.family}: depth = {knobs.depth} with grid = {knobs.grid} needs a proof with too "
                "many cases; lower one of them."
            )
        epsilon, away = inward(knobs.epsilon), dyadic(knobs.margin * knobs.epsilon, BOUND_BITS)
        side = knobs.grid * knobs.patch
        centre = random_point(side**2, rng)
        shared = _weights(knobs.patch**2, rng)
        drawn = [shared if knobs.form != DENSE else _weights(knobs.patch**2, rng) for _ in range(units)]
        rows = _rows(drawn, knobs.grid, knobs.patch)
        total = [sum((row[i] for row in rows), Fraction(0)) for i in range(side**2)]
        constant = 2 - OFFSET * units - dot(total, centre)
        property_ = unsafe_where([at_least(2 + units * (epsilon + away))], ball(centre, epsilon))
        witness = towards(centre, total, dyadic(REACH * epsilon, BOUND_BITS))

        def build(shift: Fraction) -> bytes:
            # A filter has one bias for all patches: it moves each of them.
            first = OFFSET + (shift * units if knobs.form == DENSE else shift)
            biases = [first, *[Fraction(OFFSET)] * (units - 1)]
            return _network(knobs, shared, rows, biases, constant)

        proof = by_slopes(property_, [1] * (units * knobs.depth))
        return siblings(property_, proof, build(Fraction(0)), build(2 * away), witness)


def _weights(count: int, rng: np.random.Generator) -> list[Fraction]:
    """Weights on the grid whose absolute values sum to 1."""
    return [Fraction(k, 2**WEIGHT_BITS) for k in split_evenly(2**WEIGHT_BITS, rng.standard_normal(count))]


def _rows(weights: list[list[Fraction]], grid: int, patch: int) -> list[list[Fraction]]:
    """For each patch, row-major, its weights as a row over the whole image."""
    side = grid * patch
    rows = []
    for p, own in enumerate(weights):
        image = [[Fraction(0)] * side for _ in range(side)]
        for k, weight in enumerate(own):
            image[p // grid * patch + k // patch][p % grid * patch + k % patch] = weight
        rows.append([x for line in image for x in line])
    return rows


def _network(
    knobs: Knobs,
    shared: list[Fraction],
    rows: list[list[Fraction]],
    biases: list[Fraction],
    constant: Fraction,
) -> bytes:
    """The chosen form; `biases` are the units' before scaling, of which a filter takes the first."""
    scale = Fraction(1, 2**knobs.exponent)
    units, patch = len(rows), knobs.patch
    side = knobs.grid * patch
    identity, zeros = np.eye(units, dtype=np.int64), np.zeros(units, dtype=np.int64)
    if knobs.form == DENSE:
        builder = ModelBuilder([side**2])
        builder.affine([[scale * w for w in row] for row in rows], [scale * b for b in biases]).relu()
    else:
        builder = ModelBuilder([1, side, side])
        kernel = np.array([scale * w for w in shared], dtype=object).reshape(1, 1, patch, patch)
        builder.conv(kernel, [scale * biases[0]], stride=patch).relu()
    if knobs.form == CONVOLUTIONAL:
        for _ in range(knobs.depth - 1):
            builder.conv(np.ones((1, 1, 1, 1), dtype=np.int64), [0]).relu()
    if knobs.form != DENSE:
        builder.flatten()
    if knobs.form != CONVOLUTIONAL:
        for _ in range(knobs.depth - 1):
            builder.affine(identity, zeros).relu()
    return builder.affine([[1 / scale] * units], [constant]).build(1)
