"""The features of a record: names, kinds and ranges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from math import inf
from numbers import Real
from typing import Any

from dokimos.core.errors import InputError
from dokimos.core.readable import did_you_mean

#: The name of a choice's value when it has none.
NONE = "none"
#: No finite end of a range is beyond this, so that sums of floats do not overflow; an end may be infinite.
_MOST_END = 1e300


class Kind(Enum):
    """The kind of values that a feature has."""

    INTEGER = "integer"
    REAL = "real"
    CHOICE = "choice"
    CATEGORY = "category"
    TEXT = "text"


@dataclass(frozen=True)
class Feature:
    """One feature of a record.

    `low` and `high` are the ends of its range, both included. A choice takes one column for each of its
    `values`: exactly one of them is 1, or, if it `has_none`, possibly none. In a law its value is the index
    of that column (-1 for none), which may also be written by name. A category takes one column, which
    holds one of its `values` as a string (any string if none are listed). `words` is what sentences call
    the feature; `dtype` is the type of its column if the model takes a DataFrame. With `may_miss`, a
    record may have no value of the feature: nan, or None in a column of strings.
    """

    name: str
    kind: Kind = Kind.REAL
    low: float | None = None
    high: float | None = None
    values: tuple[str, ...] = ()
    words: str = ""
    has_none: bool = False
    dtype: Any = field(default=None, compare=False)
    may_miss: bool = False

    @property
    def holds_strings(self) -> bool:
        """Whether its column holds strings."""
        return self.kind in (Kind.TEXT, Kind.CATEGORY)

    def index_of(self, value: str) -> int:
        """The index of a value of a choice; -1 for "none" if the choice has that. Raises InputError."""
        if value in self.values:
            return self.values.index(value)
        if value == NONE and self.has_none:
            return -1
        named = ", ".join(self.named_values[:10])
        hint = did_you_mean(value, self.named_values)
        raise InputError(f'{self.name} has no value "{value}"{hint}; it has {named}')

    @property
    def named_values(self) -> tuple[str, ...]:
        """The names of the values of a choice, with "none" last if it has that."""
        return (*self.values, *([NONE] if self.has_none and NONE not in self.values else []))

    def __post_init__(self) -> None:
        texts = (self.name, self.words, *self.values)
        if not self.name or any(not isinstance(each, str) for each in texts):
            raise InputError("A feature needs a name, and its values and words must be strings.")
        for end in (self.low, self.high):
            if isinstance(end, int | float) and _MOST_END < abs(end) < inf:
                raise InputError(f"An end of the feature {self.name} is too large; leave it out.")
            if not isinstance(end, Real | None):
                raise InputError(f"The ends of the feature {self.name} must be numbers.")

    @property
    def width(self) -> int:
        """How many columns the feature takes."""
        return len(self.values) if self.kind is Kind.CHOICE else 1

    @property
    def spoken(self) -> str:
        """What sentences call the feature."""
        return self.words or self.name.replace("_", " ")


def integer(
    name: str, low: int | None = None, high: int | None = None, *, words: str = "", missing: bool = False
) -> Feature:
    """A feature whose values are integers; with `missing`, a record may have none."""
    return Feature(name, Kind.INTEGER, low, high, words=words, may_miss=missing)


def real(
    name: str,
    low: float | None = None,
    high: float | None = None,
    *,
    words: str = "",
    missing: bool = False,
) -> Feature:
    """A feature whose values are real numbers; with `missing`, a record may have none."""
    return Feature(name, Kind.REAL, low, high, words=words, may_miss=missing)


def flag(name: str, *, words: str = "", dtype: str | None = None, missing: bool = False) -> Feature:
    """A feature that is 0 or 1, or, with `missing`, nothing.

    Its `dtype` is "bool" if the DataFrame's column holds truth values.
    """
    return Feature(name, Kind.INTEGER, 0, 1, words=words, dtype=dtype, may_miss=missing)


def choice(name: str, *values: str, words: str = "", none: bool = False) -> Feature:
    """A feature with one of several values, one-hot encoded in as many columns.

    With `none` it may have no value: all columns are 0.
    """
    if len(values) < 2:
        raise InputError(f"The choice {name} needs at least two values.")
    return Feature(name, Kind.CHOICE, 0, len(values) - 1, values, words, none)


def category(name: str, *values: str, words: str = "", missing: bool = False) -> Feature:
    """A feature whose values are strings, in one column as they are; any strings if none are listed.

    With `missing`, a record may have none.
    """
    for value in values:
        if not isinstance(value, str):
            raise InputError(f"The category {name} has the value {value!r}, which is not a string.")
    return Feature(name, Kind.CATEGORY, values=values, words=words, may_miss=missing)


def text(name: str, *, words: str = "", missing: bool = False) -> Feature:
    """A feature that is a string; with `missing`, a record may have none."""
    return Feature(name, Kind.TEXT, words=words, may_miss=missing)


@dataclass(frozen=True)
class Slot:
    """Where a feature, or one column of a choice, is found in a record."""

    feature: Feature
    start: int

    @property
    def stop(self) -> int:
        """One past the last column."""
        return self.start + self.feature.width


class Layout:
    """The columns of a record, by name and by index."""

    def __init__(self, features: Sequence[Feature], aliases: Mapping[int, str] | None = None) -> None:
        """`aliases` gives names to further indices, such as -1 for a choice.

        Raises InputError if two features share a name.
        """
        self.features = tuple(features)
        self.slots: tuple[Slot, ...] = ()
        self._by_name: dict[str, Slot] = {}
        start = 0
        for feature in self.features:
            slot = Slot(feature, start)
            self.slots += (slot,)
            self._add(feature.name, slot)
            start += feature.width
        self.width = start
        self._columns = [self._column(index) for index in range(start)]
        for slot in self._columns:
            if slot.feature.name not in self._by_name:
                self._by_name[slot.feature.name] = slot
        self._aliases = dict(aliases or {})
        for name in self._aliases.values():
            self.named(name)

    def _add(self, name: str, slot: Slot) -> None:
        if name in self._by_name:
            raise InputError(f"Two features are called {name}; give each a name of its own.")
        self._by_name[name] = slot

    def feature_at(self, column: int) -> Feature:
        """The feature that a column belongs to: for a column of a choice, the choice."""
        return self._slot_at(column).feature

    def _slot_at(self, column: int) -> Slot:
        return next(slot for slot in self.slots if slot.start <= column < slot.stop)

    def _column(self, index: int) -> Slot:
        slot = self._slot_at(index)
        if slot.feature.kind is not Kind.CHOICE:
            return slot
        value = slot.feature.values[index - slot.start]
        name = self.column_name(f"{slot.feature.name}_{value}")
        return Slot(Feature(name, Kind.INTEGER, 0, 1, words=f"{slot.feature.spoken} {value}"), index)

    @staticmethod
    def column_name(words: str) -> str:
        """The name of a column in laws: letters, digits and _ only."""
        return re.sub(r"\W+", "_", words).strip("_")

    def with_dtypes(self, dtypes: Mapping[str, Any]) -> Layout:
        """The same features, with these dtypes for the named ones."""
        made = [replace(each, dtype=dtypes.get(each.name, each.dtype)) for each in self.features]
        return Layout(made, self._aliases)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that a law can use: of features, and of single columns of choices."""
        return tuple(self._by_name)

    def slot(self, reference: str | int) -> Slot:
        """The feature with a name or at an index. Raises InputError if there is none."""
        return self.at(reference) if isinstance(reference, int) else self.named(reference)

    def named(self, name: str) -> Slot:
        """The feature called `name`, or at index N for `fN`. Raises InputError if there is none."""
        if name in self._by_name:
            return self._by_name[name]
        if match := re.fullmatch(r"f([0-9]+)", name):
            return self.at(int(match[1]))
        raise InputError(f"there is no feature {name}{did_you_mean(name, self._by_name)}")

    def at(self, index: int) -> Slot:
        """The column at `index`. Raises InputError if there is none."""
        if index in self._aliases:
            return self.named(self._aliases[index])
        if not 0 <= index < self.width:
            raise InputError(f"there is no feature {index}; records have the columns 0 to {self.width - 1}")
        return self._columns[index]
