"""The bootstrap over instances, as weights: resampling n instances gives each a weight of 0, 1, 2, ...

Statistics are computed for many weightings at once, so that nothing is resampled one by one. All
observations of one instance get the same weight: several verifiers on one instance are not independent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

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
        step = max(1, _AT_ONCE // count)
        parts = []
        for start in range(0, self.resamples, step):
            weights = _weights(self.seed, start, min(step, self.resamples - start), count)
            parts.append(statistic(weights[:, of].astype(np.float64)))
        found = np.concatenate(parts)
        found = found[~np.isnan(found)]
        if 2 * len(found) < self.resamples:
            return None
        tail = (1 - self.level) / 2
        low, high = np.quantile(found, [tail, 1 - tail])
        return float(low), float(high)


@lru_cache(maxsize=4)
def _weights(seed: int, start: int, rows: int, count: int) -> NDArray[np.uint16]:
    """How often each of `count` instances is drawn, in `rows` resamples; kept for the next statistic."""
    rng = np.random.default_rng([seed, start])
    drawn = rng.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
    weights = np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count).astype(np.uint16)
    weights.setflags(write=False)
    return weights


def _numbered(instances: Sequence[object]) -> list[int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(instance, len(numbers)) for instance in instances]
