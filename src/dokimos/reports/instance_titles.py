"""Readable titles for instances whose own names are hashes: their family, and a few knobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dokimos.core.readable import printable

KNOBS_NAMED = 3
"""The most knobs in a title."""

_SYMBOLS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε"}
_DISGUISE = "disguise"


def instance_titles(
    instances: Iterable[tuple[tuple[str, str], str, Mapping[str, Any]]],
) -> dict[tuple[str, str], str]:
    """Titles by suite and instance, of (suite and instance, family, parameters); none without parameters.

    A title names the knobs in which instances of one family differ, in the order of the family, and if
    these are few, also its first ones: "exclusive-pairs, 20 inputs, 8 pairs, γ 0.001".
    """
    families: dict[str, list[tuple[tuple[str, str], Mapping[str, Any]]]] = {}
    for key, family, parameters in instances:
        families.setdefault(family, []).append((key, parameters))
    titles = {}
    for family, members in families.items():
        named = _worth_naming([parameters for _, parameters in members])
        for key, parameters in members:
            words = [in_words(name, parameters[name]) for name in named if name in parameters]
            if words := list(filter(None, words)):
                titles[key] = printable(", ".join([family, *words]))
    return titles


def _worth_naming(members: Sequence[Mapping[str, Any]]) -> list[str]:
    """The knobs of a title: first those that differ, then the first ones; in the order of the family."""
    names = list(dict.fromkeys(name for parameters in members for name in parameters))
    differing = [n for n in names if len({repr(parameters.get(n)) for parameters in members}) > 1]
    kept = [*differing, *(n for n in names if n not in differing)][:KNOBS_NAMED]
    if _DISGUISE in names and _DISGUISE not in kept:
        kept.append(_DISGUISE)
    return [name for name in names if name in kept]


def in_words(name: str, value: Any) -> str:
    """One parameter: "1 input", "20 inputs", "γ 0.001", "disguised", or a text as it is."""
    if name == _DISGUISE:
        return "disguised" if value else ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return f"{_symbol(name)} {' '.join(map(str, value))}" if value else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{_symbol(name)} {value}"
    if isinstance(value, int) and name.endswith("s") and not name.endswith("ss") and "_" not in name:
        return f"{value:,} {_singular(name) if value == 1 else name}"
    return f"{_symbol(name)} {value:g}" if isinstance(value, float) else f"{_symbol(name)} {value}"


def _symbol(name: str) -> str:
    return _SYMBOLS.get(name, name.replace("_", " "))


def _singular(name: str) -> str:
    return name[:-2] if name.endswith(("sses", "xes", "ches")) else name[:-1]
