"""Random resampling: its settings, and intervals by resampling networks within families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dokimos.difficulty.explain.strata import Floats, Strata

#: Weights (resamples x results) to the statistics of each resample (resamples x n); nan where it has none.
Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Resampling:
    """How often to resample, permute and simulate, and from which seed."""

    resamples: int = 2000
    seed: int = 0

    def rng(self, purpose: int) -> np.random.Generator:
        """A separate generator for each purpose."""
        return np.random.default_rng([self.seed, purpose])

    def intervals(self, statistic: Statistic, strata: Strata) -> list[tuple[float, float] | None]:
        """The 95 % percentile interval of each statistic, if at least half of the resamples have a value.

        Resampling n networks gives each a weight of 0, 1, 2, …; statistics are computed for many weightings
        at once, so that nothing is resampled one by one.
        """
        parts = [statistic(weights) for weights in strata.resampled_weights(self.resamples, self.rng(0))]
        return [self._interval(column) for column in np.concatenate(parts).T] if parts else []

    def _interval(self, found: Floats) -> tuple[float, float] | None:
        known = found[~np.isnan(found)]
        if 2 * len(known) < self.resamples:
            return None
        low, high = np.quantile(known, [0.025, 0.975])
        return float(low), float(high)
