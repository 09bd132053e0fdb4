"""Verifiers that the user has installed: ``NAME=PLACE`` or an environment variable says where."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, Self

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.core.suggestions import did_you_mean
from dokimos.verifiers.base import NO_ATTACK, WARM, Finding, Verifier

_VERSION = "version"


class PlacedVerifier(Verifier):
    """A verifier at a place. An adapter's `trouble` defines what a place is (a folder, a command).

    ``--verifier vnncomp=/opt/tool`` is the verifier `vnncomp` at the place /opt/tool, and is called that in
    records. Without a place, the environment variable DOKIMOS_<NAME> names one.

    Settings may follow a place, as ``,NAME=VALUE``: those in `settings`, and ``version=…`` for a tool whose
    files do not say which version it is.
    """

    #: The settings that may follow its place, and what each is for.
    settings: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _given: str | None = None
    _kind: str | None = None

    @property
    def kind(self) -> str:
        """Its name in the catalogue, or the class that it was imported from."""
        return self._kind or self.name.removesuffix(WARM).removesuffix(NO_ATTACK).partition("=")[0]

    @property
    def variable(self) -> str:
        """The environment variable that may name its place."""
        return "DOKIMOS_" + type(self).name.upper().replace("-", "_")

    @property
    def place(self) -> str | None:
        """Where the user says it is."""
        return None if (said := self._said) is None else said[0]

    def setting(self, name: str) -> str | None:
        """The value of the setting `name` after its place; None if there is none."""
        return None if (said := self._said) is None else said[1].get(name)

    @property
    def _said(self) -> tuple[str, dict[str, str]] | None:
        given = self._given or os.environ.get(self.variable)
        if not given:
            return None
        known = "|".join(map(re.escape, (*self.settings, _VERSION)))
        place, *settings = re.split(rf",(?=(?:{known})=)", given)
        return place, dict(setting.split("=", 1) for setting in settings)

    def at(self, place: str) -> Self:
        """The same verifier at another place."""
        if not place.strip():
            raise InputError(f"{self.kind}= needs a place; to get it: {self.how_to_get()}.")
        there = copy.copy(self)
        there.name, there._given, there._kind = f"{self.kind}={place}", place, self.kind
        return there

    @abstractmethod
    def trouble(self, place: str) -> str | None:
        """Why there is no verifier at `place`; None if there is one."""

    @abstractmethod
    def parts(self, place: str) -> Iterable[bytes]:
        """What its answers depend on at `place`: the contents or digests of its files."""

    def unknown_setting(self) -> str | None:
        """The message about an unknown setting, if the rest of its place is correct; otherwise None."""
        place = self.place or ""
        found = re.match(r"(?P<place>.+?),(?P<name>[\w-]+)=", place)
        if found is None or self.trouble(place) is None or self.trouble(found["place"]) is not None:
            return None
        known, name = (*self.settings, _VERSION), found["name"]
        return f"{self.kind} has no setting {name!r}{did_you_mean(name, known)}, only {', '.join(known)}"

    def require(self) -> str:
        """Its place. Raises VerifierUnavailable if it is not there."""
        place = self.place
        if place is None:
            raise VerifierUnavailable(f"No path is given for {self.kind}: {self.how_to_get()}.")
        if trouble := self.unknown_setting() or self.trouble(place):
            raise VerifierUnavailable(f"The verifier {self.name} is not there: {trouble}.")
        return place

    def installed_version(self, *, where: str = "") -> str:
        """Its version. Raises VerifierUnavailable, which says what is missing at its place."""
        if self.place is not None:
            self.require()
        return super().installed_version(where=where)

    def version(self) -> str | None:
        """The version that the user gives, or a hash of its files and settings, which any change alters."""
        place = self.place
        if place is None or self.trouble(place):
            return None
        if named := self.setting(_VERSION):
            return named
        digest = hashlib.sha256()
        try:
            for part in self.parts(place):
                digest.update(part)
        except OSError:
            return None
        for name in self.settings:
            if (value := self.setting(name)) is not None:
                digest.update(f"\0{name}={value}".encode())
        return digest.hexdigest()[:12]

    @property
    def has_certain_version(self) -> bool:
        """Only if the user gives it: a hash of files misses what they import, load or call."""
        return self.setting(_VERSION) is not None

    def diagnose(self) -> tuple[Finding, ...]:
        """Whether its place is given and contains what it should."""
        place = self.place
        if place is None:
            return (Finding("no path given", False, self.how_to_get()),)
        if trouble := self.unknown_setting() or self.trouble(place):
            return (Finding(trouble, False, self.how_to_get()),)
        return (Finding(f"{place} is installed, version {self.version()}", True),)


def file_content(path: Path) -> bytes:
    """The content of a file for a version; empty if it is not a file."""
    return path.read_bytes() if path.is_file() else b""
