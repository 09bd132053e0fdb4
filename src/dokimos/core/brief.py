"""Large results, shown in one line at a prompt: what they hold is counted, not spelled out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

_MOST_ITEMS = 3
_LONGEST = 100


class Brief:
    """A base of dataclasses (with `repr=False`) that hold many other values."""

    def __repr__(self) -> str:
        names = [each.name for each in fields(self) if each.repr]  # type: ignore[arg-type]
        held = (f"{name}={_shown(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({', '.join(held)})"


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list | set | frozenset | Mapping):
        return _counted(value)
    shown = repr(value)
    return shown if isinstance(value, Brief) or len(shown) <= _LONGEST else f"<{type(value).__name__}>"


def _counted(values: Collection[Any]) -> str:
    if len(values) <= _MOST_ITEMS and len(shown := repr(values)) <= _LONGEST:
        return shown
    items = values.values() if isinstance(values, Mapping) else values
    kinds = " or ".join(sorted({type(each).__name__ for each in items}))
    return f"<{len(values)} {kinds}>"
