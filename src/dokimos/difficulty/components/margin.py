"""The minimum margin M̂_min."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dokimos.difficulty.components.base import Component
from dokimos.suites.profile_file import Measurement

if TYPE_CHECKING:
    from dokimos.difficulty.inspection import Inspection


class LeastMargin(Component):
    """M̂_min = min over the samples x of μ(x): how close sampling comes to a counterexample.

    μ is the margin of `properties.margins`, the least over conjunctions and cases; the samples are those of
    `sampling` and the points that gradients lead to from there (`guided_sampling`). Below 0, a sample is a
    counterexample (in float64: replay it before it counts).
    """

    name = "margin"
    symbol = "M̂_min"
    meaning = "smallest sampled margin"

    def measure(self, seen: Inspection) -> Measurement:
        """The least margin of all samples."""
        if seen.least_margin is None:
            return not_finite(seen.sampled.margins)
        return Measurement(seen.least_margin)


def not_finite(values: np.ndarray) -> Measurement:
    """The note that replaces a number when some samples have no finite value."""
    rows = np.isfinite(values.reshape(len(values), -1)).all(axis=1)
    return Measurement(
        None, f"not finite: float64 overflows at {int((~rows).sum())} of {len(rows)} samples"
    )
