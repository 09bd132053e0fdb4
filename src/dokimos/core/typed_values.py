"""From plain values, as JSON has them, to typed ones: a dataclass or a `msgspec.Struct`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dokimos.core.errors import InputError, Place, UnreadableFile

T = TypeVar("T")
Hooks = Mapping[type, Callable[[Any], Any]]
"""Makes a value of a type that JSON lacks from a plain value. Raises ValueError if that is impossible."""


def convert(
    document: Any, kind: type[T], *, file: str | Path | Place, what: str, hooks: Hooks | None = None
) -> T:
    """Convert a plain value to a typed one. Raises UnreadableFile, which says what is wrong, and where."""
    try:
        return msgspec.convert(document, kind, dec_hook=_applying(hooks or {}))
    except msgspec.ValidationError as error:
        raise UnreadableFile(file, f"{_in_words(str(error))}; this is not {what}") from None
    except InputError as error:  # raised by the type's own validation
        raise UnreadableFile(file, str(error)) from None


def _applying(hooks: Hooks) -> Callable[[type, Any], Any]:
    def apply(kind: type, value: Any) -> Any:
        if kind not in hooks:
            raise NotImplementedError(f"no hook for {kind.__name__}")
        try:
            return hooks[kind](value)
        except (ArithmeticError, TypeError, InputError) as error:
            raise ValueError(str(error)) from None

    return apply


def _in_words(message: str) -> str:
    """msgspec's sentence with the place first: "semantics.real: expected `bool`, got `int`"."""
    reason, _, where = " ".join(message.split()).partition(" - at `")  # a name may hold line breaks
    reason = reason[:1].lower() + reason[1:]
    place = where.rstrip("`").removeprefix("$").removeprefix(".")
    return f"{place}: {reason}" if place else reason
