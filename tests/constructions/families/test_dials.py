from __future__ import annotations

import math
from typing import Any

import pytest

from dokimos.checker.check import check
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.recipes import Draw, shipped_recipe
from dokimos.core.errors import ConstructionFailed, InvalidProof
from dokimos.difficulty.explain.separation import fold, stays
from dokimos.suites.facts import COMPONENTS
from dokimos.suites.instance import LabelledInstance
from tests.difficulty.inspections import observe_labelled

SMALL = {"inputs": 24, "spread": 4, "pairs": 10}


def robust(**knobs: Any) -> LabelledInstance:
    drawn = CONSTRUCTIONS["dials"].draw(
        seed=3, timeout_seconds=1.0, disguise=(), with_twin=False, knobs=knobs
    )
    return drawn.instances[0]


def profile(**knobs: Any) -> dict[str, float]:
    from dokimos.difficulty.components import CANONICAL

    seen = observe_labelled(robust(**knobs), samples=1000)
    found = {name: CANONICAL[name](seen).value for name in COMPONENTS}
    assert all(value is not None for value in found.values())
    return {name: value for name, value in found.items() if value is not None}


def test_the_profile_is_what_the_formulas_say() -> None:
    found = profile(**SMALL, margin=0.5, directions=4, kinks=3, swing=2.0, unstable=0.3, looseness=7.0)
    assert found["margin"] == pytest.approx(0.5, rel=1e-3)
    assert found["ibp_gap"] == pytest.approx(7.0 + 2 * 2.0 * 4, rel=1e-2)
    assert found["unstable"] == pytest.approx((3 + 3) / (6 + 10))
    assert found["regions"] == pytest.approx(3 * math.log(2))
    assert 0.9 * 16 < found["gradient_dimension"] <= 16


@pytest.mark.parametrize(
    ("knob", "values", "component"),
    [
        ("margin", (0.01, 1.0), "margin"),
        ("looseness", (2.0, 800.0), "ibp_gap"),
        ("unstable", (0.2, 1.0), "unstable"),
        ("spread", (1, 8), "gradient_dimension"),
    ],
)
def test_a_dial_moves_its_component_alone(knob: str, values: tuple[float, float], component: str) -> None:
    ends = [profile(**{**SMALL, knob: value}) for value in values]
    for name in COMPONENTS:
        pair = [end[name] for end in ends]
        assert (fold(name, pair) > 2 and name == component) or (stays(pair) and name != component), name


#: The group of `axes` that moves a knob: what moves with it, and how many times at least.
MOVED = {
    "margin": ("margin", 100),
    "looseness": ("ibp_gap", 100),
    "unstable": ("unstable", 100),
    "kinks": ("regions", 100),
    "spread": ("gradient_dimension", 100),
}


def ends_of_axes() -> dict[str, list[Draw]]:
    """The draws of each group of the recipe, by the knob that differs."""
    groups: dict[frozenset[tuple[str, Any]], list[Draw]] = {}
    for draw in shipped_recipe("axes").draws:
        swept = next(iter(set(MOVED) - _fixed(draw)))
        rest = frozenset((name, value) for name, value in draw.knobs.items() if name != swept)
        groups.setdefault(rest | {("swept", swept)}, []).append(draw)
    return {dict(key)["swept"]: draws for key, draws in groups.items()}


def _fixed(draw: Draw) -> set[str]:
    """The knobs that other draws with the same values elsewhere share."""
    others = [
        d for d in shipped_recipe("axes").draws if d is not draw and d.knobs.keys() == draw.knobs.keys()
    ]
    same = {
        name
        for other in others
        if sum(other.knobs[n] != draw.knobs[n] for n in draw.knobs) == 1
        for name in draw.knobs
        if other.knobs[name] == draw.knobs[name]
    }
    return same | (set(MOVED) - set(draw.knobs))


def test_axes_has_a_group_for_each_of_the_five() -> None:
    assert {knob: len(draws) for knob, draws in ends_of_axes().items()} == {
        "margin": 6,
        "looseness": 6,
        "unstable": 6,
        "kinks": 5,
        "spread": 5,
    }


@pytest.mark.slow
@pytest.mark.parametrize("knob", MOVED)
def test_axes_moves_one_component_a_hundredfold(knob: str) -> None:
    component, least = MOVED[knob]
    profiles = [profile(**draw.knobs) for draw in ends_of_axes()[knob]]
    for name in COMPONENTS:
        values = [each[name] for each in profiles]
        assert fold(name, values) >= least if name == component else stays(values), name


def test_what_does_not_fit_is_refused() -> None:
    for knobs in ({"directions": 10, "spread": 10}, {"kinks": 4}):
        with pytest.raises(ConstructionFailed, match="dials"):
            CONSTRUCTIONS["dials"](seed=0, **knobs)


def test_a_pair_that_does_not_cancel_is_not_proven() -> None:
    from dataclasses import replace

    made = robust(**SMALL)
    assert made.truth is not None
    data = dict(made.truth.certificate.data)
    steps = [dict(step) for step in data["steps"]]
    steps[0]["reading"] = ["1"]
    wrong = replace(made.truth.certificate, data={**data, "steps": steps})
    with pytest.raises(InvalidProof, match="do not turn the base network into the shipped network"):
        check(made.instance, replace(made.truth, certificate=wrong))
