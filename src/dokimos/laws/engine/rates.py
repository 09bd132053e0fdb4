"""Rates and their confidence intervals."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

#: The 97.5th percentile of the normal distribution: two sides of 95 %.
TWO_SIDED = 1.959963984540054
_MOST_DECIMALS = 15


@dataclass(frozen=True)
class Rate:
    """`count` of `total`."""

    count: int
    total: int

    @property
    def value(self) -> float:
        """The share; 0 if `total` is 0."""
        return self.count / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval: the shares p that are within z standard deviations of `value`.

        Those p solve (value − p)² = z²·p·(1 − p)/total, a quadratic whose two roots are the ends.
        """
        if self.total == 0:
            return 0.0, 1.0
        n, p, z2 = self.total, self.value, TWO_SIDED * TWO_SIDED
        centre = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = TWO_SIDED * sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        low = 0.0 if self.count == 0 else max(0.0, centre - half)
        high = 1.0 if self.count == n else min(1.0, centre + half)
        return low, high

    def __str__(self) -> str:
        low, high = self.interval
        return f"{percent(self.value)} % (95 %: {percent(low)} to {percent(high)})"


def percent(share: float) -> str:
    """A share in percent with two decimals, or more if it would wrongly round to 0 % or 100 %."""
    rest = min(share, 1 - share)
    decimals = 2
    while 0 < rest < 1 and 100 * rest * 10**decimals < 1 and decimals < _MOST_DECIMALS:
        decimals += 1
    return f"{100 * share:.{decimals + (decimals > 2)}f}"
