"""The samples of a profile: seeded points of a box, half of them uniform, half on its faces and corners."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dokimos.properties.margins import float_ends
from dokimos.properties.model import Box

Floats = NDArray[np.float64]


def sample(box: Box, count: int, rng: np.random.Generator) -> Floats:
    """[count, size]: the first half uniform, then a quarter on faces, then a quarter of corners.

    The ends are the nearest float64 numbers and no point lies outside them. A point of the second kind is
    uniform except for some coordinates, which are at a random one of their two ends: at least one, and each
    with a probability that is itself uniform, so that faces of every dimension occur. A corner has all its
    coordinates at an end. If the number is odd, the first half is the larger one.
    """
    lower, upper = float_ends(box)
    points = lower + (upper - lower) * rng.random((count, box.size))
    np.clip(points, lower, upper, out=points)
    uniform = (count + 1) // 2
    corners = (count - uniform) // 2
    boundary = points[uniform:]
    at_end = rng.random(boundary.shape) < rng.random((len(boundary), 1))
    free = np.flatnonzero(lower < upper)
    if free.size:
        at_end[np.arange(len(boundary)), rng.choice(free, size=len(boundary))] = True
    at_end[len(boundary) - corners :] = True
    ends = np.where(rng.random(boundary.shape) < 0.5, lower, upper)
    boundary[:] = np.where(at_end, ends, boundary)
    return points
