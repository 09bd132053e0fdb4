"""Linear bounds of constraints on many boxes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import islice
from math import isfinite

import numpy as np

from dokimos.checker.lemmas.float_ends import box_floats, outward
from dokimos.checker.lemmas.relu_layers import BoundedLayers
from dokimos.networks.semantics.outward import Interval
from dokimos.properties.model import Box, Conjunction, Terms

#: How many boxes are bounded at once.
BATCH = 64
#: Layers over many boxes at once.
Bounding = Callable[[Interval], BoundedLayers]


def linear_slacks(
    bounding: Bounding, conjunction: Conjunction, pieces: Iterable[Box]
) -> Iterator[Fraction]:
    """For each box, a lower bound on how much one of the constraints fails at all of its points.

    Theorem. On a box, Σ c·x + Σ d·y is at least what `BoundedLayers.lower_bounds` gives for the rows c and
    d. A constraint for which that is not finite counts as one that holds by 1.
    """
    pending = iter(pieces)
    while batch := list(islice(pending, BATCH)):
        lower, upper = (np.stack(ends)[:, None, :] for ends in zip(*map(box_floats, batch), strict=True))
        over = bounding(Interval(lower, upper))
        rows = rows_of([each.outputs for each in conjunction], len(over.layers[-1].biases))
        inputs = rows_of([each.inputs for each in conjunction], lower.shape[-1])
        for bounds in over.lower_bounds(rows, over.silent(1), inputs).tolist():
            yield max(
                Fraction(bound) - each.bound if isfinite(bound) else Fraction(-1)
                for each, bound in zip(conjunction, bounds, strict=True)
            )


def rows_of(terms: Sequence[Terms], size: int) -> Interval:
    """The factors of each constraint, as a row of length `size`, rounded outward."""
    dense = [[dict(own).get(k, Fraction(0)) for k in range(size)] for own in terms]
    found = [outward(row) for row in dense]
    return Interval(np.stack([row.lower for row in found]), np.stack([row.upper for row in found]))
