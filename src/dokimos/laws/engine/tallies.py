"""Running counts of a test: violations by draw and by input, and rates by group."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.laws.engine.case_frame import Column, Frame, Records, Rows
from dokimos.laws.engine.means import Rate
from dokimos.laws.engine.runner import Judged

# Counts distinct combinations of numbers as they arrive, in little time and memory


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


# Rates of violations by group: by the first decision, and by the values of features


#: If there are more values than this, numbers are binned into ranges with about equally many tests each.
_MOST_SHOWN = 12
_RANGES = 8
#: More values than this are not counted separately.
_MOST_COUNTED = 20_000

NamedRates = tuple[tuple[str, Rate], ...]


@dataclass(frozen=True)
class Grouping:
    """The rates of violations among the tests whose first input has each value of a feature.

    There are no rates if there are too many values to report.
    """

    feature: str
    rates: NamedRates


class Counts:
    """How many tests have each value, and how many of those violate the law."""

    def __init__(self) -> None:
        self._rates: dict[Any, Rate] = {}
        self._too_many = False

    def add(self, column: Column, bad: NDArray[np.bool_]) -> None:
        """Count a batch: the value in each test, and whether it violates."""
        if self._too_many:
            return
        for value, total, count in _counted(column, bad):
            before = self._rates.get(value, Rate(0, 0))
            self._rates[value] = Rate(before.count + count, before.total + total)
        self._too_many = len(self._rates) > _MOST_COUNTED

    def rates(self, name: Callable[[Any], str]) -> NamedRates:
        """The rate of each value, in order, under its name; or of ranges if there are many numbers."""
        values = sorted(self._rates, key=lambda each: (str(type(each)), each))
        if len(values) <= _MOST_SHOWN:
            return tuple((name(value), self._rates[value]) for value in values)
        if self._too_many or not all(_is_number(value) for value in values):
            return ()
        return tuple(self._range(part, name) for part in self._parts(sorted(values)))

    def _parts(self, values: list[Any]) -> list[list[Any]]:
        """Runs of values that hold about equally many tests each."""
        totals = np.array([self._rates[value].total for value in values], dtype=np.float64)
        middles = np.cumsum(totals) - totals / 2
        which = np.minimum(middles / totals.sum() * _RANGES, _RANGES - 1).astype(np.int64)
        parts: dict[int, list[Any]] = {}
        for value, part in zip(values, which.tolist(), strict=True):
            parts.setdefault(part, []).append(value)
        return list(parts.values())

    def _range(self, values: list[Any], name: Callable[[Any], str]) -> tuple[str, Rate]:
        counted = [self._rates[value] for value in values]
        rate = Rate(sum(each.count for each in counted), sum(each.total for each in counted))
        ends = name(values[0]), name(values[-1])
        return ends[0] if len(values) == 1 else f"{ends[0]} to {ends[1]}", rate


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _counted(column: Column, bad: NDArray[np.bool_]) -> list[tuple[Any, int, int]]:
    """Each value of a batch, how often it occurs, and how often with the law violated."""
    if column.dtype == object:
        places: dict[Any, list[int]] = {}
        for row, each in enumerate(column):
            value = each if isinstance(each, int | float | str | bool) else repr(each)
            places.setdefault(value, []).append(row)
        return [(value, len(rows), int(bad[rows].sum())) for value, rows in places.items()]
    if column.dtype.kind in "bui" and len(column):
        low, high = int(column.min()), int(column.max())
        if high - low < _MOST_COUNTED:  # counted without being put in order
            found = np.arange(low, high + 1).astype(column.dtype)
            return _several(found, column.astype(np.int64) - low, bad)
    found, inverse = np.unique(column, return_inverse=True)
    return _several(found, inverse, bad)


def _several(
    found: Column, places: NDArray[np.int64], bad: NDArray[np.bool_]
) -> list[tuple[Any, int, int]]:
    totals = np.bincount(places, minlength=len(found))
    wrong = np.bincount(places[bad], minlength=len(found))
    return [(v.item(), int(t), int(w)) for v, t, w in zip(found, totals, wrong, strict=True) if t]


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
