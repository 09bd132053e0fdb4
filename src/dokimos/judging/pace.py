"""Whether answers have become slower, beyond what noise explains: a paired test over a suite.

Every answer that was right before and is right now is a pair of times. If nothing but noise has changed, an
answer is as likely to take more than F times as long as before as less than 1/F of it. So of the n answers
beyond either bound, the number of slow ones is binomial with probability 1/2 (the sign test), and

    P(at least k of n are slow) = Σ_{i >= k} C(n, i) / 2^n.

Slowness counts only where that is below `LEVEL`: at least seven answers, however few the suite has. Times
that differ by less than `RESOLUTION_SECONDS` are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb
from typing import Generic, TypeVar

LEVEL = 0.01
RESOLUTION_SECONDS = 0.1

K = TypeVar("K")


@dataclass(frozen=True)
class Slowdown(Generic[K]):
    """The answers that take more than `factor` times as long as before, the slowest first.

    `faster` counts those that take less than 1/factor, of `pairs` in all; `chance` is the probability that
    noise alone makes as many slow.
    """

    factor: float
    slower: tuple[K, ...]
    faster: int
    pairs: int
    chance: float

    @property
    def is_real(self) -> bool:
        """Whether noise does not explain it."""
        return self.chance < LEVEL


def slowdown(before: Mapping[K, float], now: Mapping[K, float], *, factor: float) -> Slowdown[K]:
    """Compare times by key, in seconds; keys that only one of the two has do not count."""
    both = before.keys() & now.keys()
    slower = [key for key in both if _is_beyond(before[key], now[key], factor)]
    faster = sum(_is_beyond(now[key], before[key], factor) for key in both)
    slower.sort(key=lambda key: (-now[key] / max(before[key], RESOLUTION_SECONDS), str(key)))
    return Slowdown(factor, tuple(slower), faster, len(both), _chance(len(slower), len(slower) + faster))


def _is_beyond(before: float, now: float, factor: float) -> bool:
    return now > factor * before and now - before > RESOLUTION_SECONDS


def _chance(slow: int, total: int) -> float:
    """The probability of at least so many heads."""
    ways: int = sum(comb(total, k) for k in range(slow, total + 1))
    return ways / float(2**total)
