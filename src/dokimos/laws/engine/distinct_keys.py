"""Counts distinct combinations of numbers as they arrive, in little time and memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
#: Keys that are collected before they are merged with the known ones.
_MOST_WAITING = 1 << 20
#: Constants of SplitMix64 (Steele, Lea, Flood, 2014), whose finaliser mixes the bits of a number.
_GAMMA, _FIRST, _SECOND = (
    np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


def keys_of(columns: Sequence[Keys]) -> Keys:
    """One number for each combination of the columns; for one column, the numbers themselves.

    Several columns are hashed to 64 bits: among a million combinations, the probability that two collide is
    below 3 in 100 million.
    """
    if len(columns) == 1:
        return columns[0]
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for each in columns:
        mixed = (mixed + _GAMMA) ^ each.view(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _FIRST
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _SECOND
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed.view(np.int64)


class DistinctKeys:
    """The distinct keys among all that were added."""

    def __init__(self) -> None:
        self._known: Keys = np.zeros(0, dtype=np.int64)
        self._waiting: list[Keys] = []
        self._count_waiting = 0

    def __len__(self) -> int:
        self._settle()
        return len(self._known)

    def add(self, keys: Keys) -> None:
        """Add keys, each any number of times."""
        self._waiting.append(keys)
        self._count_waiting += len(keys)
        if self._count_waiting > max(_MOST_WAITING, len(self._known)):
            self._settle()

    def lacks(self, keys: Keys) -> NDArray[np.bool_]:
        """Which keys were never added."""
        self._settle()
        if len(self._known) == 0:
            return np.ones(len(keys), dtype=np.bool_)
        places = np.minimum(np.searchsorted(self._known, keys), len(self._known) - 1)
        return np.asarray(self._known[places] != keys)

    def _settle(self) -> None:
        if self._waiting:
            every = np.concatenate([self._known, *self._waiting])
            every.sort()
            first = np.ones(len(every), dtype=np.bool_)
            first[1:] = every[1:] != every[:-1]
            self._known = every[first]
            self._waiting, self._count_waiting = [], 0
