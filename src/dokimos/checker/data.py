"""Reads the data of a certificate as a typed form, and refuses data of the wrong shape."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from dokimos.core.strict_json import convert
from dokimos.properties.decimals import parse_decimal

PLACE = "certificate"
T = TypeVar("T")
Natural = Annotated[int, Meta(ge=0)]
Choice = Annotated[int, Meta(ge=-1)]
"""The number of the choice at a node of a tree; -1 for a leaf."""


class NoData(Struct, forbid_unknown_fields=True):
    """The form of a proof that needs no data."""


def read_data(data: Mapping[str, Any], form: type[T]) -> T:
    """Read the data of a certificate as a typed form. Raises UnreadableFile if it has the wrong shape.

    A rational number is a string: an integer, a decimal or a fraction "p/q".
    """
    return convert(
        dict(data), form, file=PLACE, what="the data of this kind of proof", hooks={Fraction: _rational}
    )


def _rational(value: Any) -> Fraction:
    if not isinstance(value, str):
        raise ValueError("expected a number, written as a string")
    top, slash, bottom = value.partition("/")
    divisor = parse_decimal(bottom, exponent=False) if slash else Fraction(1)
    if divisor == 0:
        raise ValueError(f"{value[:80]!r} divides by zero")
    return parse_decimal(top, exponent=not slash) / divisor
