"""A registry: an element is added by one file and one line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from dokimos.core.errors import InputError

T = TypeVar("T")


def nearest_name(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known name that somebody probably meant; None if none is close. Case and _ do not count."""
    names = sorted(set(known))
    folded = {each.lower().replace("_", ""): each for each in names}
    same = folded.get(name.lower().replace("_", ""))
    return same or next(iter(difflib.get_close_matches(name, names, n=1, cutoff=cutoff)), None)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """The error for an unknown name: it suggests the closest one, or lists all."""
    names = list(known)
    near = nearest_name(name, names)
    hint = f"did you mean {near!r}?" if near else "known: " + ", ".join(names) + "."
    return InputError(f"Unknown {kind} {name!r}; {hint}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean …?)`, or an empty text if no known name is close."""
    near = nearest_name(name, known)
    return f" (did you mean {near}?)" if near else ""


class Registry(Generic[T]):
    """Maps names to elements, each loaded from ``"module:attribute"`` when first used.

    Late loading keeps ``dokimos --help`` fast: listing names imports nothing. Names keep their order.
    `core.plugins` has the registry that other packages can extend.
    """

    def __init__(self, kind: str, targets: Mapping[str, str]) -> None:
        self._kind = kind
        self._targets = dict(targets)
        self._loaded: dict[str, T] = {}

    @property
    def targets(self) -> Mapping[str, str]:
        """The listed names, with their ``"module:attribute"``."""
        return self._targets

    def add(self, name: str, element: T) -> None:
        """Register an element that is already in memory."""
        if name in self:
            raise InputError(f"The {self._kind} {name!r} is registered twice; choose another name.")
        self._loaded[name] = element

    def __getitem__(self, name: str) -> T:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> T:
        if name not in self._targets:
            raise unknown_name(self._kind, name, list(self))
        module, _, attribute = self._targets[name].partition(":")
        factory: Callable[[], T] = getattr(import_module(module), attribute)
        return factory()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._targets, *self._loaded]))

    def __contains__(self, name: object) -> bool:
        return name in self._targets or name in self._loaded
