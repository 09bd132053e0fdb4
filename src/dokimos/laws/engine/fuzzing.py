"""Fuzzing: diverse records, found by walks that start from records found before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.features import Layout

#: How far apart two records of a pool are at first, as a share of the features' ranges.
_RADIUS = 0.25
#: After this many walks without a new record, the minimum distance shrinks by this factor.
_PATIENCE, _NEARER = 20, 0.8
#: How often a walk starts from a fresh record instead of one from the pool.
_FRESH = 0.2
#: Walks that find nothing at all before fuzzing gives up.
_HOPELESS = 1000

Progress = Callable[[int], None]


def fuzz(
    start: Callable[..., NDArray[Any]],
    walk: Callable[..., Sequence[NDArray[Any]]],
    predict: Callable[[Any], Any],
    layout: Layout,
    *,
    size: int,
    seed: int = 0,
    progress: Progress | None = None,
    until_interrupted: bool = False,
) -> NDArray[Any]:
    """A pool of `size` records that are far from each other in the features that have a range.

    Each walk starts from a record of the pool, or from a fresh one. A record on the way is kept if its
    features are in their ranges and it is farther than a radius from everything in the pool; the radius
    shrinks when nothing new is found. With `until_interrupted`, an interruption (Ctrl-C) returns what has
    been found so far. Otherwise the same arguments give the same pool. Raises InputError if no feature has
    a range, or nothing is found.
    """
    measured = [
        slot for slot in layout.slots if slot.feature.low is not None and slot.feature.high is not None
    ]
    if not measured:
        raise InputError("Fuzzing needs a feature with a range, to measure how far records are apart.")
    columns = [slot.start for slot in measured]
    ranges = np.array([(slot.feature.low, slot.feature.high) for slot in measured], dtype=np.float64)
    rng = np.random.default_rng(seed)
    pool = _DistinctRecords(columns, ranges)
    walks_without = 0
    try:
        while len(pool.records) < size and walks_without < _HOPELESS:
            fresh = not pool.records or rng.random() < _FRESH
            begin = start(rng=rng) if fresh else pool.records[int(rng.integers(len(pool.records)))]
            passed = ([begin] if fresh else []) + list(walk(begin.copy(), rng=rng, predict=predict))
            new = sum(pool.offer(record) for record in passed)
            walks_without = 0 if new else walks_without + 1
            if walks_without and walks_without % _PATIENCE == 0:
                pool.radius *= _NEARER
            if progress is not None:
                progress(min(len(pool.records), size))
    except KeyboardInterrupt:
        if not pool.records or not until_interrupted:
            raise
    if not pool.records:
        raise InputError("Fuzzing found no records: start() and walk() gave none.")
    return np.stack(pool.records[:size])


class _DistinctRecords:
    """Records in their ranges that were at least `radius` from all others when they were added."""

    def __init__(self, columns: list[int], ranges: NDArray[np.float64]) -> None:
        self.records: list[NDArray[Any]] = []
        self.radius = _RADIUS
        self._columns, self._low = columns, ranges[:, 0]
        self._spans = np.maximum(ranges[:, 1] - ranges[:, 0], 1e-9)
        self._scaled = np.zeros((0, len(columns)))

    def offer(self, record: NDArray[Any]) -> bool:
        """Keep a record if it is new; returns whether it is."""
        scaled = (record[self._columns].astype(np.float64) - self._low) / self._spans
        if not np.all((scaled >= 0) & (scaled <= 1)):
            return False
        if len(self._scaled) and np.linalg.norm(self._scaled - scaled, axis=1).min() < self.radius:
            return False
        self.records.append(record)
        self._scaled = np.vstack([self._scaled, scaled])
        return True
