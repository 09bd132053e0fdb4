"""What every shipped family must keep to."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.core.errors import InputError
from dokimos.suites.instance import Semantics
from dokimos.testing import ConstructionContract


class TestShippedFamilies(ConstructionContract):
    constructions = tuple(CONSTRUCTIONS[name] for name in CONSTRUCTIONS.shipped)
    twins_by_box = frozenset({"exact-radius"})
    twins_by_number = frozenset({"specs"})
    #: One right-hand side: the signs of the seven bits and six steps of a wave, and a constant.
    most_changed = MappingProxyType({"parity-lock": 14})
    budgets = frozenset({("exact-radius", "budget")})


def test_families_are_listed_by_their_names() -> None:
    assert all(CONSTRUCTIONS[name].family == name for name in CONSTRUCTIONS.shipped)
    assert {name for name in CONSTRUCTIONS.shipped if not CONSTRUCTIONS[name].hidden} == {"ops", "specs"}


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_seeds_are_whole_numbers(seed: Any) -> None:
    with pytest.raises(InputError, match="seed"):
        CONSTRUCTIONS["constant-on-box"](seed=seed)


def test_margins_follow_their_knobs() -> None:
    for family, knob, values in (
        ("exclusive-pairs", "gamma", (0.001, 0.0005)),
        ("convex-corners", "margin", (0.02, 0.01)),
        ("paired-bias", "margin", (0.01, 0.005)),
    ):
        margins = []
        for value in values:
            robust, _ = CONSTRUCTIONS[family](seed=0, **{knob: value})
            assert robust.truth is not None
            margins.append(robust.truth.claims[Semantics.REAL].margin)
        assert margins[0] is not None
        assert margins[1] is not None
        assert margins[0] > margins[1] > margins[0] / 3
