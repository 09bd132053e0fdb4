"""The known verifiers, and which of them are installed."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dokimos.core.errors import InputError
from dokimos.core.plugins import PluggableRegistry
from dokimos.verifiers.base import NO_ATTACK, WARM, CertificateStyle, Verifier
from dokimos.verifiers.placed import PlacedVerifier

# A verifier given by its class, ``package.module:Class``, in place of a name of the catalogue


def is_import(name: str) -> bool:
    """Whether `name` has the form ``module:Class``, and is not a name of the catalogue."""
    return ":" in name


def import_verifier(name: str) -> Verifier:
    """The verifier that ``package.module:Class`` makes, called that in records.

    Raises InputError. Instead of a class it may be a function without arguments that returns a verifier, or
    a verifier itself.
    """
    module, _, attribute = name.partition(":")
    found = _attribute(_module(module, name), attribute, name)
    try:
        if not isinstance(found, Verifier) and callable(found):
            found = found()
    except Exception as error:  # whatever others' code does wrong
        raise _unusable(name, f"{attribute}() fails with {_in_one_line(error)}") from error
    if not isinstance(found, Verifier):
        raise _unusable(name, f"its type is {type(found).__name__}, which is not a dokimos Verifier")
    if not isinstance(getattr(found, "name", None), str):
        raise _unusable(name, "its class has no name")
    verifier = copy.copy(found)
    verifier.name = name
    return verifier


def _module(module: str, name: str) -> Any:
    if not all(part.isidentifier() for part in module.split(".")):
        raise InputError(f"{name!r} is not a verifier; write a name, or package.module:Class.")
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            raise _unusable(
                name, f"there is no module {error.name!r}", "install its package or set PYTHONPATH"
            ) from error
        raise _unusable(name, f"its module cannot be imported: {_in_one_line(error)}") from error
    except Exception as error:  # whatever others' code does wrong
        raise _unusable(name, f"its module cannot be imported: {_in_one_line(error)}") from error


def _attribute(module: Any, attribute: str, name: str) -> Any:
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        raise _unusable(name, f"the module {module.__name__} has no {attribute!r}") from error


def _unusable(name: str, reason: str, remedy: str = "fix it") -> InputError:
    return InputError(f"The verifier {name} cannot be used: {reason}; {remedy}.")


def _in_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


VERIFIERS: PluggableRegistry[Verifier] = PluggableRegistry(
    "verifier",
    {
        "alpha-beta-crown": "dokimos.verifiers.adapters.own_tools:AlphaBetaCrown",
        "marabou": "dokimos.verifiers.adapters.pinned:Marabou",
        "neuralsat": "dokimos.verifiers.adapters.pinned:NeuralSat",
        "never2": "dokimos.verifiers.adapters.pinned:Never2",
        "nnenum": "dokimos.verifiers.adapters.own_tools:Nnenum",
        "planted": "dokimos.verifiers.adapters.built_in:Planted",
        "pyrat": "dokimos.verifiers.adapters.own_tools:Pyrat",
        "reference": "dokimos.verifiers.adapters.built_in:Reference",
        "scripted": "dokimos.verifiers.adapters.built_in:Scripted",
        "vibecheck": "dokimos.verifiers.adapters.pinned:Vibecheck",
        "vnncomp": "dokimos.verifiers.adapters.own_tools:VnncompTool",
        "vnnlib2": "dokimos.verifiers.adapters.own_tools:Vnnlib2Solver",
    },
    group="dokimos.verifiers",
    expects=Verifier,
)


#: What users may name a tool.
_OWN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: The kinds of verifiers that can be recognised from a place alone, in this order.
_SHOWN_BY_PLACE = ("vnncomp", "vnnlib2")


@dataclass(frozen=True)
class CatalogueRow:
    """One known verifier: its version (None if it is not installed), its limitations, how to get it."""

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
    """The verifier that the user names. Raises InputError if there is none.

    ``NAME`` is one of the catalogue, or ``package.module:Class``. ``NAME=PLACE`` says where it is; the
    whole text is its name in records. ``MINE=`` before either, or before the folder of a VNN-COMP tool or
    the command of a VNN-LIB 2.0 solver, names it `MINE` in records. Each may end in ``:no-attack``, which
    switches off its own attack, and then in ``:warm``, which keeps its process from one query to the next.
    """
    if given.endswith(WARM):
        cold = given.removesuffix(WARM)
        staying = find(cold).warm()
        if staying is None:
            raise InputError(f"The verifier {cold} cannot stay warm between queries; run it as it is.")
        return staying
    if given.endswith(NO_ATTACK):
        loud = given.removesuffix(NO_ATTACK)
        quiet = find(loud).without_attack()
        if quiet is None:
            raise InputError(
                f"The verifier {loud} has no switch for an attack of its own; run it as it is."
            )
        return quiet
    name, has_place, place = given.partition("=")
    if is_import(name):
        verifier = import_verifier(name)
    elif has_place and name not in VERIFIERS and _OWN_NAME.fullmatch(name):
        return _named(place).named(name)
    else:
        verifier = VERIFIERS[name]
    return verifier.at(place) if has_place else verifier


def _named(given: str) -> Verifier:
    """What the user names: a verifier, or a place at which one is recognised."""
    head = given.partition("=")[0]
    if head in VERIFIERS or (is_import(head) and not Path(given).exists()):
        return find(given)
    for kind in _SHOWN_BY_PLACE:
        candidate = VERIFIERS[kind].at(given)
        if candidate.version() is not None or _has_unknown_setting(candidate):
            return candidate  # whoever asks for its version hears of the setting
    raise InputError(
        f"{given!r} is not a verifier: it is neither a folder that holds run_instance.sh, nor a command, "
        "nor a name that `dokimos verifiers` lists."
    )


def _has_unknown_setting(verifier: Verifier) -> bool:
    return isinstance(verifier, PlacedVerifier) and verifier.unknown_setting() is not None


def installed(given: str) -> Verifier:
    """The verifier that the user names. Raises VerifierUnavailable, with the remedy, if not installed."""
    verifier = find(given)
    verifier.installed_version()
    return verifier


def styles_of(recorded: str) -> tuple[CertificateStyle, ...]:
    """The certificate styles of a verifier by its name in records, whatever its place.

    It is `OTHER` for names outside the catalogue: what a record names is never imported.
    """
    name = recorded.removesuffix(WARM).removesuffix(NO_ATTACK).partition("=")[0]
    return (VERIFIERS.get(name) or Verifier).styles
