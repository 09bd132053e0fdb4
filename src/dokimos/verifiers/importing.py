"""A verifier given by its class, ``package.module:Class``, in place of a name of the catalogue."""

from __future__ import annotations

import copy
from importlib import import_module
from typing import Any

from dokimos.core.errors import InputError
from dokimos.verifiers.base import Verifier


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
