"""The bootstrap over instances, as weights: resampling n instances gives each a weight of 0, 1, 2, ...

Statistics are computed for many weightings at once, so that nothing is resampled one by one. All
observations of one instance get the same weight: several verifiers on one instance are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Weights (resamples x observations) to the statistic of each resample; nan where it has none.
Statistic = Callable[[Floats], Floats]
#: How many weights are held at a time.
_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Resampling:
    """How often to resample, from which seed, and how much of what comes out lies in the interval."""

    resamples: int = 2000
    seed: int = 0
    level: float = 0.95

    def interval(self, statistic: Statistic, instances: Sequence[object]) -> tuple[float, float] | None:
        """The percentile interval of a statistic; `instances` says to which instance each one belongs.

        None where fewer than half of the resamples have the statistic.
        """
        of = _numbered(instances)
        count = len(set(of))
        rng = np.random.default_rng(self.seed)
        step = max(1, _AT_ONCE // max(count, len(of)))
        parts = []
        for start in range(0, self.resamples, step):
            rows = min(step, self.resamples - start)
            weights = rng.multinomial(count, np.full(count, 1 / count), size=rows).astype(np.float64)
            parts.append(statistic(weights[:, of]))
        found = np.concatenate(parts)
        found = found[~np.isnan(found)]
        if 2 * len(found) < self.resamples:
            return None
        tail = (1 - self.level) / 2
        low, high = np.quantile(found, [tail, 1 - tail])
        return float(low), float(high)


def _numbered(instances: Sequence[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(instance, len(numbers)) for instance in instances]
