"""Running counts of a test: violations by draw and by input, and rates by group."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.distinct_keys import DistinctKeys, keys_of
from dokimos.laws.engine.frame import Column, Frame, Records, Rows
from dokimos.laws.engine.grouping import Counts
from dokimos.laws.engine.runner import Judged

#: Records with more bytes than this are kept as hashes.
_LONG = 512


@dataclass(frozen=True)
class KeptViolation:
    """A violating case (a frame of one), and whether it is tolerated by a condition on a share of tests."""

    frame: Frame
    is_tolerated: bool


class Tally:
    """What a test has found so far; `kept` holds one violation for each of some distinct inputs.

    They are the largest ones found, as `measure` gives their sizes; tolerated ones come last.
    """

    def __init__(self, keep: int, measure: Callable[[Frame, Rows], NDArray[np.float64]]) -> None:
        self.violated = self.tolerated = 0
        self._measure = measure
        self._kept: list[tuple[bool, float, int, Frame]] = []
        self.by_class = Counts()
        self.by_group: dict[str, Counts] = {}
        self._keep = keep
        self._draws = DistinctKeys()
        self._inputs: set[bytes] = set()
        self._rows = DistinctKeys()

    @property
    def kept(self) -> list[KeptViolation]:
        """The largest violations found, each of a different input, the largest first."""
        ordered = sorted(self._kept, key=lambda each: each[:3], reverse=True)
        return [KeptViolation(frame, is_tolerated=not strict) for strict, _, _, frame in ordered]

    @property
    def unique(self) -> int:
        """How many violations differ in something that was drawn."""
        return len(self._draws)

    @property
    def inputs(self) -> int:
        """How many violations differ in their inputs."""
        return len(self._inputs)

    def add(
        self,
        judged: Judged,
        inputs: list[str],
        *,
        uses_seeds: bool,
        by_class: Column | None,
        by_group: Mapping[str, Column],
    ) -> None:
        """Count a batch."""
        bad = ~judged.holds
        if by_class is not None:
            self.by_class.add(by_class, bad)
        for feature, values in by_group.items():
            self.by_group.setdefault(feature, Counts()).add(values, bad)
        rows = np.flatnonzero(bad)
        if rows.size == 0:
            return
        frame = judged.frame
        self.violated += rows.size
        self.tolerated += int(judged.tolerated.sum())
        sources = _input_keys(frame, inputs, rows)
        seeds = [frame.seeds[rows]] if uses_seeds else []
        self._draws.add(keys_of([*sources, *(_bits(draw[rows]) for draw in frame.draws), *seeds]))
        keys = keys_of(sources)
        new = self._rows.lacks(keys)
        if new.any():
            self._rows.add(keys[new])
            self._keep_of(frame, rows[new], keys[new], judged.tolerated[rows[new]], inputs)

    def _keep_of(
        self, frame: Frame, rows: Rows, keys: Rows, tolerated: NDArray[np.bool_], inputs: list[str]
    ) -> None:
        """Offer the largest violation of each input that was not seen before."""
        sizes = self._measure(frame, rows)
        order = np.lexsort((-sizes, tolerated))
        firsts = order[np.sort(np.unique(keys[order], return_index=True)[1])]
        contents = zip(*(_contents(_data(frame, name)[rows[firsts]]) for name in inputs), strict=True)
        for place, content in zip(firsts, map(b"".join, contents), strict=True):
            if content not in self._inputs:
                self._inputs.add(content)
                self._offer(bool(tolerated[place]), float(sizes[place]), frame, int(rows[place]))

    def _offer(self, tolerated: bool, size: float, found: Frame, row: int) -> None:
        """Keep a violation if it is among the largest; of equally large ones, the first are kept."""
        rank = (not tolerated, size, -len(self._inputs))
        if len(self._kept) < self._keep:
            heapq.heappush(self._kept, (*rank, found.take(np.array([row]))))
        elif rank > self._kept[0][:3]:
            heapq.heapreplace(self._kept, (*rank, found.take(np.array([row]))))


def _data(frame: Frame, name: str) -> NDArray[Any]:
    value = frame.values[name]
    assert isinstance(value, Records)  # inputs are records
    return value.data


def _input_keys(frame: Frame, inputs: list[str], rows: Rows) -> list[Rows]:
    """For each input its row number, or a hash if it has none."""
    keys = []
    for name in inputs:
        value = frame.values[name]
        assert isinstance(value, Records)  # inputs are records
        if value.origin is not None:
            keys.append(value.origin[rows])
        else:
            hashes = [_hash(record) for record in value.data[rows]]
            keys.append(np.array(hashes, dtype=np.int64))
    return keys


def _contents(records: NDArray[Any]) -> list[bytes]:
    """The identity of each record, as `_content` gives it."""
    width = records.itemsize * int(np.prod(records.shape[1:]))
    if records.dtype == object or not 0 < width <= _LONG:
        return [_content(record) for record in records]
    content = np.ascontiguousarray(records).tobytes()
    return [content[start : start + width] for start in range(0, len(content), width)]


def _content(record: Any) -> bytes:
    """The identity of a record: its content, or its hash if that is shorter."""
    plain = isinstance(record, np.ndarray) and record.dtype != object
    content = record.tobytes() if plain else repr(record).encode()
    return content if len(content) <= _LONG else hashlib.blake2b(content, digest_size=32).digest()


def _hash(record: Any) -> int:
    digest = hashlib.blake2b(_content(record), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _bits(values: Column) -> NDArray[np.int64]:
    """Numbers as integers, distinct for distinct numbers."""
    return np.ascontiguousarray(values).view(np.int64)
