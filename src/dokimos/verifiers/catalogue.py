"""Which verifiers are known, and which of them are here."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.errors import VerifierUnavailable
from dokimos.registry import Registry
from dokimos.verifiers.base import Verifier

VERIFIERS: Registry[Verifier] = Registry(
    "verifier",
    {
        "marabou": "dokimos.verifiers.marabou:Marabou",
        "scripted": "dokimos.verifiers.scripted:Scripted",
    },
)


@dataclass(frozen=True)
class CatalogueRow:
    """One known verifier: its version where it is installed (else None), and how to get it."""

    name: str
    version: str | None
    how_to_get: str

    @property
    def is_installed(self) -> bool:
        """Whether it can be run now."""
        return self.version is not None


def catalogue() -> tuple[CatalogueRow, ...]:
    """All known verifiers, by name."""
    return tuple(
        CatalogueRow(name, VERIFIERS[name].version(), VERIFIERS[name].how_to_get()) for name in VERIFIERS
    )


def installed(name: str) -> Verifier:
    """The verifier called `name`; VerifierUnavailable, with the remedy, where it is not installed."""
    verifier = VERIFIERS[name]
    if verifier.version() is None:
        raise VerifierUnavailable(
            f"The verifier {name} is not installed; to get it: {verifier.how_to_get()}."
        )
    return verifier
