"""The decisions that a ReLU network may take on pictures near a row: each pixel between two numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.lemmas.relu_layers import ReluLayer, bounded
from dokimos.networks.semantics.outward import Floats, Interval, point


def possible_decisions(layers: Sequence[ReluLayer], lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """For each of many boxes, a row of `lower` and of `upper`, and each class, whether it may be decided.

    Theorem. Class c is no decision in a box where score j − score c > 0 in all of it for some j, or >= 0
    for a j before c: the first largest score decides. The differences are bounded from below, outward
    rounded (`BoundedLayers.lower_bounds`).
    """
    classes = len(layers[-1].biases)
    pairs = list(permutations(range(classes), 2))
    one = np.eye(classes)
    over = bounded(layers, Interval(lower[:, None, :], upper[:, None, :]))
    leads = over.lower_bounds(point(np.stack([one[j] - one[c] for j, c in pairs])), over.silent(1))
    can = np.ones((len(lower), classes), dtype=np.bool_)
    for number, (j, c) in enumerate(pairs):
        can[:, c] &= ~(leads[:, number] >= 0 if j < c else leads[:, number] > 0)
    return can
