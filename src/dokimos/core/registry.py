"""A registry: an element is added by one file and one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar

from dokimos.core.errors import InputError

T = TypeVar("T")


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
            raise self._unknown(name)
        module, _, attribute = self._targets[name].partition(":")
        factory: Callable[[], T] = getattr(import_module(module), attribute)
        return factory()

    def _unknown(self, name: str) -> InputError:
        return InputError(f"Unknown {self._kind} {name!r}; known: {', '.join(self)}.")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._targets, *self._loaded]))

    def __contains__(self, name: object) -> bool:
        return name in self._targets or name in self._loaded
