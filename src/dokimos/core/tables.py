"""Tables of plain cells, written as CSV; their columns are the fields of dataclasses."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import UnreadableFile
from dokimos.core.inputs import MOST_BYTES
from dokimos.core.readable import Number

#: Up to this size, archives may have any compression ratio.
_SMALL = 2**26
#: Above it, an archive may decompress to this many times its size.
_MOST_TIMES = 50


def most_unfolded(size: int) -> int:
    """To how many bytes an archive of so many bytes may decompress."""
    return min(MOST_BYTES, max(_SMALL, _MOST_TIMES * size))


@dataclass(frozen=True)
class TableRows:
    """A table, named after its file; a cell is a text, a number, or None if it is empty."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def csv(self) -> str:
        """The table as CSV, with a header row."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return out.getvalue()


@dataclass(frozen=True)
class Column:
    """How a field appears in a table: `label: Annotated[Label | None, Column("truth")]`.

    `heading` is the column's heading, if it is not the field's name; `for_none` is the cell of a field that
    is None. With `spread`, the field is a mapping, with one column for each of these names and for every
    other key in any row. A `hidden` field has no column.
    """

    heading: str = ""
    for_none: str | None = None
    spread: tuple[str, ...] | None = None
    hidden: bool = False


HIDDEN = Column(hidden=True)
"""Marks a field that has no column."""


def table(name: str, parts: Sequence[str | type], rows: Iterable[Sequence[Any]]) -> TableRows:
    """The table of `rows`, each of which has one value for each of `parts`.

    A part is the heading of one column, or a dataclass, which has a column for each of its fields, in
    order, named after the field or as its `Column` says. A field that is a tuple has no column unless it
    has a `Column`. In place of a dataclass, None leaves all its cells empty.
    """
    found = [[value for _, value in zip(parts, row, strict=True)] for row in rows]
    places = [_places(part, [row[k] for row in found]) for k, part in enumerate(parts)]
    return TableRows(
        name,
        tuple(place.heading for several in places for place in several),
        tuple(
            tuple(
                place.cell(value) for several, value in zip(places, row, strict=True) for place in several
            )
            for row in found
        ),
    )


@dataclass(frozen=True)
class _Place:
    """One column: its heading, and which field of a part its cell comes from (empty: the part itself)."""

    heading: str
    field: str = ""
    key: str = ""
    for_none: str | None = None

    def cell(self, part: Any) -> Any:
        if self.field:
            part = None if part is None else getattr(part, self.field)
        if self.key:
            part = None if part is None else part.get(self.key)
            part = getattr(part, "value", part)
        return self.for_none if part is None else _plain(part)


def _places(part: str | type, values: Sequence[Any]) -> list[_Place]:
    if isinstance(part, str):
        return [_Place(part)]
    hints = get_type_hints(part, include_extras=True)
    return [place for one in fields(part) for place in _of_field(one.name, hints[one.name], values)]


def _of_field(name: str, hint: Any, values: Sequence[Any]) -> list[_Place]:
    said = [extra for extra in _extras(hint) if isinstance(extra, Column)]
    found = said[0] if said else Column(hidden=get_origin(hint) is tuple)
    if found.spread is not None:
        every = (key for value in values if value is not None for key in getattr(value, name))
        return [_Place(key, name, key) for key in dict.fromkeys([*found.spread, *every])]
    return [] if found.hidden else [_Place(found.heading or name, name, for_none=found.for_none)]


def _extras(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _plain(value: Any) -> Any:
    """A value as the content of a cell."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Number):
        return value.full
    if isinstance(value, Mapping):
        return json.dumps(dict(value), ensure_ascii=False)
    if isinstance(value, tuple):
        return json.dumps(dict(value), ensure_ascii=False)
    return value


# Arrays from untrusted files: of bounded size, and never larger than the data in the file


def array_in(content: bytes, *, file: Path | str) -> NDArray[Any]:
    """Read the array of numbers or texts in the content of a .npy file. Raises UnreadableFile."""
    try:
        return _array(content)
    except Exception as problem:  # numpy parses the header as Python, which may raise anything
        raise UnreadableFile(file, f"is not an array: {_in_a_line(problem)}.") from None


def arrays_in(content: bytes, names: Sequence[Sequence[str]], *, file: Path | str) -> list[NDArray[Any]]:
    """Read arrays from an .npz file: for each of `names`, the first that exists. Raises UnreadableFile."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            there = {name.removesuffix(".npy"): archive.getinfo(name) for name in archive.namelist()}
            chosen = [next((there[name] for name in either if name in there), None) for either in names]
            for either, found in zip(names, chosen, strict=True):
                if found is None:
                    known = ", ".join(sorted(there)[:20]) or "none"
                    raise UnreadableFile(file, f"has no array {either[0]!r} (it has the arrays {known}).")
            members = [found for found in chosen if found is not None]
            most = most_unfolded(len(content))
            if sum(found.file_size for found in members) > most:
                raise UnreadableFile(file, f"its arrays decompress to more than {most} bytes.")
            return [array_in(archive.read(found), file=file) for found in members]
    except UnreadableFile:
        raise
    except Exception as problem:  # zipfile may raise anything, including zlib's errors
        raise _no_archive(file, problem) from None


def all_arrays(content: bytes, *, file: Path | str) -> dict[str, NDArray[Any]]:
    """Read every array of an .npz file, by name. Raises UnreadableFile."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [name.removesuffix(".npy") for name in archive.namelist()]
    except Exception as problem:
        raise _no_archive(file, problem) from None
    return dict(zip(names, arrays_in(content, [[name] for name in names], file=file), strict=True))


def _no_archive(file: Path | str, problem: Exception) -> UnreadableFile:
    return UnreadableFile(file, f"is not an .npz file of plain arrays ({_in_a_line(problem)}).")


def _array(content: bytes) -> NDArray[Any]:
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"it has version {version} of the format")
    shape, is_fortran, dtype = readers[version](file)
    if dtype.kind not in "biufSU" or dtype.itemsize == 0:
        raise ValueError(f"its values are {dtype}, neither numbers nor texts")
    stated, there = math.prod(shape) * dtype.itemsize, len(content) - file.tell()
    if stated != there or any(size < 0 for size in shape):
        raise ValueError(f"its header says {stated} bytes, but it holds {there}")
    flat = np.frombuffer(content, dtype, offset=file.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C").copy()


def _in_a_line(problem: Exception) -> str:
    return " ".join(str(problem).split())[:200]
