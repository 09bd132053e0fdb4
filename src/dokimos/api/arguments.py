"""Arguments of the public functions: each is compared with its annotation before anything else happens."""

from __future__ import annotations

import builtins
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin

from dokimos.campaigns import MANIFEST, no_campaign
from dokimos.core.errors import InputError
from dokimos.suites import no_suite

P = ParamSpec("P")
R = TypeVar("R")

#: What these arguments mean, and the least that they may be, in every function that takes them.
_LEAST = {"jobs": ("number of jobs", 1), "seed": ("seed", 0)}
_WORDS: dict[Any, str] = {
    NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    bytes: "bytes",
    Path: "a path",
}
_PLURALS = {int: "whole numbers", float: "numbers", str: "texts", Path: "paths"}
_LONGEST = 60


class _Misfit(Exception):
    """A value is not what an annotation says."""


@cache
def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, with its arguments checked: raises InputError if one is not what its annotation says.

    Where the annotation is a sequence, any iterable is taken, and a single text or path counts as a
    sequence of one: `rules="exact"` means `rules=["exact"]`.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError:  # such as a name that no argument has: Python's own message is best
            return function(*args, **kwargs)
        for name, value in given.arguments.items():
            given.arguments[name] = _checked(function, name, value)
        return function(*given.args, **given.kwargs)

    call.__module__ = "dokimos"  # where it is found when pickled
    return call


def _checked(function: Callable[..., Any], name: str, value: Any) -> Any:
    annotation = _annotation(function, name)
    try:
        fitting = _fit(value, annotation)
    except _Misfit:
        shown = repr(value)
        shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."
        wanted = _in_words(annotation)
        raise InputError(f"dokimos.{function.__name__}: {name} must be {wanted}, not {shown}.") from None
    what, least = _LEAST.get(name, ("", None))
    if least is not None and fitting is not None and fitting < least:
        raise InputError(f"The {what} must be at least {least}, not {fitting}.")
    return fitting


@cache
def _annotation(function: Callable[..., Any], name: str) -> Any:
    """The annotation of an argument, as an object; what is imported for type checkers only is anything."""
    text = inspect.signature(function).parameters[name].annotation
    try:
        return eval(text, {}, _Names(function.__globals__))
    except TypeError:  # something that is unknown here has arguments
        return Any


class _Names(dict[str, Any]):
    """The names that an annotation may use."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


def _fit(value: Any, annotation: Any) -> Any:
    """The value as the annotation has it."""
    kind = get_origin(annotation) or annotation
    if kind in (Union, UnionType):
        return _fit_one_of(value, get_args(annotation))
    if kind is Sequence:
        return _fit_sequence(value, get_args(annotation)[0])
    if kind is tuple:
        parts = get_args(annotation)
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            raise _Misfit
        return tuple(_fit(each, part) for each, part in zip(value, parts, strict=True))
    if not _is_a(value, kind):
        raise _Misfit
    return int(value) if kind is int else value


def _fit_one_of(value: Any, annotations: Iterable[Any]) -> Any:
    # A sequence comes last: a text is a text before it is a sequence of one.
    for annotation in sorted(annotations, key=_is_sequence):
        try:
            return _fit(value, annotation)
        except _Misfit:
            continue
    raise _Misfit


def _is_sequence(annotation: Any) -> bool:
    return get_origin(annotation) is Sequence


def _fit_sequence(value: Any, annotation: Any) -> tuple[Any, ...]:
    if isinstance(value, str | os.PathLike):
        return (_fit(value, annotation),)
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise _Misfit
    return tuple(_fit(each, annotation) for each in value)


def _is_a(value: Any, kind: Any) -> bool:
    if kind in (int, float):
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    if kind is Path:
        return isinstance(value, os.PathLike)
    if kind is Callable:
        return callable(value)
    return isinstance(value, kind) if isinstance(kind, type) and kind is not Any else True


def _in_words(annotation: Any) -> str:
    kind = get_origin(annotation) or annotation
    if kind in (Union, UnionType):
        words = list(dict.fromkeys(_in_words(each) for each in get_args(annotation)))
        return f"{', '.join(words[:-1])} or {words[-1]}"
    if kind is Sequence:
        (item,) = get_args(annotation)
        items = [_PLURALS.get(each) or each.__name__ for each in get_args(item) or (item,)]
        return f"a list of {' or '.join(items)}"
    if kind is tuple:
        return f"{len(get_args(annotation))} values"
    if kind is Mapping:
        return "a dictionary"
    if kind is Callable:
        return "a function"
    return _WORDS.get(kind) or f"a {kind.__name__}"


# What is certainly missing: said before anything is loaded that only its contents need


def expect_campaigns(folders: Iterable[Path]) -> None:
    """Raise UnreadableFile if there is no campaign in one of the folders."""
    for folder in folders:
        if not folder.joinpath(MANIFEST).exists():
            raise no_campaign(folder / MANIFEST)


def expect_suites(names: Iterable[str]) -> None:
    """Raise UnreadableFile if one is a path and nothing is there; a name may be a shipped suite."""
    for name in names:
        if os.sep in name and not Path(name).exists():
            raise no_suite(Path(name))


# The names that some arguments take, for completion in a shell; the named objects are not loaded


#: Where the names of a kind are, those of plug-ins included.
_NAMED = {
    "suite": ("dokimos.suites.folder", "shipped_names"),
    "family": ("dokimos.constructions", "CONSTRUCTIONS"),
    "verifier": ("dokimos.verifiers.catalogue", "VERIFIERS"),
    "attack": ("dokimos.engine.attacks", "ATTACKS"),
    "rule set": ("dokimos.judging.rules", "RULE_SETS"),
    "data set": ("dokimos.constructions.data.catalogue", "NAMES"),
}


def known_names(kind: str, *, shipped: bool = False) -> tuple[str, ...]:
    """The names of one kind that this installation knows; those that are `shipped`, without plug-ins."""
    module, name = _NAMED[kind]
    found = getattr(import_module(module), name)
    if shipped:
        return tuple(found.shipped)
    return tuple(found() if isinstance(found, FunctionType) else found)
