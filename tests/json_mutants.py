"""Mutants of JSON documents: every value replaced, every key missing, every object with a key too many."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    10**400,
    0.5,
    1e308,
    "",
    "1e999999999",
    "1/0",
    "nan",
    "\N{ROMAN NUMERAL ONE}",
    [],
    [[]],
    [None],
    {},
    {"a": {"b": 1}},
)


def mutants(document: Any) -> Iterator[Any]:
    """Copies of `document`, each with one change."""
    for path in _paths(document):
        for value in VALUES:
            yield _with(document, path, lambda _, value=value: value)
        here = _at(document, path)
        if isinstance(here, dict):
            yield _with(document, path, lambda old: {**old, "one key too many": 1})
            for key in here:
                yield _with(document, path, lambda old, key=key: {k: v for k, v in old.items() if k != key})
        if isinstance(here, list):
            yield _with(document, path, lambda old: [*old, *old, 3])


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in parts:
        yield from _paths(part, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _with(document: Any, path: tuple[Any, ...], change: Any) -> Any:
    mutant = copy.deepcopy(document)
    if not path:
        return change(mutant)
    place = _at(mutant, path[:-1])
    place[path[-1]] = change(place[path[-1]])
    return mutant
