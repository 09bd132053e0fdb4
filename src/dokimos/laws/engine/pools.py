"""Pools of records: arrays that match a layout, and the files that hold them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core import strict_json
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.core.tables import array_in
from dokimos.core.typed_values import convert
from dokimos.laws.domain.data_frames import is_table, rows_of
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.engine.case_frame import stack


def as_records(given: Any, layout: Layout | None, what: str) -> NDArray[Any]:
    """Records as an array that matches the layout, one per row. Raises InputError.

    An array of numbers is returned as it is, not copied.
    """
    if layout is not None and is_table(given) and len(given):
        return rows_of(given, layout, what)
    if hasattr(given, "__array__"):  # arrays, and tables and tensors of other packages
        data = np.asarray(given)
    elif isinstance(given, Iterable):
        data = stack(list(given))
    else:
        data = np.asarray(None)
    if data.ndim == 0:
        raise InputError(f"{what}: this is not a list of records.")
    if len(data) == 0:
        raise InputError(f"{what}: there are no records.")
    if layout is None:
        return data
    if data.ndim != 2 or data.shape[1] != layout.width:
        raise InputError(
            f"{what}: records of shape {data.shape[1:]}, where FEATURES has {layout.width} columns."
        )
    texts = [slot.start for slot in layout.slots if slot.feature.holds_strings]
    numbers = np.setdiff1d(np.arange(layout.width), texts)
    try:
        if not texts:
            return data if data.dtype.kind in "biuf" else data.astype(np.float64)
        made = data.astype(object)
        made[:, numbers] = made[:, numbers].astype(np.float64)
        return made
    except (OverflowError, TypeError, ValueError):
        raise InputError(f"{what}: a record holds a value that is not a number.") from None


def data_of(domain: Domain) -> NDArray[Any] | None:
    """The records of a domain's data; None if it has none, or they are not to be had here."""
    if domain.inputs is None:
        return None
    try:
        return as_records(call_domain(domain.inputs, domain, "inputs"), domain.layout, domain.name)
    except InputError:
        return None


def read_pool(path: Path, layout: Layout | None) -> NDArray[Any]:
    """Records from .npy, .json (a list), .csv (with or without a header) or .txt (one text per line).

    Raises InputError.
    """
    content = read_whole(path)
    if path.suffix == ".npy":
        return as_records(array_in(content, file=path), layout, str(path))
    if path.suffix == ".json":
        document = strict_json.parse(content, file=path, nan=True)
        rows = convert(document, list[Any], file=path, what="a list of records")
        return as_records(rows, layout, str(path))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableFile(path, "is not UTF-8 text.") from None
    if path.suffix == ".txt":
        return as_records([line for line in text.splitlines() if line.strip()], layout, str(path))
    lines = [row for row in csv.reader(text.splitlines()) if row]
    if lines and layout is not None and set(lines[0]) <= set(layout.names):
        lines = lines[1:]
    if len({len(line) for line in lines}) > 1:
        raise UnreadableFile(path, "its lines have different numbers of columns.")
    return as_records(np.array(lines, dtype=object), layout, str(path))


def pool_file(records: NDArray[Any], suffix: str) -> bytes:
    """The content of a file for `--source pool:FILE`: .npy or .json."""
    if suffix == ".json":
        return strict_json.write(records.tolist(), indent=None).encode()
    buffer = io.BytesIO()
    np.save(buffer, records, allow_pickle=False)
    return buffer.getvalue()


# Fuzzing: diverse records, found by walks that start from records found before


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
