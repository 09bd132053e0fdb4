"""Registries that other packages can extend through entry points.

A package lists its elements in its pyproject.toml, one per line, in the group of their registry::

    [project.entry-points."dokimos.verifiers"]
    my-verifier = "my_package.verifier:MyVerifier"

A package is not imported before its element is used. If a package is broken, only its own elements are
missing; each problem is logged in one sentence.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from dokimos import __version__
from dokimos.core.errors import InputError
from dokimos.core.readable import unknown_name
from dokimos.core.registry import Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Provider:
    """The installed package that an element comes from."""

    package: str
    version: str

    def __str__(self) -> str:
        return f"{self.package} {self.version}"


DOKIMOS = Provider("dokimos", __version__)


class PluggableRegistry(Registry[T]):
    """A registry of what Dokimos ships, followed by what installed packages add in its `group`.

    `expects` is the class that every element must be an instance of; `elements` are shipped elements that
    are already in memory. An entry point may name an element, or a class or function that makes one when
    called without arguments. A package cannot replace a shipped name, and a name that two packages claim
    belongs to neither; both conflicts are logged once.
    """

    def __init__(
        self,
        kind: str,
        targets: Mapping[str, str],
        *,
        group: str,
        expects: type[Any],
        elements: Mapping[str, T] = MappingProxyType({}),
    ) -> None:
        super().__init__(kind, targets)
        self.group = group
        self._expects = expects
        self._points: dict[str, EntryPoint] | None = None
        self._reported: set[str] = set()
        self._loaded.update(elements)

    @property
    def shipped(self) -> tuple[str, ...]:
        """The names that Dokimos ships; installed packages are not searched for this."""
        return tuple(name for name in super().__iter__() if name not in (self._points or ()))

    @property
    def plugged_in(self) -> tuple[str, ...]:
        """The names that installed packages add."""
        return tuple(self._plugins())

    def _unknown(self, name: str) -> InputError:
        return unknown_name(self._kind, name, list(self))

    def provider(self, name: str) -> Provider:
        """The package that `name` comes from."""
        points = self._plugins()
        if name in points:
            return provider_of(points[name])
        if name not in self:
            raise self._unknown(name)
        return DOKIMOS

    def items(self) -> Iterator[tuple[str, T]]:
        """All elements that can be loaded; the others are logged and left out."""
        for name in self:
            element = self.get(name)
            if element is not None:
                yield name, element

    def get(self, name: str) -> T | None:
        """The element; None if there is none, or if its package is broken, which is logged once."""
        if name not in self:
            return None
        try:
            return self[name]
        except InputError as error:
            if name not in self._plugins():
                raise
            if name not in self._reported:
                self._reported.add(name)
                log.warning("%s", error)
            return None

    def _load(self, name: str) -> T:
        point = self._plugins().get(name)
        if point is None:
            return super()._load(name)
        try:
            found: Any = point.load()
            if not isinstance(found, self._expects) and callable(found):
                found = found()
        except Exception as error:  # the package may raise anything
            raise self._broken(name, point, f"{type(error).__name__}: {error}") from error
        if not isinstance(found, self._expects):
            raise self._broken(name, point, f"it is {type(found).__name__}, not a {self._expects.__name__}")
        made: T = found
        return made

    def _broken(self, name: str, point: EntryPoint, reason: str) -> InputError:
        first = reason.strip().splitlines()[0]
        return InputError(
            f"The {self._kind} {name!r} of package {provider_of(point)} cannot be loaded ({first}); "
            "repair or uninstall that package."
        )

    def __iter__(self) -> Iterator[str]:
        return iter([*self.shipped, *self._plugins()])

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self._plugins()

    def _plugins(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages, by name; looked up on first use."""
        if self._points is None:
            self._points = self._scan()
        return self._points

    def _scan(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points

        claimed: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=self.group):
            claimed.setdefault(point.name, {})[str(provider_of(point))] = point
        found: dict[str, EntryPoint] = {}
        for name in sorted(claimed):
            packages = sorted(claimed[name])
            if super().__contains__(name):
                log.warning(
                    "The %s %r of package %s is not used: %s has one of that name; rename it.",
                    *(self._kind, name, " and ".join(packages), DOKIMOS),
                )
            elif len(packages) > 1:
                log.warning(
                    "The %s %r is not used: the packages %s both have one; uninstall one of them.",
                    *(self._kind, name, " and ".join(packages)),
                )
            else:
                found[name] = claimed[name][packages[0]]
        return found


def provider_of(point: EntryPoint) -> Provider:
    """The package that an entry point belongs to."""
    if point.dist is None:
        return Provider(point.module, "of unknown version")
    return Provider(point.dist.name, point.dist.version)


def packages_missing(needs: str, extra: str, *, of: str = "dokimos") -> InputError:
    """The error where packages of an extra of `of` are missing; `needs` says what needs what.

    It names the packages, not `dokimos[extra]`: an index may have no Dokimos, or another one.
    """
    from importlib.metadata import PackageNotFoundError, requires  # it takes a while to load

    try:
        listed = [line.partition(";") for line in requires(of) or ()]
    except PackageNotFoundError:  # it runs from its folder, without having been installed
        listed = []
    named = [name.strip() for name, _, when in listed if when.endswith(f"extra == '{extra}'")]
    return InputError(f"{needs}; install it with: pip install {shlex.join(named or [f'.[{extra}]'])}")
