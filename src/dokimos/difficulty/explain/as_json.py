"""Rows as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from dokimos.difficulty.explain.rows import Explanation

SCHEMA = 1


def explanation_to_json(explanation: Explanation) -> dict[str, Any]:
    """Everything in an explanation, with the names of its fields."""
    return {"schema": SCHEMA, **plain(explanation)}


def plain(value: Any) -> Any:
    """A row, or a part of one, in dictionaries, lists, text and numbers."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {plain(key): plain(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value
