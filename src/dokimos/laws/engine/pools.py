"""Pools of records: arrays that match a layout, and the files that hold them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core import strict_json
from dokimos.core.arrays import array_in
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.files import read_whole
from dokimos.laws.domain.definition import Domain, call_domain
from dokimos.laws.domain.features import Layout
from dokimos.laws.domain.tables import is_table, rows_of
from dokimos.laws.engine.frame import stack


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
        rows = strict_json.convert(document, list[Any], file=path, what="a list of records")
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
