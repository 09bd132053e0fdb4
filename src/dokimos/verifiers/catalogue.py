"""Which verifiers are known, and which of them are here."""

from __future__ import annotations

from dataclasses import dataclass

from dokimos.core.errors import InputError, VerifierUnavailable
from dokimos.core.plugins import PluggableRegistry
from dokimos.verifiers.base import NO_ATTACK, Verifier
from dokimos.verifiers.placed import PlacedVerifier

VERIFIERS: PluggableRegistry[Verifier] = PluggableRegistry(
    "verifier",
    {
        "alpha-beta-crown": "dokimos.verifiers.adapters.vnncomp_tool:alpha_beta_crown",
        "marabou": "dokimos.verifiers.adapters.marabou:Marabou",
        "neuralsat": "dokimos.verifiers.adapters.neuralsat:NeuralSat",
        "never2": "dokimos.verifiers.adapters.never2:Never2",
        "nnenum": "dokimos.verifiers.adapters.vnncomp_tool:nnenum",
        "pyrat": "dokimos.verifiers.adapters.vnncomp_tool:pyrat",
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


def find(spelling: str) -> Verifier:
    """The verifier that NAME, or NAME=PLACE, spells; InputError where there is none.

    Either may end in ``:no-attack``: the same with its own attack switched off.
    """
    if spelling.endswith(NO_ATTACK):
        quiet = find(spelling.removesuffix(NO_ATTACK)).without_attack()
        if quiet is None:
            raise InputError(
                f"The verifier {spelling.removesuffix(NO_ATTACK)} has no switch for an attack of its own; "
                "run it as it is."
            )
        return quiet
    name, has_place, place = spelling.partition("=")
    verifier = VERIFIERS[name]
    if not has_place:
        return verifier
    if not isinstance(verifier, PlacedVerifier):
        raise InputError(f"The verifier {name} is not told where it is; write --verifier {name}.")
    return verifier.at(place)


def installed(spelling: str) -> Verifier:
    """The verifier so spelt; VerifierUnavailable, with the remedy, where it is not installed."""
    verifier = find(spelling)
    if isinstance(verifier, PlacedVerifier) and verifier.place is not None:
        verifier.require()
    if verifier.version() is None:
        raise VerifierUnavailable(
            f"The verifier {spelling} is not installed; to get it: {verifier.how_to_get()}."
        )
    return verifier
