"""The family constant-on-box: flat on the box, but for one corner of the twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dokimos.checker import check
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.suites.instance import Label
from tests.constructions.siblings import (
    assert_margins_hold,
    assert_well_hidden,
    box_of,
    differing_weights,
    draw,
    draw_anew,
    leads,
    margin_of,
    proven_in_float32,
    scores,
    truth_of,
    weights_of,
)

FAMILY = "constant-on-box"
OTHER_KNOBS: dict[str, Any] = {
    "inputs": 24,
    "reach": 12,
    "latent": 6,
    "depth": 6,
    "width": 24,
    "mixing": 1.0,
    "active": 0.9,
    "margin": 0.05,
    "slack": 0.01,
    "cut": 0.125,
    "epsilon": 0.2,
    "classes": 5,
}


@pytest.mark.parametrize("seed", range(3))
def test_both_siblings_are_proven_for_both_semantics(seed: int) -> None:
    for labelled, label in zip(draw(FAMILY, seed), (Label.UNSAT, Label.SAT), strict=True):
        check(labelled.instance, truth_of(labelled))
        assert truth_of(labelled).label is label
        assert proven_in_float32(labelled)


def test_the_same_seed_gives_the_same_bytes() -> None:
    first, again, other = draw(FAMILY, 5), draw_anew(FAMILY, 5), draw(FAMILY, 6)
    assert [x.instance for x in first] == [x.instance for x in again]
    assert first[0].instance.network_file != other[0].instance.network_file


@pytest.mark.parametrize("seed", range(2))
def test_the_twin_differs_in_one_threshold_and_is_hidden(seed: int) -> None:
    pair = draw(FAMILY, seed)
    assert differing_weights(pair) == 1
    first, second = (weights_of(labelled.instance)["bias_0"] for labelled in pair)
    assert ((first != second).sum(), (second >= first).all()) == (1, True)
    assert_well_hidden(pair[1])


@pytest.mark.parametrize("knobs", [{}, {"slack": 0.0}, {"reach": 1, "cut": 1e-4, "inputs": 5}])
def test_the_network_is_constant_on_the_box(knobs: dict[str, Any]) -> None:
    robust, _ = draw(FAMILY, **knobs)
    seen = scores(robust.instance, samples=500, corners=500)
    spread = (seen.max(axis=0) - seen.min(axis=0)).max()
    assert spread <= (0 if knobs.get("slack", 1) else 1e-4)
    assert abs(leads(seen).min() - margin_of(robust)) < 1e-4
    assert_margins_hold(robust)


def test_no_hinge_fires_at_its_worst_corner_in_float32() -> None:
    """The thresholds are exact, and the slack is more than rounding can make of the sums."""
    robust, _ = draw(FAMILY)
    weights, box = weights_of(robust.instance), box_of(robust.instance)
    lower, upper = (np.array([float(x) for x in end], dtype=np.float32) for end in (box.lower, box.upper))
    for row, bias in zip(weights["weight_0"], weights["bias_0"], strict=True):
        worst = np.where(row > 0, upper, lower)
        total = np.float32(bias)
        for product in row * worst:
            total += product
        assert total < 0


@pytest.mark.parametrize("name", OTHER_KNOBS)
def test_every_knob_changes_the_instance_and_keeps_it_proven(name: str) -> None:
    plain, other = draw(FAMILY), draw(FAMILY, **{name: OTHER_KNOBS[name]})
    files = [[(x.instance.network_file, x.instance.property_file) for x in pair] for pair in (plain, other)]
    assert files[0][1] != files[1][1]
    assert all(proven_in_float32(labelled) for labelled in other)


def test_the_margin_is_the_knob() -> None:
    for margin in (1e-4, 0.3, 5.0):
        assert margin <= margin_of(draw(FAMILY, margin=margin)[0]) < margin * 1.01


def test_at_the_edge_only_the_reals_are_proven() -> None:
    for labelled in draw(FAMILY, margin=1e-7):
        check(labelled.instance, truth_of(labelled))
        assert not proven_in_float32(labelled)


def test_depth_does_not_cost_the_float32_proof() -> None:
    assert all(proven_in_float32(labelled) for labelled in draw(FAMILY, depth=60, width=16))


def test_layers_too_narrow_to_carry_the_tensor_are_refused() -> None:
    with pytest.raises(ConstructionFailed, match="below latent"):
        draw(FAMILY, width=4, latent=8)


def test_networks_too_large_to_prove_are_refused() -> None:
    with pytest.raises(ConstructionFailed, match="lower one"):
        draw(FAMILY, depth=100, width=2000)


def test_a_twin_that_samples_would_find_is_not_made() -> None:
    with pytest.raises(ConstructionFailed, match="samples find"):
        draw(FAMILY, reach=1, cut=0.25)


def test_unknown_knobs_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'width'"):
        draw(FAMILY, widht=3)
