"""Reads the plain JSON of a certificate, refusing what has the wrong shape."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.strict_json import convert
from dokimos.properties.decimals import parse_decimal

PLACE = "certificate"
T = TypeVar("T")
Natural = Annotated[int, Meta(ge=0)]
Choice = Annotated[int, Meta(ge=-1)]
"""A number to choose by at a node of a tree, -1 for a leaf."""


class NoData(Struct, forbid_unknown_fields=True):
    """The form of a proof that needs no data."""


def read_data(data: Mapping[str, Any], form: type[T]) -> T:
    """The data of a certificate as a typed form. Raises UnreadableFile where it has the wrong shape.

    A rational number is a string: an integer, a decimal or a fraction "p/q".
    """
    return convert(
        dict(data), form, file=PLACE, what="the data of this kind of proof", hooks={Fraction: _rational}
    )


def expect_keys(data: Mapping[str, Any], *keys: str) -> None:
    """Refuse data whose keys are not exactly these."""
    if set(data) != set(keys):
        wanted = ", ".join(keys) or "nothing"
        found = ", ".join(repr(key[:40]) for key in sorted(data)[:10]) or "nothing"
        raise UnreadableFile(PLACE, f"its data must hold exactly: {wanted}; found: {found}")


def rational(value: Any, what: str) -> Fraction:
    """A number spelt as a string: an integer, a decimal or a fraction "p/q"."""
    if not isinstance(value, str):
        raise UnreadableFile(PLACE, f"{what} must be a number spelt as a string")
    top, slash, bottom = value.partition("/")
    try:
        numerator = parse_decimal(top, exponent=not slash)
        return numerator / parse_decimal(bottom, exponent=False) if slash else numerator
    except (InputError, ZeroDivisionError):
        raise UnreadableFile(PLACE, f"{what} is not a number: {value[:80]!r}") from None


def _rational(value: Any) -> Fraction:
    try:
        return rational(value, "it")
    except UnreadableFile as error:
        raise ValueError(error.reason) from None


def text(data: Mapping[str, Any], key: str) -> str:
    """A string."""
    if not isinstance(data[key], str):
        raise UnreadableFile(PLACE, f"{key!r} must be a string")
    return str(data[key])
