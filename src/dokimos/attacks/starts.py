"""Starting points and moves that most attacks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.attacks.target import Points, Target


def uniform_starts(target: Target, count: int, rng: np.random.Generator, *, corners: float = 0.0) -> Points:
    """Uniform points of the box; the last ones, a fraction `corners`, are corners of the box."""
    uniform = rng.random((count, target.lower.shape[-1]), dtype=np.float32)
    if last := int(corners * count):
        uniform[-last:] = np.round(uniform[-last:])
    return inside(target, target.lower + (target.upper - target.lower) * uniform)


def inside(target: Target, points: Points) -> Points:
    """The points clipped into the box, in the target's precision."""
    clipped: Points = np.clip(points, target.lower, target.upper).astype(target.lower.dtype)
    return clipped


def sign_step(target: Target, points: Points, gradients: Points, share: float | NDArray[Any]) -> Points:
    """One descent step along the signs, of length `share` times the box's radius, clipped into the box.

    A coordinate whose gradient is NaN is not moved.
    """
    step = share * target.radius * np.sign(np.nan_to_num(gradients))
    return inside(target, points - step)


def alternate_aims(target: Target, count: int) -> NDArray[np.int64]:
    """Half of the rows follow the nearest conjunction; the others aim at one each, in turn."""
    numbers = np.arange(count)
    return np.where(numbers % 2 == 1, numbers // 2 % target.conjunctions, -1)


def project(target: Target, points: Points, values: NDArray[Any], gradients: Points) -> Points:
    """The nearest points of the box at which value + gradient·(x − point) is 0, row by row.

    Distance is the largest move of a coordinate, as a fraction of its radius. If the box has no such point,
    it is the corner that comes nearest.
    """
    slopes = np.nan_to_num(gradients.astype(np.float64))
    towards = -np.sign(values)[:, None] * np.sign(slopes)
    radius = target.radius.astype(np.float64)
    low, high = np.zeros(len(points)), np.full(len(points), 2.0)
    for _ in range(24):
        middle = (low + high) / 2
        there = np.clip(points + middle[:, None] * radius * towards, target.lower, target.upper)
        left = np.abs(values) - np.abs(((there - points) * slopes).sum(axis=1))
        low, high = np.where(left > 0, middle, low), np.where(left > 0, high, middle)
    return inside(target, points + high[:, None] * radius * towards)
