"""How many arguments the functions of a domain take."""

from __future__ import annotations

from typing import Any

import pytest

from dokimos.laws.domain.functions import DomainFunction


@pytest.mark.parametrize(
    ("function", "taken", "words"),
    [
        (lambda: 1, {0}, "no arguments"),
        (lambda x: x, {1}, "1 argument"),
        (lambda x, y, rng: x, {2}, "2 arguments"),
        (lambda x, y=1, *, predict: x, {1, 2}, "1 to 2 arguments"),
        (lambda x, *more: x, {1, 2, 3}, "1 or more arguments"),
        (max, {0, 1, 2, 3}, "any arguments"),
    ],
)
def test_how_many_arguments_a_function_takes(function: Any, taken: set[int], words: str) -> None:
    for versions in ({"single": function}, {"batch": function}):
        own = DomainFunction("f", **versions)
        assert {count for count in range(4) if own.takes(count)} == taken
        assert own.wanted() == words
