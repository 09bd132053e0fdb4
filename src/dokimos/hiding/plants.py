"""What to hide and where: points with their boxes and labels, some of them with a counterexample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.properties.model import Box, Case, Linear, Point, Property, Signature

#: Inputs lie in [-DOMAIN, DOMAIN]; `epsilon` is a share of it, as in the paper.
DOMAIN = Fraction(1, 10)
#: Points and radii are multiples of 2^-GRID_BITS: exact in float32, and short decimals.
GRID_BITS = 14
#: Counterexamples are planted in the interior: no further out than this share of the radius.
INTERIOR = 0.7
_MOST_TRIES = 1000


@dataclass(frozen=True)
class PlantedPoint:
    """A point whose class should win on its box, except at `plant` (None for a regular point)."""

    centre: Point
    radius: Fraction
    label: int
    plant: Point | None

    @property
    def box(self) -> Box:
        """All inputs within the radius."""
        return Box(tuple(x - self.radius for x in self.centre), tuple(x + self.radius for x in self.centre))

    @property
    def question(self) -> Property:
        """Unsafe: the other class is at least as high."""
        return class_loses(self.box, self.label)


def class_loses(box: Box, label: int, classes: int = 2) -> Property:
    """Unsafe: another class is at least as high as class `label`."""
    others = [k for k in range(classes) if k != label]
    unsafe = tuple(
        (Linear((), tuple(sorted(((label, Fraction(1)), (k, Fraction(-1))))), Fraction(0)),) for k in others
    )
    return Property((Signature("f", "X", (box.size,), "Y", (classes,)),), (Case(box, unsafe),))


def draw_points(
    shape: Sequence[int], *, epsilon: float, planted: int, regular: int, rng: np.random.Generator
) -> tuple[PlantedPoint, ...]:
    """Random points, the planted ones first, pairwise further apart than two radii.

    Raises InputError if that many do not fit.
    """
    if not 0 < epsilon <= 1:
        raise InputError(
            f"epsilon is a share of the domain's half-width, above 0 and at most 1, not {epsilon:g}."
        )
    size, steps = prod(shape), 2**GRID_BITS
    reach = int(DOMAIN * steps)
    radius = Fraction(int(Fraction(epsilon) * DOMAIN * steps), steps)
    found: list[NDArray[np.int64]] = []
    for _ in range(_MOST_TRIES * (planted + regular)):
        if len(found) == planted + regular:
            break
        drawn = rng.integers(-reach, reach + 1, size=size)
        if all(np.abs(drawn - other).max() > 2 * int(radius * steps) for other in found):
            found.append(drawn)
    else:
        raise InputError(
            f"{planted + regular} points with disjoint boxes do not fit; use fewer, or a smaller epsilon."
        )
    labels = rng.permutation(np.arange(planted + regular) % 2)
    inner = int(INTERIOR * int(radius * steps))
    points = []
    for number, (drawn, label) in enumerate(zip(found, labels, strict=True)):
        centre = tuple(Fraction(int(k), steps) for k in drawn)
        offset = rng.integers(-inner, inner + 1, size=size)
        plant = tuple(x + Fraction(int(k), steps) for x, k in zip(centre, offset, strict=True))
        points.append(PlantedPoint(centre, radius, int(label), plant if number < planted else None))
    return tuple(points)
