"""Keys that a form does not have: refused in dataclasses too, where msgspec itself passes over them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from msgspec import inspect

from dokimos.core.errors import Place, UnreadableFile


def require_known_keys(document: Any, kind: Any, *, file: str | Path | Place, what: str) -> None:
    """Make sure that every key of a plain `document` is a field of `kind`. Raises UnreadableFile.

    The document must have the form of `kind` otherwise, that is, `strict_json.convert` has accepted it.
    """
    if found := _unknown(document, _shape(kind), ""):
        raise UnreadableFile(file, f"unknown field `{found[:80]}`; this is not {what}")


@functools.cache
def _shape(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _unknown(value: Any, shape: inspect.Type, path: str) -> str | None:
    """The first unknown key in `value`, with the keys that lead to it."""
    parts: list[tuple[Any, inspect.Type, str]] = []
    if isinstance(shape, inspect.UnionType):
        parts = [(value, option, path) for option in shape.types if _fits(value, option)]
    elif isinstance(shape, inspect.DataclassType | inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in shape.fields}
        tag = shape.tag_field if isinstance(shape, inspect.StructType) else None
        for key in value.keys() - fields.keys() - {tag}:
            return f"{path}{key}"
        parts = [(part, fields[key], f"{path}{key}.") for key, part in value.items() if key in fields]
    elif isinstance(shape, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
        parts = [(part, shape.item_type, path) for part in value]
    return next((found for part in parts if (found := _unknown(*part)) is not None), None)


def _fits(value: Any, option: inspect.Type) -> bool:
    """Whether `value` may have been read as this member of a union."""
    if isinstance(option, inspect.StructType) and isinstance(value, dict):
        return option.tag_field is None or value.get(option.tag_field) == option.tag
    return True
