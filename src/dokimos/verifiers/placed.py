"""Verifiers that the user has: where they are, ``NAME=PLACE`` or an environment variable says."""

from __future__ import annotations

import copy
import hashlib
import os
from abc import abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.verifiers.base import NO_ATTACK, Finding, Verifier


class PlacedVerifier(Verifier):
    """A verifier at a place. What a place is (a folder, a command), an adapter says in `trouble`.

    ``--verifier vnncomp=/opt/tool`` is the verifier `vnncomp` at the place /opt/tool, and is called that in
    records. Without a place, the environment variable DOKIMOS_<NAME> names one.
    """

    _given: str | None = None

    @property
    def kind(self) -> str:
        """How it is called without its place."""
        return self.name.removesuffix(NO_ATTACK).partition("=")[0]

    @property
    def variable(self) -> str:
        """The environment variable that may name its place."""
        return "DOKIMOS_" + type(self).name.upper().replace("-", "_")

    @property
    def place(self) -> str | None:
        """Where it is said to be."""
        return self._given or os.environ.get(self.variable) or None

    def at(self, place: str) -> Self:
        """The same at another place."""
        if not place.strip():
            raise InputError(f"{self.kind}= needs a place; to get it: {self.how_to_get()}.")
        there = copy.copy(self)
        there.name, there._given = f"{self.kind}={place}", place
        return there

    @abstractmethod
    def trouble(self, place: str) -> str | None:
        """Why there is no verifier at `place`; None where there is one."""

    @abstractmethod
    def parts(self, place: str) -> Iterable[Path]:
        """The files at `place` that make its version, as far as they are there."""

    def require(self) -> str:
        """Its place. Raises VerifierUnavailable where it is not there."""
        place = self.place
        if place is None:
            raise VerifierUnavailable(f"Nobody has said where {self.kind} is: {self.how_to_get()}.")
        if trouble := self.trouble(place):
            raise VerifierUnavailable(f"The verifier {self.name} is not there: {trouble}.")
        return place

    def installed_version(self, *, where: str = "") -> str:
        """Its version; what is missing at its place is said, where it has one."""
        if self.place is not None:
            self.require()
        return super().installed_version(where=where)

    def version(self) -> str | None:
        """A hash of its files: scripts that change are another verifier."""
        place = self.place
        if place is None or self.trouble(place):
            return None
        digest = hashlib.sha256()
        try:
            for part in self.parts(place):
                digest.update(part.read_bytes() if part.is_file() else b"")
        except OSError:
            return None
        return digest.hexdigest()[:12]

    def diagnose(self) -> tuple[Finding, ...]:
        """Whether its place is known and holds what it must."""
        place = self.place
        if place is None:
            return (Finding("nobody has said where it is", False, self.how_to_get()),)
        if trouble := self.trouble(place):
            return (Finding(trouble, False, self.how_to_get()),)
        return (Finding(f"{place} is there, version {self.version()}", True),)
