"""Where the inputs of a law come from: a data set, a pool in a file, or the ranges of the features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.features import Kind, Layout
from dokimos.laws.engine.case_frame import UNCHANGED, Column, Frame, Records, Rows, column
from dokimos.laws.engine.pools import as_records, read_pool
from dokimos.laws.engine.record_rules import RecordRules

#: How many records are drawn at a time if some must be redrawn; and when to give up.
_LEAST_DRAWN = 256
_LEAST_TRIED, _TRIED_PER_RECORD = 20_000, 1000
#: How often a value that may be missing is.
_MISSING_SHARE = 0.1


class InputSource(Protocol):
    """A source of records for the inputs of a law."""

    @property
    def name(self) -> str:
        """Its name in results."""
        ...

    @property
    def size(self) -> int | None:
        """How many records there are; None if there are infinitely many."""
        ...

    def sample(self, rng: np.random.Generator, count: int) -> Records:
        """Records drawn independently and uniformly."""
        ...

    def at(self, rows: Rows) -> Records:
        """The records at given rows of a source that has a size."""
        ...


@dataclass(frozen=True)
class Pool:
    """Finitely many records."""

    name: str
    data: NDArray[Any]
    #: Whether records are returned as doubles, whatever type of numbers the data set has.
    as_doubles: bool = False

    @property
    def size(self) -> int:
        """See Source."""
        return len(self.data)

    @property
    def records(self) -> Records:
        """All of them, as they are kept."""
        return Records(self.data, np.arange(len(self.data)), UNCHANGED)

    def sample(self, rng: np.random.Generator, count: int) -> Records:
        """See Source."""
        return self.at(rng.integers(0, len(self.data), size=count))

    def at(self, rows: Rows) -> Records:
        """See Source."""
        drawn = self.data.take(rows, axis=0)
        made = drawn.astype(np.float64, copy=False) if self.as_doubles else drawn
        return Records(made, np.asarray(rows, dtype=np.int64), UNCHANGED)


@dataclass(frozen=True)
class Ranges:
    """All records whose features are in their ranges; each feature is drawn independently.

    Records that break a constraint of the domain are drawn again.
    """

    layout: Layout
    rules: RecordRules
    name: str = "range"

    @property
    def size(self) -> None:
        """See Source."""
        return None

    def sample(self, rng: np.random.Generator, count: int) -> Records:
        """See Source. Raises InputError if almost every record breaks a constraint."""
        if not self.rules.constraints:
            return Records(self._drawn(rng, count), None, UNCHANGED)
        kept: list[NDArray[Any]] = []
        found = drawn = 0
        while found < count:
            if drawn >= _LEAST_TRIED and found < drawn / _TRIED_PER_RECORD:
                raise InputError(
                    f"The constraints of the domain {self.rules.domain.name} rule out almost every record "
                    f"drawn from the ranges of its features: {found:,} of {drawn:,} satisfy them."
                )
            data = self._drawn(rng, max(count - found, _LEAST_DRAWN))
            good = data[self.rules.satisfied(data)][: count - found]
            kept.append(good)
            drawn, found = drawn + len(data), found + len(good)
        return Records(np.concatenate(kept), None, UNCHANGED)

    def _drawn(self, rng: np.random.Generator, count: int) -> NDArray[Any]:
        """Records in the ranges, whether or not they satisfy the constraints."""
        strings = any(feature.holds_strings for feature in self.layout.features)
        data = np.zeros((count, self.layout.width), dtype=object if strings else np.float64)
        for slot in self.layout.slots:
            feature = slot.feature
            if feature.kind is Kind.CATEGORY:
                chosen = rng.integers(0, len(feature.values), size=count)
                data[:, slot.start] = np.array(feature.values, dtype=object)[chosen]
            elif feature.kind is Kind.CHOICE:
                chosen = rng.integers(0, feature.width + feature.has_none, size=count)
                rows = np.flatnonzero(chosen < feature.width)
                data[rows, slot.start + chosen[rows]] = 1
            else:
                assert feature.low is not None and feature.high is not None  # range_source has seen to it
                if feature.kind is Kind.INTEGER:
                    low, high = int(feature.low), int(feature.high)
                    data[:, slot.start] = rng.integers(low, high, size=count, endpoint=True)
                else:
                    data[:, slot.start] = rng.uniform(feature.low, feature.high, size=count)
            if feature.may_miss:
                gaps = rng.random(count) < _MISSING_SHARE
                data[gaps, slot.start] = None if feature.holds_strings else np.nan
        return data

    def at(self, rows: Rows) -> Records:
        """See Source."""
        raise InputError("Records drawn from ranges have no rows.")


def find_source(given: str, domain: Domain) -> InputSource:
    """`test`, `range` or `pool:FILE` of a domain. Raises InputError."""
    if given == "test":
        if domain.inputs is None:
            ways = "give it a function inputs(), or use the `source` range or pool:FILE"
            if domain.place is None and not domain.functions:
                ways = "give a `domain`, or use the `source` pool:FILE"
                raise InputError(f"The law imports no domain, so there is no test set: {ways}.")
            raise InputError(f"The domain {domain.name} has no test set: {ways}.")
        given_set = call_domain(domain.inputs, domain, "inputs")
        return _pool("test", as_records(given_set, domain.layout, "inputs()"), domain)
    if given == "range":
        return _range_source(domain)
    kind, _, file = given.partition(":")
    if kind != "pool" or not file:
        raise InputError(f"{given!r} is not a source of inputs; write test, range or pool:FILE.")
    return _pool(given, read_pool(Path(file), domain.layout), domain)


def _pool(name: str, data: NDArray[Any], domain: Domain) -> Pool:
    return Pool(name, data, as_doubles=domain.layout is not None and data.dtype != object)


def labels_of(domain: Domain, source: InputSource) -> Callable[[], NDArray[Any]]:
    """The labels of a domain's test set, fetched on first use."""
    known: list[NDArray[Any]] = []

    def labels() -> NDArray[Any]:
        if not known:
            if domain.labels is None or source.name != "test":
                raise InputError(f"Inputs from the source {source.name} have no labels.")
            found = _as_labels(call_domain(domain.labels, domain, "labels"), domain)
            if len(found) != source.size:
                raise InputError(f"Domain {domain.name}: {len(found)} labels for {source.size} inputs.")
            known.append(found)
        return known[0]

    return labels


def _as_labels(given: Any, domain: Domain) -> NDArray[Any]:
    """Labels as a column: strings stay strings, and numbers stay numbers. Raises InputError."""
    found = np.asarray(given) if hasattr(given, "__array__") else None
    if found is None and isinstance(given, Iterable):
        found = column(list(given))
    if found is None or found.ndim != 1:
        raise InputError(f"Domain {domain.name}: labels() does not return a list of labels.")
    return found.astype(object) if found.dtype.kind == "U" else found


def _range_source(domain: Domain) -> Ranges:
    if domain.layout is None:
        raise InputError(
            f"The domain {domain.name} declares no FEATURES, so there are no ranges to draw from."
        )
    for feature in domain.layout.features:
        if feature.kind is Kind.CATEGORY and feature.values:
            continue
        if feature.holds_strings or feature.low is None or feature.high is None:
            raise InputError(f"Domain {domain.name}: the feature {feature.name} has no range to draw from.")
        if not feature.low <= feature.high:
            raise InputError(f"Domain {domain.name}: the range of the feature {feature.name} is empty.")
    return Ranges(domain.layout, RecordRules(domain))


# Results of random calls: sampled, enumerated, or as they were in an earlier run


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
