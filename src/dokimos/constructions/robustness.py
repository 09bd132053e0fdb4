"""Boxes around a point and the property that the first class wins there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.margins import class_loses
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point, Property, Signature

#: Points and bounds are multiples of 2^-POINT_BITS: exact in float32, and short decimals.
POINT_BITS = 6
BOUND_BITS = 12


def random_point(size: int, rng: np.random.Generator) -> list[Fraction]:
    """A point of [0, 1]^size on the grid."""
    steps = 2**POINT_BITS
    return [Fraction(int(step), steps) for step in rng.integers(0, steps + 1, size=size)]


def inward(epsilon: float) -> Fraction:
    """The largest radius on the grid of bounds that is not above `epsilon`."""
    return Fraction(floor(Fraction(epsilon) * 2**BOUND_BITS), 2**BOUND_BITS)


def ball(centre: Sequence[Fraction], radius: Fraction) -> Box:
    """All points within `radius` of `centre`, coordinate by coordinate."""
    return Box(tuple(x - radius for x in centre), tuple(x + radius for x in centre))


def dot(row: Sequence[Fraction], x: Sequence[Fraction]) -> Fraction:
    """Σ row_i·x_i."""
    return sum((a * b for a, b in zip(row, x, strict=True) if a), Fraction(0))


def towards(centre: Sequence[Fraction], direction: Iterable[Any], distance: Fraction) -> Point:
    """The point `distance` away in each coordinate, on the side of the sign that `direction` has there."""
    return tuple(x + distance * (int(d > 0) - int(d < 0)) for x, d in zip(centre, direction, strict=True))


def unsafe_where(ways: Sequence[Conjunction], *boxes: Box, outputs: int = 1) -> Property:
    """Unsafe: one of these conjunctions holds, in any of the boxes."""
    signature = Signature("f", "X", (boxes[0].size,), "Y", (outputs,))
    return Property((signature,), tuple(Case(box, tuple(ways)) for box in boxes))


def at_least(bound: Fraction, output: int = 0) -> Conjunction:
    """Y_output >= bound."""
    return (Linear((), ((output, Fraction(-1)),), -bound),)


def first_class_loses(box: Box, classes: int) -> Property:
    """Unsafe: some other class is at least as high as class 0."""
    return class_loses(box, 0, classes)


def float32_above(value: Fraction) -> Fraction:
    """The smallest float32 number that is not below `value`."""
    near = np.float32(float(value))
    while Fraction(float(near)) < value:
        near = np.nextafter(near, np.float32(np.inf))
    return Fraction(float(near))


def float32_below(value: Fraction) -> Fraction:
    """The largest float32 number that is not above `value`."""
    return -float32_above(-value)


def split_evenly(total: int, weights: NDArray[np.float64]) -> list[int]:
    """Integers proportional to `weights`, signs kept, whose absolute values sum to `total` exactly.

    The largest remainders get what rounding down leaves over.
    """
    absolute = np.abs(weights)
    shares = absolute / absolute.sum() * total
    whole = np.floor(shares).astype(int)
    for index in np.argsort(whole - shares)[: total - int(whole.sum())]:
        whole[index] += 1
    return [int(share) for share in np.copysign(whole, weights)]


def ceil_div(value: Fraction, step: Fraction) -> Fraction:
    """The smallest multiple of `step` that is not below `value`."""
    return ceil(value / step) * step


# Whether sampling finds a counterexample by chance


SAMPLES = 10_000
#: Networks of more multiplications than this see fewer samples, in proportion, but never less than a tenth.
MOST_MULTIPLICATIONS = 20_000_000


def uniform_points(box: Box, count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """The centre of the box and `count` uniform points, in float32 and inside the box."""
    lower = np.array([float(x) for x in box.lower])
    upper = np.array([float(x) for x in box.upper])
    points = rng.uniform(lower, upper, size=(count, box.size)).astype(np.float32)
    centre = ((lower + upper) / 2).astype(np.float32)
    ends = lower.astype(np.float32), upper.astype(np.float32)
    inside: NDArray[np.float32] = np.clip(np.vstack([centre, points]), *ends).astype(np.float32)
    return inside


def violations(outputs: NDArray[np.float32], property: Property) -> NDArray[np.bool_]:
    """Which rows of outputs are unsafe, for a property whose constraints are on outputs only."""
    values = outputs.astype(np.float64)
    unsafe = np.zeros(len(values), dtype=np.bool_)
    for case in property.cases:
        for conjunction in case.any_of:
            holds = np.ones(len(values), dtype=np.bool_)
            for constraint in conjunction:
                left = sum(float(d) * values[:, j] for j, d in constraint.outputs)
                bound = float(constraint.bound)
                holds &= (left < bound) if constraint.strict else (left <= bound)
            unsafe |= holds
    return unsafe


def is_easily_found(network: bytes, property: Property, rng: np.random.Generator) -> bool:
    """Whether the centre or one of 10,000 uniform samples of a box is a counterexample in float32."""
    share = min(1.0, MOST_MULTIPLICATIONS / read_onnx(network).multiplications)
    count = max(int(SAMPLES * share), SAMPLES // 10)
    return any(
        bool(violations(replay(network, uniform_points(case.box, count, rng)), property).any())
        for case in property.cases
    )
