"""What every component of a profile must keep to, on every registered family."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.core.errors import InputError
from dokimos.difficulty.components import CANONICAL, EXTRAS, component, describe, meaning, symbol
from dokimos.difficulty.inspection import CrownBound, Inspection
from dokimos.difficulty.profiles import extra_names
from dokimos.suites.facts import COMPONENTS
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.testing import ComponentContract
from dokimos.testing.construction_contract import twins
from tests.difficulty.inspections import observe_labelled

FAMILIES = tuple(CONSTRUCTIONS)
HALVES = [(family, half) for family in FAMILIES for half in (0, 1)]


@cache
def observed(family: str, half: int) -> Inspection:
    return observe_labelled(twins(CONSTRUCTIONS[family])[half], samples=200)


def test_the_canonical_five_are_those_of_the_file() -> None:
    assert set(CANONICAL) == set(COMPONENTS)
    assert not set(CANONICAL) & set(EXTRAS)


class TestShippedComponents(ComponentContract):
    components = (*(CANONICAL[name] for name in CANONICAL), *(EXTRAS[name] for name in EXTRAS.shipped))


def test_components_are_listed_by_their_names() -> None:
    assert all(CANONICAL[name].name == name for name in CANONICAL)
    assert all(EXTRAS[name].name == name for name in EXTRAS.shipped)
    for name in CANONICAL:
        assert f"{CANONICAL[name].symbol} = " in (type(CANONICAL[name]).__doc__ or "")


def test_a_measurement_of_a_package_that_is_missing_keeps_its_name() -> None:
    assert symbol("other_gap") == "other_gap"
    assert describe("other_gap") == meaning("other_gap") == "other gap"
    with pytest.raises(InputError, match="other_gap"):
        component("other_gap")


@pytest.mark.parametrize(("family", "half"), HALVES)
def test_every_component_has_an_answer(family: str, half: int) -> None:
    seen = observed(family, half)
    found = {name: CANONICAL[name](seen) for name in CANONICAL} | {
        name: EXTRAS[name](seen) for name in extra_names(more=False)
    }
    assert all(found[name].value is not None for name in CANONICAL)
    values = {name: measurement.value for name, measurement in found.items()}
    assert values["ibp_gap"] is not None
    assert values["ibp_gap"] >= 0
    assert 0 <= (values["unstable"] or 0) <= 1
    assert 0 <= (values["regions"] or 0) <= np.log(200)
    assert 0 <= (values["gradient_dimension"] or 0) <= seen.network.input_size * (1 + 1e-9)
    assert values["attacked_margin"] is not None
    assert values["margin"] is not None
    assert values["attacked_margin"] <= values["margin"]


@pytest.mark.parametrize(("family", "half"), HALVES)
def test_interval_bounds_are_never_above_the_margin(family: str, half: int) -> None:
    """At the sample of the least margin and at some others, replayed exactly: no tolerance."""
    seen = observed(family, half)
    (points,) = seen.points
    chosen = {int(seen.sampled.margins.argmin()), 0, len(points) - 1}
    for index in chosen:
        exact = violation_at(seen.network, seen.property, tuple(map(Fraction, points[index].tolist())))
        assert exact.margin_lower is not None
        assert Fraction(seen.ibp_bound) <= -exact.margin_lower


@pytest.mark.parametrize(("family", "half"), HALVES)
def test_linear_bounds_are_never_above_the_sampled_margin(family: str, half: int) -> None:
    seen = observed(family, half)
    if isinstance(seen.crown, CrownBound):
        margins = seen.sampled.margins
        assert seen.ibp_bound <= seen.crown.lower <= margins.min() + 1e-9 * np.abs(margins).max()
    else:
        assert "no linear relaxation" in seen.crown
