"""Results of random calls: sampled, enumerated, or as they were in an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dokimos.laws.engine.frame import Column, Frame


class TooMany(Exception):
    """There are too many draws to enumerate."""


class Drawer(Protocol):
    """Extends a frame by the result of one more random call in each case.

    `low` and `high` are the ends of the range in each case; cases in which it is empty are dropped.
    """

    def __call__(self, frame: Frame, low: Column, high: Column) -> Frame:
        """The frame with one more draw, of integers where the ends are."""
        ...


def _not_empty(frame: Frame, low: Column, high: Column) -> tuple[Frame, Column, Column]:
    """The cases whose range is not empty, and their ends."""
    kept = low <= high
    return frame.where(kept), low[kept], high[kept]


@dataclass(frozen=True)
class Sampler:
    """Draws uniformly, both ends included."""

    rng: np.random.Generator

    def __call__(self, frame: Frame, low: Column, high: Column) -> Frame:
        """See Drawer."""
        frame, low, high = _not_empty(frame, low, high)
        if low.dtype == np.int64:
            return frame.with_draw(self.rng.integers(low, high, endpoint=True))
        return frame.with_draw(np.minimum(low + self.rng.random(len(low)) * (high - low), high))


@dataclass(frozen=True)
class Enumerator:
    """Turns each case into one case for every integer of the range. Raises TooMany beyond `limit` cases."""

    limit: int

    def __call__(self, frame: Frame, low: Column, high: Column) -> Frame:
        """See Drawer."""
        counts = np.maximum(high.astype(np.float64) - low.astype(np.float64) + 1, 0)
        if counts.sum() > self.limit:
            raise TooMany
        whole = counts.astype(np.int64)
        rows = np.repeat(np.arange(frame.size), whole)
        offsets = np.arange(len(rows)) - np.repeat(np.cumsum(whole) - whole, whole)
        made = frame.take(rows).with_draw(low[rows] + offsets)
        return Frame(np.arange(len(rows)), made.seeds, made.values, made.draws)


@dataclass(frozen=True)
class Given:
    """Repeats earlier draws: one array for each random call, indexed by the ids of the cases."""

    draws: Sequence[Column]

    def __call__(self, frame: Frame, low: Column, high: Column) -> Frame:
        """See Drawer; cases whose draw lies outside its range are dropped."""
        values = self.draws[len(frame.draws)][frame.ids]
        kept = (low <= values) & (values <= high)
        values = values.astype(np.int64) if low.dtype == np.int64 else values
        return frame.where(kept).with_draw(values[kept])
