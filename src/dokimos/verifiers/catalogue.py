"""Which verifiers are known, and which of them are here."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.core.errors import InputError
from dokimos.core.plugins import PluggableRegistry
from dokimos.verifiers.base import NO_ATTACK, Verifier
from dokimos.verifiers.importing import import_verifier, is_import
from dokimos.verifiers.styles import CertificateStyle

VERIFIERS: PluggableRegistry[Verifier] = PluggableRegistry(
    "verifier",
    {
        "alpha-beta-crown": "dokimos.verifiers.adapters.alpha_beta_crown:AlphaBetaCrown",
        "marabou": "dokimos.verifiers.adapters.marabou:Marabou",
        "neuralsat": "dokimos.verifiers.adapters.neuralsat:NeuralSat",
        "never2": "dokimos.verifiers.adapters.never2:Never2",
        "nnenum": "dokimos.verifiers.adapters.nnenum:Nnenum",
        "pyrat": "dokimos.verifiers.adapters.pyrat:Pyrat",
        "reference": "dokimos.verifiers.adapters.reference:Reference",
        "scripted": "dokimos.verifiers.adapters.scripted:Scripted",
        "vibecheck": "dokimos.verifiers.adapters.vibecheck:Vibecheck",
        "vnncomp": "dokimos.verifiers.adapters.vnncomp_tool:VnncompTool",
        "vnnlib2": "dokimos.verifiers.adapters.vnnlib2_solver:Vnnlib2Solver",
    },
    group="dokimos.verifiers",
    expects=Verifier,
)


@dataclass(frozen=True)
class CatalogueRow:
    """One known verifier: its version (None where it is not installed), its limits, how to get it."""

    name: str
    version: str | None
    limitations: str
    how_to_get: str

    @property
    def is_installed(self) -> bool:
        """Whether it can be run now."""
        return self.version is not None


def catalogue() -> tuple[CatalogueRow, ...]:
    """All known verifiers, by name."""
    return tuple(
        CatalogueRow(name, verifier.version(), verifier.limitations, verifier.how_to_get())
        for name, verifier in VERIFIERS.items()
    )


def find(given: str) -> Verifier:
    """The verifier that the user names; InputError where there is none.

    ``NAME`` is one of the catalogue, or ``package.module:Class``. ``NAME=PLACE`` says where it is. Either
    may end in ``:no-attack``: the same with its own attack switched off. All of it together is its name in
    records, so that commands in reports can be repeated.
    """
    if given.endswith(NO_ATTACK):
        loud = given.removesuffix(NO_ATTACK)
        quiet = find(loud).without_attack()
        if quiet is None:
            raise InputError(
                f"The verifier {loud} has no switch for an attack of its own; run it as it is."
            )
        return quiet
    name, has_place, place = given.partition("=")
    verifier = import_verifier(name) if is_import(name) else VERIFIERS[name]
    return verifier.at(place) if has_place else verifier


def installed(given: str) -> Verifier:
    """The verifier that the user names; VerifierUnavailable, with the remedy, where it is not installed."""
    verifier = find(given)
    verifier.installed_version()
    return verifier


def styles_of(recorded: str) -> tuple[CertificateStyle, ...]:
    """The certificate styles of a verifier by its name in records, whatever its place.

    `OTHER` for what the catalogue does not have: a record never makes us import what it names.
    """
    name = recorded.removesuffix(NO_ATTACK).partition("=")[0]
    return (VERIFIERS.get(name) or Verifier).styles
