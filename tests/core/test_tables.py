from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

import pytest

from dokimos.core.readable import Number
from dokimos.core.tables import HIDDEN, Column, TableRows, table


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Row:
    name: str
    colour: Colour | None
    size: Annotated[int | None, Column("bytes", for_none="any")]
    secret: Annotated[str, HIDDEN]
    several: tuple[int, ...]
    exact: Number
    fixed: Mapping[str, float]
    pairs: Annotated[tuple[tuple[str, int], ...], Column("knobs")]


@dataclass(frozen=True)
class Spread:
    first: int
    values: Annotated[Mapping[str, float | None], Column(spread=("a",))]
    last: int


ROW = Row("n", Colour.RED, 3, "s", (1, 2), Number("0.3", "0.333"), {"a": 1.5}, (("k", 7),))


def test_columns_are_the_fields() -> None:
    found = table("t", [Row], [(ROW,)])
    assert found.columns == ("name", "colour", "bytes", "exact", "fixed", "knobs")
    assert found.rows == (("n", "red", 3, "0.333", '{"a": 1.5}', '{"k": 7}'),)


def test_nothing_stays_empty_unless_the_field_has_a_word_for_it() -> None:
    nothing = Row("n", None, None, "", (), Number("0", "0"), {}, ())
    assert table("t", [Row], [(nothing,)]).rows[0][:3] == ("n", None, "any")


def test_parts_stand_side_by_side_and_may_be_missing() -> None:
    found = table("t", ["kind", Spread, "end"], [("x", Spread(1, {}, 2), 9), ("y", None, 8)])
    assert found.columns == ("kind", "first", "a", "last", "end")
    assert found.rows == (("x", 1, None, 2, 9), ("y", None, None, None, 8))
    with pytest.raises(ValueError, match="argument"):
        table("t", ["kind", "end"], [("x",)])


def test_a_spread_field_has_a_column_for_each_key_in_any_row() -> None:
    found = table("t", [Spread], [(Spread(1, {"b": 2.0}, 3),), (Spread(4, {"a": None, "c": 5.0}, 6),)])
    assert found.columns == ("first", "a", "b", "c", "last")
    assert found.rows == ((1, None, 2.0, None, 3), (4, None, None, 5.0, 6))


def test_a_table_without_rows_has_its_heading() -> None:
    assert table("t", [Spread], []).csv() == "first,a,last\n"
    assert TableRows("t", ("a", "b"), (('x,"', None),)).csv() == 'a,b\n"x,""",\n'
