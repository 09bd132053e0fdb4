"""What networks are built from whose features move no further than the input, and tight in one direction.

Isometries of dyadic numbers, filters that do not see the direction, the largest rates that a residual block
may have, and a head whose lead at the centre is what the features may lose.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import gcd

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.proofs.nonexpansive import root_above
from dokimos.constructions.base import dyadic
from dokimos.constructions.draft import Draft, float32_below, siblings
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate
from dokimos.suites.vnnlib.model import Point, Property

Array = NDArray[np.float64]

#: The weights by which a block subtracts its ReLUs have this many bits.
RATE_BITS = 6
#: Weights of the head are multiples of 2^-HEAD_BITS.
HEAD_BITS = 8
#: Pairs that cancel are this many times as large inside.
GAIN = 8.0
#: The four patterns of a 2×2 window, orthonormal.
HAAR = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2.0


def isometry(count: int, rng: np.random.Generator) -> Array:
    """An orthogonal matrix of dyadic numbers: four channels at a time mixed, then signs and a new order."""
    mixed: Array = np.eye(count)
    order = rng.permutation(count)
    for start in range(0, count - count % 4, 4):
        four = order[start : start + 4]
        mixed[np.ix_(four, four)] = HAAR
    signed: Array = mixed[rng.permutation(count)] * rng.choice([-1.0, 1.0], size=count)
    return signed


def blind_filters(direction: Array, count: int, size: int, taps: int, rng: np.random.Generator) -> Array:
    """Filters [count, channels, size, size] of small integers, every tap orthogonal to `direction`.

    A filter is a sum of pairs of channels (a, b) at one place of the window: n·(q_b, −q_a), with q the
    direction's integers without their common factor; of a channel that the direction leaves out, n alone.
    """
    channels = len(direction)
    scaled = [int(x) for x in direction * 2**HEAD_BITS]
    common = gcd(*scaled) or 1
    whole = np.array(scaled) // common
    filters: Array = np.zeros((count, channels, size, size))
    for row in filters:
        for _ in range(taps // 2):
            i, j = rng.integers(size, size=2)
            a, b = rng.choice(channels, size=2, replace=False)
            n = int(rng.choice([-2, -1, 1, 2]))
            if whole[a] == 0 == whole[b]:
                row[a, i, j] += n
                row[b, i, j] += int(rng.choice([-2, -1, 1, 2]))
            else:
                shared = gcd(int(whole[a]), int(whole[b]))
                row[a, i, j] += n * whole[b] // shared
                row[b, i, j] -= n * whole[a] // shared
    return filters


def rates_of(row_sums: Array) -> Array:
    """For each hidden channel the largest number of RATE_BITS bits below 2 over its row sum."""
    most = 2.0 / np.maximum(row_sums, 1.0) * (1 - 2.0**-20)
    mantissas, exponents = np.frexp(most)
    rates: Array = np.ldexp(np.floor(mantissas * 2**RATE_BITS), exponents - RATE_BITS)
    return rates


@dataclass(frozen=True)
class LeadingHead:
    """Rows of all classes, the offsets of all but the first, and how far the twin's first is lower."""

    rows: Array
    offsets: list[Fraction]
    step: Fraction

    @classmethod
    def draw(
        cls,
        along: Array,
        centre: Array,
        classes: int,
        slack: float,
        reach: Fraction,
        rng: np.random.Generator,
    ) -> LeadingHead:
        """Class 0 leads each class by what it may lose plus the slack, and class 1 by the least.

        `along` is the direction in which the features move as far as they may, `centre` what they are at
        the centre, `reach` how far they may move in the Euclidean norm.
        """
        unit = 2.0 ** -np.ceil(np.log2(np.sqrt(len(along))))
        leads = rng.integers(-1, 2, size=(classes - 1, len(along))) * unit
        leads[0] = along * unit
        first = rng.integers(-1, 2, size=len(along)) * unit
        norms = [root_above(Fraction(float((lead * lead).sum()))) for lead in leads]
        share = 1 + Fraction(slack)
        offsets = [
            float32_below(Fraction(float(lead @ centre)) - max(norm, norms[0]) * reach * share)
            for lead, norm in zip(leads, norms, strict=True)
        ]
        drop = norms[0] * reach
        step = dyadic(drop * (Fraction(slack) + lost_share(slack)), 24)
        return cls(np.concatenate([first[None], first - leads]), offsets, max(step, Fraction(1, 2**20)))

    def pair(self, features: ModelBuilder, question: Property, witness: Point) -> tuple[Draft, Draft]:
        """Both drafts: the features with this head."""
        robust, violated = (
            features.copy().affine(self.rows, [first, *self.offsets]).build(len(self.rows))
            for first in (Fraction(0), -self.step)
        )
        return siblings(question, Certificate("nonexpansive"), robust, violated, witness)


# Twins of families whose theorem is tight in one corner of the box


#: By how much of what the theorem lets it lose class 0 loses in the twin, at most.
MOST_LOST = Fraction(1, 4)
#: The witness is a multiple of 2^-POINT_BITS.
WITNESS_BITS = 20


def lost_share(slack: float) -> Fraction:
    """By how much class 0 loses in the twin's corner, as a share of what the theorem lets it lose."""
    return min(Fraction(slack), MOST_LOST)


def inside_by(epsilon: Fraction, lost: Fraction) -> Fraction:
    """How far the witness is from the centre: inside the box by a quarter of what is lost, if possible."""
    radius = dyadic(epsilon * (1 - lost / 4), WITNESS_BITS)
    return radius if epsilon * (1 - lost / 2) < radius < epsilon else epsilon
