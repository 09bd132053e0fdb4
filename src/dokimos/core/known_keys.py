"""Refuses unknown keys in dataclasses too, where msgspec itself ignores them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import inspect

from dokimos.core.errors import Place, UnreadableFile

_Search = Callable[[Any, str], str | None]
"""Finds the first unknown key in a value, and returns its path of keys."""


def require_known_keys(document: Any, kind: Any, *, file: str | Path | Place, what: str) -> None:
    """Raise UnreadableFile if a key of a plain `document` is not a field of `kind`.

    Apart from that, the document must have the form of `kind`: `strict_json.convert` has accepted it. No
    type in `kind` may contain itself.
    """
    search = _search_for(kind)
    if search is not None and (found := search(document, "")) is not None:
        raise UnreadableFile(file, f"unknown field `{found[:80]}`; this is not {what}")


@functools.cache
def _search_for(kind: Any) -> _Search | None:
    return _search(inspect.type_info(kind))


def _search(shape: inspect.Type) -> _Search | None:
    """The search through values of one type; None if they have no keys."""
    if isinstance(shape, inspect.UnionType):
        return _in_union(shape)
    if isinstance(shape, inspect.DataclassType | inspect.StructType):
        return _in_object(shape)
    if isinstance(shape, inspect.ListType | inspect.VarTupleType):
        return _in_list(shape)
    return None


def _in_union(shape: inspect.UnionType) -> _Search | None:
    searches = [(option, found) for option in shape.types if (found := _search(option)) is not None]

    def search(value: Any, path: str) -> str | None:
        for option, inner in searches:
            if _fits(value, option) and (found := inner(value, path)) is not None:
                return found
        return None

    return search if searches else None


def _fits(value: Any, option: inspect.Type) -> bool:
    """Whether `value` may have been read as this member of a union."""
    if isinstance(option, inspect.StructType) and isinstance(value, dict):
        return option.tag_field is None or value.get(option.tag_field) == option.tag
    return True


def _in_object(shape: inspect.DataclassType | inspect.StructType) -> _Search:
    known = {field.encode_name for field in shape.fields}
    if isinstance(shape, inspect.StructType) and shape.tag_field is not None:
        known.add(shape.tag_field)
    searches = {f.encode_name: found for f in shape.fields if (found := _search(f.type)) is not None}

    def search(value: Any, path: str) -> str | None:
        if not isinstance(value, dict):
            return None
        for key in value:
            if key not in known:
                return f"{path}{key}"
        for key, inner in searches.items():
            if key in value and (found := inner(value[key], f"{path}{key}.")) is not None:
                return found
        return None

    return search


def _in_list(shape: inspect.ListType | inspect.VarTupleType) -> _Search | None:
    inner = _search(shape.item_type)
    if inner is None:
        return None

    def search(value: Any, path: str) -> str | None:
        parts = value if isinstance(value, list) else ()
        return next((found for part in parts if (found := inner(part, path)) is not None), None)

    return search
