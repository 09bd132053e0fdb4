"""One registry for everything that is added in one file and one line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Generic, TypeVar

from dokimos.core.errors import InputError

T = TypeVar("T")


def unknown_name(kind: str, name: str, known: list[str]) -> InputError:
    """The error for a name that is not known: it suggests the closest one, or lists all."""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(known) + "."
    return InputError(f"Unknown {kind} {name!r}; {hint}")


class Registry(Generic[T]):
    """Names to elements, each loaded from ``"module:attribute"`` when first asked for.

    Loading late keeps ``dokimos --help`` fast: naming an element imports nothing.
    """

    def __init__(self, kind: str, targets: dict[str, str]) -> None:
        self._kind = kind
        self._targets = dict(targets)
        self._loaded: dict[str, T] = {}

    def add(self, name: str, element: T) -> None:
        """Register an element that is already in memory (a third party's, or a test's)."""
        if name in self._targets or name in self._loaded:
            raise InputError(f"The {self._kind} {name!r} is registered twice; choose another name.")
        self._loaded[name] = element

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            if name not in self._targets:
                raise unknown_name(self._kind, name, sorted(self))
            module, _, attribute = self._targets[name].partition(":")
            factory: Callable[[], T] = getattr(import_module(module), attribute)
            self._loaded[name] = factory()
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._targets, *self._loaded}))

    def __contains__(self, name: object) -> bool:
        return name in self._targets or name in self._loaded
